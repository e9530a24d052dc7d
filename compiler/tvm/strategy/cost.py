"""What a stage reads, and about how many instructions it takes."""

from __future__ import annotations

from composite.compiler.tvm.ir.graph import Pointwise, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context


def is_read(tensor: Tensor, stage: Stage, context: Context) -> bool:
    """Return whether the tensor comes from a buffer, not from the loops of the stage."""
    return tensor not in stage.stores and context.space.storage(tensor) is not None


def chain_cost(stage: Stage, context: Context) -> int:
    """Return the vector instructions that an element-wise stage spends on one vector, roughly."""
    seen: set[Tensor] = set()
    stack = list(stage.stores)
    cost = 0
    while stack:
        tensor = stack.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        if tensor is stage.anchor or is_read(tensor, stage, context):
            cost += 1
            continue
        cost += tensor.node.cost if isinstance(tensor.node, Pointwise) else 1
        stack.extend(tensor.node.operands)
    return cost + len(stage.stores)
