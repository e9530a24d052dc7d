"""Rows combined at indices that are data, one after the other, since two may have the same index.

Threads divide the columns of the rows, so that no two threads write one element.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.codegen.block import const, index, minimum, quotient, spread
from composite.compiler.tvm.ir.anchors import Scatter
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import convert, from_storage
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.indexing import elements
from composite.compiler.tvm.strategy.tasks import tasks

_COLUMNS = 8
"""Vectors of a row that one task combines, at least."""


class ScatteredRows:
    """Any stage whose anchor is a scatter. Nothing is fused into it: rows come more than once."""

    name = "scatter"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take scatters."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, Scatter):
            return None
        return _Writer(anchor, anchor.node, context)


class _Writer:
    def __init__(self, anchor: Tensor, node: Scatter, context: Context) -> None:
        self._anchor = anchor
        self._node = node
        self._context = context
        self._dtype = compute_dtype(anchor.dtype)
        self._lanes = context.lanes(anchor.dtype)
        self._inner = context.size(anchor.shape[-1])
        self._rows = context.size(product(anchor.shape[:-1]))
        self._storage = context.space.storages[anchor]

    def write(self) -> None:
        """Write the loops."""
        context = self._context
        updates = elements(self._node.updates.shape, context)
        width = self._lanes * _COLUMNS
        blocks = quotient(self._inner + (width - 1), width)
        cycles = quotient((updates + elements(self._anchor.shape, context)) * 2, self._lanes)

        def body(task: Expr) -> None:
            block = context.block
            first = block.bind(task * width, "first")
            stop = block.bind(index(minimum(first + width, self._inner)), "stop")
            with block.loop(self._rows, "row") as row:
                base = block.bind(row * self._inner, "base")
                self._along(first, stop, lambda at, lanes: self._start(base, at, lanes))
            self._rows_of(first, stop)

        tasks(context, blocks, cycles, body)

    def _along(self, first: Expr, stop: Expr, write: Callable[[Expr | int, int], None]) -> None:
        """Write for the vectors of a run of columns, then for the single ones that are left."""
        block, lanes = self._context.block, self._lanes
        whole = block.bind(quotient(stop - first, lanes), "whole")
        with block.loop(whole, "v") as v:
            write(block.bind(first + v * lanes, "at"), lanes)
        rest = block.bind(first + whole * lanes, "rest")
        with block.loop(stop - rest, "e") as e:
            write(block.bind(rest + e, "at"), 1)

    def _start(self, base: Expr, at: Expr | int, lanes: int) -> None:
        dtype = self._dtype if lanes == 1 else f"{self._dtype}x{lanes}"
        value = const(self._node.combine.identity(self._dtype), dtype)
        self._context.store_flat(self._anchor, self._place(base, at, lanes), value)

    @staticmethod
    def _place(base: Expr, at: Expr | int, lanes: int) -> Index:
        return Lane(base + at, lanes) if lanes > 1 else base + at

    def _rows_of(self, first: Expr, stop: Expr) -> None:
        """Write the loops over the rows of the updates."""
        context, block = self._context, self._context.block
        shape = self._node.indices[0].shape
        with ExitStack() as stack:
            at: list[Index] = [stack.enter_context(block.loop(context.size(d), "n")) for d in shape]
            access = context.access()
            places = [
                block.let(convert(access.read(t, at), "int64"), "place") for t in self._node.indices
            ]
            row: Expr | int = 0
            for place, dim in zip(places, self._anchor.shape[:-1], strict=True):
                row = row * context.size(dim) + place
            base = block.bind(row * self._inner, "base")
            inside = places[0] >= index(0)
            for place in places[1:]:
                inside = tirx.And(inside, place >= index(0))
            with block.when(inside):
                self._along(first, stop, lambda c, lanes: self._combine(at, base, c, lanes))

    def _combine(self, row: list[Index], base: Expr, at: Expr | int, lanes: int) -> None:
        context, block = self._context, self._context.block
        column: Index = Lane(at, lanes) if lanes > 1 else at
        value = spread(context.access().read(self._node.updates, [*row, column]), lanes)
        where = base + at + self._storage.offset
        raw = block.let(block.load(self._storage.buffer, where, lanes))
        before = block.let(from_storage(raw, self._storage.dtype))
        after = self._node.combine.apply(block, before, block.let(value))
        context.store_flat(self._anchor, self._place(base, at, lanes), block.let(after))
