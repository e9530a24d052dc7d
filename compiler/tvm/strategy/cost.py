"""What a stage reads, and about how many instructions it takes."""

from __future__ import annotations

from collections.abc import Iterable

from composite.compiler.tvm.ir.tensor import Pointwise, Tensor
from composite.compiler.tvm.ir.walk import reachable
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context


def is_read(tensor: Tensor, stage: Stage, context: Context) -> bool:
    """Return whether the tensor comes from a buffer, not from the loops of the stage."""
    return tensor not in stage.stores and context.space.storage(tensor) is not None


def chain_cost(stage: Stage, context: Context) -> int:
    """Return the vector instructions that an element-wise stage spends on one vector, roughly."""
    return cost_of(stage.stores, stage, context) + len(stage.stores)


def cost_of(tensors: Iterable[Tensor], stage: Stage, context: Context) -> int:
    """Return those that one vector of each tensor takes, up to anchors and what is read."""

    def ends(tensor: Tensor) -> bool:
        return tensor in stage.anchors or is_read(tensor, stage, context)

    found = reachable(tensors, lambda t: () if ends(t) else t.node.operands)
    return sum(1 if ends(t) or not isinstance(t.node, Pointwise) else t.node.cost for t in found)
