"""Element-wise chains: each thread computes some elements side by side, then those a grid further.

Dimensions are merged as for the CPU, so that most chains have one. A chain whose elements are not
known to be a multiple of a vector computes the last ones one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.codegen.device_block import Grid
from composite.compiler.tvm.ir.dims import Dim, divide, product
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cost import is_read
from composite.compiler.tvm.strategy.cuda.vectors import (
    Lanes,
    Loads,
    device_block,
    read_in_place,
    threads_of_block,
    vector_width,
)
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.strategy.merge import merge_dimensions
from composite.compiler.tvm.tir.block import index, quotient

_THREADS = 256


class Elementwise:
    """Any stage without an anchor."""

    name = "elementwise"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take what has no anchor."""
        return _Writer(stage, context) if stage.anchor is None else None


@dataclass(frozen=True)
class _Writer:
    stage: Stage
    context: Context

    def write(self) -> None:
        """Write one launch."""
        context = self.context
        stage = merge_dimensions(self.stage, context)
        total = product(stage.shape)
        made = {t for t in stage.stores if not is_read(t, stage, context)}
        read = read_in_place(stage.stores, stage.shape, made, context)
        everything = [*stage.stores, *read]
        flat = len(stage.shape) <= 1
        # Elements in one dimension need not be a multiple: those left over are computed singly.
        width = vector_width(everything, 8 if flat else stage.shape[-1], context)
        threads = threads_of_block("elementwise.threads", (128, 256, 512), _THREADS, context)
        chunk = _Chunk(stage, context, read, width)
        with device_block(context).launch(total, threads * width, threads) as grid:
            chunk.write(grid, threads, total)


@dataclass(frozen=True)
class _Chunk:
    stage: Stage
    context: Context
    read: list[Tensor]
    width: int

    def write(self, grid: Grid, threads: int, total: Dim) -> None:
        """Write the loop of a thread over its elements."""
        block, width = device_block(self.context), self.width
        first = block.bind(grid.block * threads + grid.thread, "first")
        step = grid.blocks * threads
        size = self.context.size(total)
        groups = quotient(size, width)
        with block.share_out(first, groups, step) as unit:
            self._elements(block.bind(unit * width, "at") if width > 1 else unit, width)
        if divide(total, width) is None:
            rest = block.bind(index(groups) * width + first, "rest")
            with block.when(rest < index(size)):
                self._elements(rest, 1)

    def _elements(self, flat: Expr, width: int) -> None:
        context, stage = self.context, self.stage
        # Its own results are computed, never loaded: nobody has stored them yet.
        reading = replace(context, space=context.space.without(stage.stores))
        access = reading.access()
        at: list[Index] = unflatten(context, flat, stage.shape) if stage.shape else []
        if not at:
            for tensor in stage.stores:
                context.store(tensor, at, access.compute(tensor, at))
            return
        lanes = Lanes(context, at, width)
        Loads(reading, access, self.read).load(lanes)
        values = [[access.compute(t, place) for place in lanes.places] for t in stage.stores]
        for tensor, elements in zip(stage.stores, values, strict=True):
            lanes.store(tensor, elements)
