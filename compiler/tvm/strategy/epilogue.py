"""The epilogue of a stage: the element-wise work behind its anchor, and the stores."""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Trips
from composite.compiler.tvm.tir.block import Block, index


def write_epilogue(context: Context, stage: Stage, at: Sequence[Index], total: Expr) -> None:
    """Compute and store what a stage makes of ``total``, an element or vector of its anchor.

    Where results may lie in inputs, all are computed before the first is stored.
    """
    place = list(at)
    if isinstance(place[-1], Lane):
        last = place[-1]
        place[-1] = Lane(context.block.bind(index(last.base), "n"), last.lanes, last.step)
    value = context.block.let(total)
    if context.trips is not None and isinstance(place[-1], Lane):
        _ask_for_next(context.block, context.trips, stage, place)
    access = context.access()
    if stage.anchor is not None:
        access.give(stage.anchor, lambda _: value)
    if not any(context.forwards):
        for tensor in stage.stores:
            context.store(tensor, place, access.compute(tensor, place))
        return
    values = [access.compute(tensor, place) for tensor in stage.stores]
    for tensor, result in zip(stage.stores, values, strict=True):
        context.store(tensor, place, result)


def _ask_for_next(block: Block, trips: Trips, stage: Stage, place: Sequence[Index]) -> None:
    """Prefetch what the next trip reads of arrays where this one reads: no hardware foresees it.

    It goes to the L2 cache: the next trip's product may replace all of the L1 cache before.
    """
    for tensor in topological(tuple(stage.stores)):
        where = trips.next_place(tensor) if tensor.shape == stage.shape else None
        if where is not None:
            at = [i.base if isinstance(i, Lane) else i for i in place]
            flat = sum((i * s for i, s in zip(at, where.strides, strict=True)), where.offset)
            block.prefetch(where.storage.buffer, flat, level=2)
