"""The epilogue of a block of sums: element-wise work and stores, in the result's own layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.codegen.transpose import transpose
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cost import chain_cost, reads_from_afar
from composite.compiler.tvm.tir.block import (
    Buffer,
    ceil_quotient,
    index,
    maximum,
    minimum,
    quotient,
)

_LONG = 24
"""Instructions from which on latency bounds a chain, so that two interleaved ones are faster."""


_SHORT = 8
"""Instructions up to which the code of a chain is written for each vector of a tile."""


def fits_registers(stage: Stage, context: Context) -> bool:
    """Return whether an epilogue is short, and reads nothing from afar.

    That it reads in long rows instead, which the hardware fetches ahead.
    """
    return chain_cost(stage, context) <= _SHORT and not reads_from_afar(stage, context)


class Result(Protocol):
    """What the sums become: a :class:`.product.Product`, or another stage with rows like one."""

    @property
    def stage(self) -> Stage:
        """The stage whose anchor they are."""

    @property
    def dtype(self) -> str:
        """The dtype that is computed in."""

    def write_epilogue(self, context: Context, at: Sequence[Index], total: Expr) -> None:
        """Store what is made of one element, or one vector, of the sums."""


class Epilogue:
    """Writes the epilogue of rows of a buffer of sums.

    Args:
        context: The kernel.
        result: Stores what the sums become.
        batch: Indices of the batch dimensions.
        group: Vectors in a row of the buffer.
        count: How many columns (as the buffer has them) there are in all.
        swapped: Whether the buffer's rows are the result's columns.
    """

    def __init__(  # noqa: PLR0913 - what a block of a product is
        self,
        context: Context,
        result: Result,
        batch: list[Index],
        group: int,
        count: Expr | int,
        *,
        swapped: bool,
    ) -> None:
        self._context = context
        self._block = context.block
        self._result = result
        self._batch = batch
        self._lanes = context.lanes(result.dtype)
        self._group = group
        self._width = group * self._lanes
        self._count = count
        self._swapped = swapped

    def write(self, sums: Buffer, start: Expr, first: Expr, rows: Expr | int) -> None:
        """Write ``rows`` rows from ``first`` on, of the group that begins at column ``start``."""
        left = quotient(self._count - start + (self._lanes - 1), self._lanes)
        vectors = self._block.bind(minimum(self._group, left), "vectors")
        if self._swapped:
            self._write_swapped(sums, start, first, rows, vectors)
        else:
            self._write_straight(sums, start, first, rows, vectors)

    @property
    def is_short(self) -> bool:
        """Whether the epilogue is short enough to be written for the registers of each tile."""
        whole = isinstance(self._count, int) and self._count >= self._lanes
        return whole and not self._swapped and fits_registers(self._result.stage, self._context)

    def write_vector(self, start: Expr, row: Expr, vector: Expr, value: Expr) -> None:
        """Write one vector of the group that begins at column ``start``."""
        at = minimum(start + vector * self._lanes, self._count - self._lanes)
        column = self._block.bind(index(at), "column")
        self._write_element(row, Lane(column, self._lanes), value)

    def _write_straight(
        self, sums: Buffer, start: Expr, first: Expr, rows: Expr | int, vectors: Expr | int
    ) -> None:
        block, lanes, count = self._block, self._lanes, self._count
        interleave = self._interleave()
        width = interleave * lanes
        long = count >= lanes if isinstance(count, int) else index(count) >= lanes
        with block.loop(rows, "r") as r:
            row = block.bind(first + r, "row")
            with block.when(long), block.loop(ceil_quotient(vectors, interleave), "j") as j:
                if interleave > 1:
                    at = block.bind(minimum(j * width, vectors * lanes - width), "at")
                    column = block.bind(start + at, "column")
                else:
                    at = j * lanes
                    column = block.bind(minimum(start + at, count - lanes), "column")
                value = block.load(sums, r * self._width + at, width)
                self._write_element(row, Lane(column, width), value)
            if long is True:
                return
            with block.when(count < lanes), block.loop(count, "e") as e:
                self._write_element(row, e, block.load(sums, r * self._width + e))

    def _interleave(self) -> int:
        """Return how many vectors are interleaved: see :mod:`.interleave`.

        1 unless all vectors are whole, and each group has that many. Sums of int32 are not: LLVM
        moves the instructions that made them (:mod:`...math.integer_dots`) to where they do not
        dominate the shuffle that would join two vectors.
        """
        count, lanes, most = self._count, self._lanes, 1
        if self._result.dtype == "float32":
            cost = chain_cost(self._result.stage, self._context)
            most = self._context.choose("epilogue.interleave", (1, 2), 2 if cost >= _LONG else 1)
        if not isinstance(count, int) or count % lanes:
            return 1
        last = count // lanes % self._group or self._group
        if any(self._context.forwards):  # what lies in an input is stored once
            return most if last % most == 0 == self._group % most else 1
        return most if min(last, self._group) >= most else 1

    def _write_swapped(
        self, sums: Buffer, start: Expr, first: Expr, rows: Expr | int, vectors: Expr | int
    ) -> None:
        block, lanes = self._block, self._lanes
        long = rows >= lanes if isinstance(rows, int) else index(rows) >= lanes
        with block.loop(vectors, "j") as j:
            last = maximum(0, self._count - lanes)
            column = block.bind(minimum(start + j * lanes, last), "column")
            real = block.bind(minimum(lanes, self._count - column), "real")
            with block.when(long):
                self._squares(sums, j, (column, real), first, rows)
            if long is True:
                return
            with (
                block.when(rows < lanes),
                block.loop(rows, "r") as r,
                block.loop(real, "m") as m,
            ):
                value = block.load(sums, r * self._width + j * lanes + m)
                self._write_element(block.bind(column + m), first + r, value)

    def _squares(
        self,
        sums: Buffer,
        j: Expr,
        columns: tuple[Expr, Expr | int],
        first: Expr,
        rows: Expr | int,
    ) -> None:
        """Transpose squares of the buffer, the last of which overlaps.

        ``columns`` are the first of the vector's columns, and how many of them exist.
        """
        block, lanes = self._block, self._lanes
        column, real = columns
        square = block.workspace(lanes * lanes, self._result.dtype, "square")
        with block.loop(ceil_quotient(rows, lanes), "piece") as piece:
            r = block.bind(minimum(piece * lanes, rows - lanes), "r")
            loaded = [
                block.load(sums, (r + i) * self._width + j * lanes, lanes) for i in range(lanes)
            ]
            for i, vector in enumerate(transpose(block, loaded)):
                block.store(square, i * lanes, vector)
            with block.loop(real, "m") as m:
                value = block.load(square, m * lanes, lanes)
                self._write_element(block.bind(column + m), Lane(first + r, lanes), value)

    def _write_element(self, row: Index, column: Index, total: Expr) -> None:
        self._result.write_epilogue(self._context, [*self._batch, row, column], total)
