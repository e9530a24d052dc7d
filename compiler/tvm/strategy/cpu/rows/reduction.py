"""Reductions over any dimensions, with the element-wise work before and after in the same loops.

Several of the same elements may be side by side (:mod:`...plan.siblings`).

Dimensions that every operand either has or broadcasts are merged. If the last dimension stays,
lanes run along it, each with a sum of its own. Where it is narrower than a vector, such as the
channels of a mask, they run along it and the dimension before it, which is summed: a vector has
each column several times. Otherwise lanes run along the last dimension and are added up at the end.
16-bit floats are summed in float32. Long sums are cut into blocks (:mod:`.accumulate`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import chain

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import Dim, ceildiv, static_size
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cost import cost_of
from composite.compiler.tvm.strategy.cpu.rows.accumulate import (
    BLOCK,
    Accumulator,
    tree,
    write_sums,
)
from composite.compiler.tvm.strategy.indexing import elements, unflatten
from composite.compiler.tvm.strategy.merge import merge_last, merge_reductions
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import (
    ceil_quotient,
    index,
    minimum,
    quotient,
    remainder,
    spread,
)

_COLUMNS = 8
"""Vectors of columns that are summed together, to use whole cache lines of each row; a share of
them where several sums are side by side, whose totals are in registers too."""
_NARROW = 4
"""Vectors at a time where columns are narrow, at least: additions that do not wait for others."""


class Reduction:
    """Any stage whose anchor is a reduction; "sum" stands for any of them here."""

    name = "reduction"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take reductions."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, Reduce):
            return None
        return _Writer(stage, context)


class _Writer:
    def __init__(self, stage: Stage, context: Context) -> None:
        self._stage = stage
        self._context = context

    def write(self) -> None:
        """Write the loops."""
        _Loops(merge_reductions(self._stage, self._context), self._context).write()


class _Loops:
    def __init__(self, stage: Stage, context: Context) -> None:
        self._stage = stage
        self._nodes = {t: t.node for t in stage.anchors if isinstance(t.node, Reduce)}
        node = next(iter(self._nodes.values()))
        self._operand = node.operand
        self._operands = [node.operand for node in self._nodes.values()]
        self._axes = node.axes
        self._context = context
        self._dtype = compute_dtype(node.operand.dtype)
        self._lanes = context.lanes(node.operand.dtype)

    def write(self) -> None:
        context = self._context
        shape = self._stage.shape
        work = elements(self._operand.shape, context)
        cost = cost_of(self._operands, self._stage, context) + len(self._operands)
        cycles = quotient(work * cost, self._lanes)
        if self._operand.rank - 1 in self._axes:
            tasks(context, elements(shape, context), cycles, self._row_of_sums)
            return
        inner = shape[-1]
        if isinstance(inner, int) and inner < self._lanes:
            self._write_narrow(inner, cycles)
            return
        vectors = self._vectors(inner, cycles)
        width = self._lanes * vectors
        blocks = ceil_quotient(context.size(inner), width)
        outer = elements(shape[:-1], context)

        def body(task: Expr) -> None:
            row = context.block.bind(quotient(task, blocks), "row")
            at = context.block.bind(remainder(task, blocks) * width, "at")
            self._columns(row, at, context.size(inner), vectors)

        tasks(context, outer * blocks, cycles, body)

    def _vectors(self, inner: Dim, cycles: Expr | int) -> int:
        """Return how many vectors of columns a task sums.

        Of a known number of columns, equal shares; as many as there are threads, if it is worth it.
        """
        most = max(1, _COLUMNS // len(self._nodes))
        if not isinstance(inner, int):
            return most
        whole, rows = ceildiv(inner, self._lanes), static_size(self._stage.shape[:-1])
        least = 1
        if rows and isinstance(cycles, int) and cycles >= self._context.machine.parallel:
            least = ceildiv(self._context.target.cores, rows)
        return ceildiv(whole, max(ceildiv(whole, most), min(least, whole), 1))

    def _write_narrow(self, inner: int, cycles: Expr | int) -> None:
        context, shape = self._context, self._stage.shape
        is_below = self._operand.rank - 2 in self._axes
        merged = merge_last(self._operands, self._stage, context) if is_below else None
        if merged is None:
            tasks(context, elements(shape, context), cycles, self._single)
            return
        body = partial(self._narrow, inner=inner, operands=merged)
        tasks(context, elements(shape[:-1], context), cycles, body)

    def _kept(self, flat: Expr | int) -> list[Index]:
        return unflatten(self._context, flat, self._stage.shape) if self._stage.shape else []

    def _source(self, kept: Sequence[Index], summed: Sequence[Index]) -> list[Index]:
        """Return the operand's first indices, all there are, from those kept and those summed."""
        ours, theirs = iter(kept), iter(summed)
        count = len(kept) + len(summed)
        return [next(theirs if i in self._axes else ours) for i in range(count)]

    def _totals(self, lanes: int) -> list[Accumulator]:
        """Return a total for each reduction."""
        nodes = self._nodes.values()
        return [Accumulator(self._context, n.combine, self._dtype, lanes, 1) for n in nodes]

    def _extents(self, axes: Sequence[int]) -> list[Expr | int]:
        return [self._context.size(self._operand.shape[a]) for a in axes]

    def _read(self, at: list[Index], operands: Sequence[Tensor]) -> list[Expr]:
        """Return the element of each operand."""
        lanes = self._lanes if any(isinstance(i, Lane) for i in at) else 1
        access = self._context.access()
        return [spread(access.read(operand, at), lanes) for operand in operands]

    def _write_epilogue(self, kept: list[Index], totals: Sequence[Expr]) -> None:
        """Store what is made of the sums."""
        access = self._context.access()
        for anchor, total in zip(self._nodes, totals, strict=True):
            access.give(anchor, partial(_known, total))
        for tensor in self._stage.stores:
            self._context.store(tensor, kept, access.compute(tensor, kept))

    def _single(self, flat: Expr) -> None:
        """Sum one element with scalars."""
        kept = self._kept(flat)
        totals = self._totals(1)

        def body(summed: list[Expr]) -> None:
            self._add(totals, self._source(kept, summed))

        write_sums(self._context, self._extents(self._axes), totals, body)
        self._write_epilogue(kept, [total.result() for total in totals])

    def _add(self, totals: Sequence[Accumulator], at: list[Index]) -> None:
        for total, value in zip(totals, self._read(at, self._operands), strict=True):
            total.add(0, value)

    def _row_of_sums(self, flat: Expr) -> None:
        """Sum one element with lanes along the last dimension, then over the lanes."""
        block, lanes = self._context.block, self._lanes
        kept = self._kept(flat)
        (total,) = self._totals(lanes)
        inner = self._context.size(self._operand.shape[-1])
        whole, rest = quotient(inner, lanes), remainder(inner, lanes)

        def row(outer: list[Expr]) -> None:
            def vector(counters: list[Expr]) -> None:
                lane = Lane(block.bind(counters[0] * lanes), lanes)
                self._add([total], self._source(kept, [*outer, lane]))

            write_sums(self._context, [whole], [total], vector)
            with block.loop(rest, "ke") as e:
                at = self._source(kept, [*outer, whole * lanes + e])
                (element,) = self._read(at, self._operands)
                total.add_single(element)

        is_block = isinstance(whole, int) and whole <= BLOCK and not self._context.invariant
        each = max(lanes, int(whole)) if is_block else lanes
        write_sums(self._context, self._extents(self._axes[:-1]), [total], row, each)
        self._write_epilogue(kept, [total.result()])

    def _kept_outer(self, row: Expr) -> list[Index]:
        outer = self._stage.shape[:-1]
        return unflatten(self._context, row, outer) if outer else []

    def _narrow(self, row: Expr, inner: int, operands: Sequence[Tensor]) -> None:
        """Sum ``inner`` columns, which are narrower than a vector and are the last dimension.

        Columns come again after as many vectors as have whole rows. ``operands`` have rows and
        columns as one dimension.
        """
        block, lanes = self._context.block, self._lanes
        period = inner // math.gcd(inner, lanes)
        vectors = period * max(1, _NARROW // (period * len(self._nodes)))
        size, width = self._context.size(operands[0].shape[-1]), vectors * lanes
        kept_outer = self._kept_outer(row)
        is_long = size >= width if isinstance(size, int) else index(size) >= width
        with block.when(is_long):
            totals = [self._totals(lanes) for _ in range(vectors)]
            self._sum_narrow(kept_outer, size, operands, totals)
            parts = [block.registers(width, self._dtype, "parts") for _ in self._nodes]
            for vector, own in enumerate(totals):
                for part, total in zip(parts, own, strict=True):
                    block.store(part, vector * lanes, total.total())
            with block.loop(inner, "column") as column:
                sums = []
                for part, node in zip(parts, self._nodes.values(), strict=True):
                    found = [
                        block.let(block.load(part, column + k)) for k in range(0, width, inner)
                    ]
                    sums.append(tree(block, node.combine, found))
                self._write_epilogue([*kept_outer, column], sums)
        if is_long is not True:
            with block.otherwise():
                self._one_by_one(row, inner)

    def _sum_narrow(
        self,
        kept_outer: Sequence[Index],
        size: Expr | int,
        operands: Sequence[Tensor],
        totals: Sequence[Sequence[Accumulator]],
    ) -> None:
        """Add all rows of narrow columns; the last vectors of a run overlap their neighbours."""
        block, lanes = self._context.block, self._lanes
        width = len(totals) * lanes
        whole, flat = quotient(size, width), [*chain.from_iterable(totals)]

        def add(outer: Sequence[Index], start: Expr | int, known: Expr | int = 0) -> None:
            """Add a run of vectors, without the elements at its start that are ``known``."""
            at = self._source(kept_outer, outer)
            for k, own in enumerate(totals):
                lane = Lane(block.bind(start + k * lanes, "c"), lanes)
                skipped = known - k * lanes
                if isinstance(skipped, int):
                    skipped = max(skipped, 0)
                values = self._read([*at, lane], operands)
                for total, value in zip(own, values, strict=True):
                    total.add(0, value, skipped)

        def run(outer: list[Expr]) -> None:
            write_sums(self._context, [whole], flat, lambda at: add(outer, at[0] * width))
            rest = remainder(size, width)
            with block.when(rest != 0 if isinstance(rest, int) else index(rest) > 0):
                add(outer, size - width, width - rest)

        is_block = isinstance(whole, int) and whole <= BLOCK and not self._context.invariant
        each = max(1, int(whole)) if is_block else BLOCK
        write_sums(self._context, self._extents(self._axes[:-1]), flat, run, each)

    def _columns(self, row: Expr, at: Expr, inner: Expr | int, vectors: int) -> None:
        """Sum a block of neighbouring columns; the last vectors overlap their neighbours."""
        block, lanes = self._context.block, self._lanes
        kept_outer = self._kept_outer(row)
        is_long = inner >= lanes if isinstance(inner, int) else index(inner) >= lanes
        with block.when(is_long):
            totals = [self._totals(lanes) for _ in range(vectors)]
            starts = [
                block.bind(index(minimum(at + j * lanes, inner - lanes)), "c")
                for j in range(vectors)
            ]

            def body(summed: list[Expr]) -> None:
                for start, own in zip(starts, totals, strict=True):
                    self._add(own, self._source([*kept_outer, Lane(start, lanes)], summed))

            write_sums(
                self._context, self._extents(self._axes), [*chain.from_iterable(totals)], body
            )
            for start, own in zip(starts, totals, strict=True):
                sums = [total.total() for total in own]
                self._write_epilogue([*kept_outer, Lane(start, lanes)], sums)
        if is_long is not True:
            with block.otherwise():
                self._one_by_one(row, inner)

    def _one_by_one(self, row: Expr, inner: Expr | int) -> None:
        """Sum each column of a row with scalars."""
        with self._context.block.loop(inner, "column") as column:
            self._single(self._context.block.bind(row * inner + column))


def _known(value: Expr, _: Sequence[Index]) -> Expr:
    return value
