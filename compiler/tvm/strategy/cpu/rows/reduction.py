"""Reductions over any dimensions, with the element-wise work before and after in the same loops.

Several of the same elements may be side by side (:mod:`...plan.siblings`).

If the last dimension stays, lanes run along it, each with a sum of its own. Otherwise lanes run
along the last dimension and are added up at the end. 16-bit floats are summed in float32. Long sums
are cut into blocks (:mod:`.accumulate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.codegen.block import index, minimum, quotient, remainder, spread
from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cost import cost_of
from composite.compiler.tvm.strategy.cpu.rows.accumulate import BLOCK, Accumulator, write_sums
from composite.compiler.tvm.strategy.indexing import elements, unflatten
from composite.compiler.tvm.strategy.tasks import tasks

_COLUMNS = 8
"""Vectors of columns that are summed together, to use whole cache lines of each row; a share of
them where several sums are side by side, whose totals are in registers too."""


class Reduction:
    """Any stage whose anchor is a reduction; "sum" stands for any of them here."""

    name = "reduction"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take reductions."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, Reduce):
            return None
        return _Writer(stage, anchor, anchor.node, context)


class _Writer:
    def __init__(self, stage: Stage, anchor: Tensor, node: Reduce, context: Context) -> None:
        self._stage = stage
        self._nodes = {t: t.node for t in stage.anchors if isinstance(t.node, Reduce)}
        self._operand = node.operand
        self._axes = node.axes
        self._context = context
        self._dtype = compute_dtype(anchor.dtype)
        self._lanes = context.lanes(anchor.dtype)
        self._vectors = max(1, _COLUMNS // len(self._nodes))

    def write(self) -> None:
        """Write the loops."""
        context = self._context
        shape = self._stage.shape
        work = elements(self._operand.shape, context)
        operands = [node.operand for node in self._nodes.values()]
        cost = cost_of(operands, self._stage, context) + len(operands)
        cycles = quotient(work * cost, self._lanes)
        if self._operand.rank - 1 in self._axes:
            tasks(context, elements(shape, context), cycles, self._row_of_sums)
            return
        inner = context.size(shape[-1])
        width = self._lanes * self._vectors
        if isinstance(inner, int) and inner < self._lanes:
            tasks(context, elements(shape, context), cycles, self._single)
            return
        blocks = quotient(inner + (width - 1), width)
        outer = elements(shape[:-1], context)

        def body(task: Expr) -> None:
            row = context.block.bind(quotient(task, blocks), "row")
            self._columns(row, context.block.bind(remainder(task, blocks) * width, "at"), inner)

        tasks(context, outer * blocks, cycles, body)

    def _kept(self, flat: Expr | int) -> list[Index]:
        return unflatten(self._context, flat, self._stage.shape) if self._stage.shape else []

    def _source(self, kept: Sequence[Index], summed: Sequence[Index]) -> list[Index]:
        """Return the operand's indices from those kept and those summed over."""
        ours, theirs = iter(kept), iter(summed)
        return [next(theirs if i in self._axes else ours) for i in range(self._operand.rank)]

    def _totals(self, lanes: int) -> list[Accumulator]:
        """Return a total for each reduction."""
        nodes = self._nodes.values()
        return [Accumulator(self._context, n.combine, self._dtype, lanes, 1) for n in nodes]

    def _extents(self, axes: Sequence[int]) -> list[Expr | int]:
        return [self._context.size(self._operand.shape[a]) for a in axes]

    def _read(self, at: list[Index]) -> list[Expr]:
        """Return the element of each operand."""
        lanes = self._lanes if any(isinstance(i, Lane) for i in at) else 1
        access = self._context.access()
        return [spread(access.read(node.operand, at), lanes) for node in self._nodes.values()]

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

        write_sums(self._context.block, self._extents(self._axes), totals, body)
        self._write_epilogue(kept, [total.result() for total in totals])

    def _add(self, totals: Sequence[Accumulator], at: list[Index]) -> None:
        for total, value in zip(totals, self._read(at), strict=True):
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

            write_sums(block, [whole], [total], vector)
            with block.loop(rest, "ke") as e:
                (element,) = self._read(self._source(kept, [*outer, whole * lanes + e]))
                total.add_single(element)

        each = max(lanes, whole) if isinstance(whole, int) and whole <= BLOCK else lanes
        write_sums(block, self._extents(self._axes[:-1]), [total], row, each)
        self._write_epilogue(kept, [total.result()])

    def _columns(self, row: Expr, at: Expr, inner: Expr | int) -> None:
        """Sum a block of neighbouring columns; the last vectors overlap their neighbours."""
        block, lanes = self._context.block, self._lanes
        kept_outer = unflatten(self._context, row, self._stage.shape[:-1] or (1,))
        kept_outer = kept_outer if len(self._stage.shape) > 1 else []
        is_long = inner >= lanes if isinstance(inner, int) else index(inner) >= lanes
        with block.when(is_long):
            totals = [self._totals(lanes) for _ in range(self._vectors)]
            starts = [
                block.bind(index(minimum(at + j * lanes, inner - lanes)), "c")
                for j in range(self._vectors)
            ]

            def body(summed: list[Expr]) -> None:
                for start, own in zip(starts, totals, strict=True):
                    self._add(own, self._source([*kept_outer, Lane(start, lanes)], summed))

            write_sums(block, self._extents(self._axes), [*chain.from_iterable(totals)], body)
            for start, own in zip(starts, totals, strict=True):
                sums = [total.total() for total in own]
                self._write_epilogue([*kept_outer, Lane(start, lanes)], sums)
        if not isinstance(is_long, bool):
            with block.otherwise(), block.loop(inner, "column") as column:
                self._single(block.bind(row * inner + column))


def _known(value: Expr, _: Sequence[Index]) -> Expr:
    return value
