"""What a stage reads, and about how many instructions it takes."""

from __future__ import annotations

from collections.abc import Iterable

from composite.compiler.tvm.ir.dims import static_size
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
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
    found = _computed(tensors, stage, context)
    return sum(
        1 if ends(t, stage, context) or not isinstance(t.node, Pointwise) else t.node.cost
        for t in found
    )


def reads_from_afar(stage: Stage, context: Context) -> bool:
    """Return whether a stage reads, beside what its anchors do, what no cache of a core holds."""
    sizes = ((static_size(t.shape) or 0) * ITEM_SIZE[t.dtype] for t in read_beside(stage, context))
    return any(size > context.machine.near for size in sizes)


def read_beside(stage: Stage, context: Context) -> list[Tensor]:
    """Return what a stage reads, beside what its anchors do."""
    found = _computed(stage.stores, stage, context)
    return [t for t in found if is_read(t, stage, context)]


def _computed(tensors: Iterable[Tensor], stage: Stage, context: Context) -> list[Tensor]:
    """Return what the tensors are made of in the loops of the stage, and what those read."""
    return reachable(tensors, lambda t: () if ends(t, stage, context) else t.node.operands)


def ends(tensor: Tensor, stage: Stage, context: Context) -> bool:
    """Return whether the tensor is an anchor of the stage, or comes from a buffer."""
    return tensor in stage.anchors or is_read(tensor, stage, context)
