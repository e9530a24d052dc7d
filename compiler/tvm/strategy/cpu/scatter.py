"""Rows combined at indices that are data, one after the other, since two may have the same index.

Threads divide the columns of the rows, so that no two threads write one element. Where many floats
are added to each row, as in sums of segments, what rounding loses is added up beside the sums; sums
of 16-bit floats are rounded once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.ir.anchors import Scatter
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import choose, convert, from_storage, is_nan
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cpu.rows.accumulate import two_sum
from composite.compiler.tvm.strategy.indexing import elements
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import const, index, minimum, quotient, spread

_COLUMNS = 8
"""Vectors of a row that one task combines, at least."""
_PAIR = 2
"""Lanes of the shortest vectors."""
_MANY = 64
"""Updates for each row of the result above which what rounding loses is added up too, which takes
twice the time: fewer have few roundings."""
_MANY_NARROW = 4
"""The same of sums that would be rounded to 16 bits at each addition."""


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
        self._is_narrow = self._storage.dtype != self._dtype

    def write(self) -> None:
        """Write the loops."""
        context = self._context
        updates = elements(self._node.updates.shape, context)
        width = self._lanes * _COLUMNS
        if isinstance(self._inner, int):
            vectors = -(-self._inner // self._lanes)
            width = min(width, max(1, vectors) * self._lanes)
        blocks = quotient(self._inner + (width - 1), width)
        cycles = quotient((updates + elements(self._anchor.shape, context)) * 2, self._lanes)

        def body(task: Expr) -> None:
            block = context.block
            first = block.bind(task * width, "first")
            count = block.bind(index(minimum(width, self._inner - first)), "count")
            many = self._are_many()
            with block.when(many):
                self._add_aside(first, count, width)
            if many is not True:
                with block.otherwise():
                    self._combine_in_place(first, count)

        tasks(context, blocks, cycles, body)

    def _are_many(self) -> Expr | bool:
        """Return whether many floats are added to a row, on the average."""
        if self._node.combine.name != "Sum" or not self._dtype.startswith("float"):
            return False
        updates = elements(self._node.updates.shape[:-1], self._context)
        return updates > self._rows * (_MANY_NARROW if self._is_narrow else _MANY)

    def _is_compensated(self) -> bool:
        """Return whether what rounding loses counts.

        Of a sum that is rounded to 16 bits at the end, it does not where few floats are added.
        """
        updates = elements(self._node.updates.shape[:-1], self._context)
        if not self._is_narrow or not isinstance(updates, int) or not isinstance(self._rows, int):
            return True
        return updates > self._rows * _MANY

    def _combine_in_place(self, first: Expr, count: Expr) -> None:
        with self._context.block.loop(self._rows, "row") as row:
            self._along(first, count, lambda at, lanes: self._start(row, at, lanes))
        self._rows_of(first, count, self._combine)

    def _add_aside(self, first: Expr, count: Expr, width: int) -> None:
        """Add up columns in a buffer, and in another one what rounding lost."""
        block, lanes = self._context.block, self._lanes
        size = self._rows * width
        sums = block.workspace(size, self._dtype, hint="sums")
        lost = block.workspace(size, self._dtype, hint="lost") if self._is_compensated() else None
        zero = const(0, self._vector(lanes))
        with block.loop(quotient(size, lanes), "z") as z:
            for buffer in (sums, lost):
                if buffer is not None:
                    block.store(buffer, z * lanes, zero)

        def add(row: list[Index], to: Expr, at: Expr | int, lanes: int) -> None:
            place = block.bind(to * width + (at - first), "place")
            before = block.let(block.load(sums, place, lanes))
            update = self._update(row, at, lanes)
            if lost is None:
                block.store(sums, place, before + update)
                return
            total, error = two_sum(block, before, update)
            block.store(sums, place, total)
            block.store(lost, place, block.load(lost, place, lanes) + error)

        self._rows_of(first, count, add)
        with block.loop(self._rows, "row") as row:

            def finish(at: Expr | int, lanes: int) -> None:
                place = block.bind(row * width + (at - first), "place")
                total = block.let(block.load(sums, place, lanes))
                if lost is not None:
                    rest = block.let(block.load(lost, place, lanes))
                    # What was lost on the way to an infinite sum is NaN, and of no use.
                    rest = choose(is_nan(rest), const(0, self._vector(lanes)), rest)
                    total = block.let(total + rest)
                self._context.store_flat(self._anchor, self._place(row, at, lanes), total)

            self._along(first, count, finish)

    def _vector(self, lanes: int) -> str:
        return self._dtype if lanes == 1 else f"{self._dtype}x{lanes}"

    def _along(self, first: Expr, count: Expr, write: Callable[[Expr | int, int], None]) -> None:
        """Write for the vectors of ``count`` columns, then for the single ones that are left."""
        block, lanes = self._context.block, self._lanes
        whole = block.bind(quotient(count, lanes), "whole")
        with block.loop(whole, "v") as v:
            write(block.bind(first + v * lanes, "at"), lanes)
        rest = block.bind(whole * lanes, "rest")
        if lanes <= _PAIR:  # one at most is left
            with block.when(rest < count):
                write(block.bind(first + rest, "at"), 1)
            return
        with block.loop(count - rest, "e") as e:
            write(block.bind(first + (rest + e), "at"), 1)

    def _start(self, row: Expr, at: Expr | int, lanes: int) -> None:
        value = const(self._node.combine.identity(self._dtype), self._vector(lanes))
        self._context.store_flat(self._anchor, self._place(row, at, lanes), value)

    def _place(self, row: Expr, at: Expr | int, lanes: int) -> Index:
        place = self._context.block.bind(row * self._inner + at, "place")
        return Lane(place, lanes) if lanes > 1 else place

    def _rows_of(
        self,
        first: Expr,
        count: Expr,
        write: Callable[[list[Index], Expr, Expr | int, int], None],
    ) -> None:
        """Write the loops over the rows of the updates, each to its row of the result."""
        context, block = self._context, self._context.block
        shape = self._node.indices[0].shape
        with ExitStack() as stack:
            at: list[Index] = [stack.enter_context(block.loop(context.size(d), "n")) for d in shape]
            access = context.access()
            places = [
                block.let(convert(access.read(t, at), "int64"), "place") for t in self._node.indices
            ]
            to: Expr | int = 0
            for place, dim in zip(places, self._anchor.shape[:-1], strict=True):
                to = to * context.size(dim) + place
            row = block.bind(index(to), "row")
            inside = places[0] >= index(0)
            for place in places[1:]:
                inside = tirx.And(inside, place >= index(0))
            with block.when(inside):
                self._along(first, count, lambda c, lanes: write(at, row, c, lanes))

    def _update(self, row: list[Index], at: Expr | int, lanes: int) -> Expr:
        column: Index = Lane(at, lanes) if lanes > 1 else at
        value = spread(self._context.access().read(self._node.updates, [*row, column]), lanes)
        return self._context.block.let(value)

    def _combine(self, row: list[Index], to: Expr, at: Expr | int, lanes: int) -> None:
        context, block = self._context, self._context.block
        value = self._update(row, at, lanes)
        where = to * self._inner + at + self._storage.offset
        raw = block.let(block.load(self._storage.buffer, where, lanes))
        before = block.let(from_storage(raw, self._storage.dtype))
        after = block.let(self._node.combine.apply(block, before, value))
        context.store_flat(self._anchor, self._place(to, at, lanes), after)
