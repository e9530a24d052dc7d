"""Factors of a product in shared memory as four warps together read them (``wgmma``).

Pieces of 64 elements of 16 bits, or 32 of TF32, along the inner dimension lie there in rows of 128
bytes: of the inner dimension where that is the near one in memory, else (16 bits only) of 64
elements of the other dimension, one such square after the other. In each group
of eight rows the 16 bytes that a thread copies are swizzled by the number of the row (PTX ISA,
"Swizzling modes"), so that neither the copies nor the products meet in a bank.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Strided, strided
from composite.compiler.tvm.codegen.device_block import Place
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.staged_factor import (
    Corner,
    Factor,
    Team,
    copied_together,
    is_inner_near,
    near_axis,
)
from composite.compiler.tvm.strategy.cuda.vectors import device_block, is_multiple
from composite.compiler.tvm.tir.block import Buffer, const, index, quotient, remainder

_ROW = 128
"""Bytes of a row."""
PIECE = _ROW // 2
"""Elements of 16 bits of the inner dimension that are in shared memory at a time."""
WIDE_PIECE = _ROW // 4
"""The same of TF32."""
GROUP_ROWS = 64
"""Rows that four warps multiply together."""
DEPTH = 16
"""Elements of 16 bits of the inner dimension that one instruction multiplies."""
_VECTOR = 16
"""Bytes that a thread copies at a time."""
_REPEAT = 8
"""Rows after which the swizzle repeats, and vectors of a row."""


def is_swizzled(factor: Factor, context: Context) -> bool:
    """Return whether a factor can be copied 16 bytes at a time, as a swizzle needs."""
    return copied_together(factor, context) == _VECTOR // _item(factor)


def _item(factor: Factor) -> int:
    return ITEM_SIZE[factor.tensor.dtype]


class SwizzledFactor:
    """A factor of which shared memory holds pieces of ``side`` rows or columns.

    Attributes:
        elements: Of a piece.
        far: 1 if the other dimension is the near one in memory, else 0, as ``wgmma`` names it.
    """

    def __init__(self, factor: Factor, side: int, team: Team, context: Context) -> None:
        self._factor = factor
        self._context = context
        self._block = device_block(context)
        item = _item(factor)
        self._raw = "float32" if item == 4 else "uint16"
        self._together = _VECTOR // item
        self._piece = _ROW // item
        self.elements = side * self._piece
        self._where = _strides(factor, context)
        axis = near_axis(self._where)
        self.far = 0 if is_inner_near(factor, context) else 1
        if self.far and item == 4:
            raise ValueError("the inner dimension of a factor in TF32 must be the near one")
        self._step = self._where.strides[-3 - axis]  # between rows
        self._side = side
        near = side if self.far else self._piece
        # A thread copies the same 16 bytes of several rows, whose numbers differ by whole swizzles.
        self._across = near // self._together
        self._rows = team.threads // self._across
        if self._rows % _REPEAT:
            raise ValueError(f"{team.threads} threads do not swizzle rows of {near} elements")
        self._count = self.elements // self._together // team.threads
        self._row = self._block.bind(quotient(team.thread, self._across), "row")
        self._column = self._block.bind(remainder(team.thread, self._across), "column")

    def view(self, pool: Buffer) -> Buffer:
        """Return shared memory as an array of the factor's elements."""
        return self._block.view(pool, self._raw)

    def matrix(self, slot: Place, other: Expr | int = 0) -> Expr:
        """Return what a product is told of a piece, from a multiple of 64 of ``other`` on."""
        address = self._block.address(slot.buffer, slot.at + other * self._piece)
        return self._block.let(tirx.call_pure_extern("uint64", "composite_matrix", address))

    def further(self, inner: int) -> Expr:
        """Return what is added to that for a product from an element of ``inner`` on.

        It is a multiple of what one instruction multiplies.
        """
        square, within = divmod(inner, self._piece)
        elements = square * self.elements + within * (self._piece if self.far else 1)
        return const(elements // self._together, "uint64")

    def begin(self, slot: Place, start: tuple[Sequence[Index], Expr], inner: Expr) -> None:
        """Have the threads of a block bring the piece of the inner dimension from ``inner`` on."""
        block, place = self._block, self._first_place()
        corner = Corner(start[0], start[1], inner)
        to = block.bind(slot.at + place, "to")
        source = block.bind(self._first_element(corner), "from")
        for number in range(self._count):
            rows = number * self._rows
            block.begin_copy(
                Place(slot.buffer, to + rows * self._piece),
                Place(self._where.storage.buffer, source + rows * self._step),
                self._together,
                self._is_inside(corner, rows),
            )

    def _first_place(self) -> Expr:
        """Return where the first 16 bytes of a thread lie in a piece."""
        square = quotient(self._column, _REPEAT)
        within = remainder(self._column, _REPEAT)
        swizzled = tirx.bitwise_xor(index(within), index(remainder(self._row, _REPEAT)))
        row, square = self._row * self._piece, square * self._piece**2
        place = square + row + swizzled * self._together
        return self._block.bind(place, "place")

    def _first_element(self, corner: Corner) -> Expr:
        """Return which element a thread's first one is in memory."""
        column = self._column * self._together
        other, deep = (column, self._row) if self.far else (self._row, column)
        place = self._factor.place(corner.batch, corner.start + other, corner.inner + deep)
        strides = self._where.strides
        return index(sum((i * s for i, s in zip(place, strides, strict=True)), self._where.offset))

    def _is_inside(self, corner: Corner, rows: int) -> Expr:
        """Return whether the factor has what a thread copies, ``rows`` after its first row."""
        size, depth = (self._context.size(d) for d in (self._factor.size, self._factor.depth))
        column, row = self._column * self._together, self._row + rows
        other, deep = (column, row) if self.far else (row, column)
        if is_multiple(depth, self._piece):
            deep = 0  # all of a piece is there, or none of it
        inside = corner.inner + deep < index(depth)
        if is_multiple(size, self._side):
            return inside
        return tirx.And(inside, corner.start + other < index(size))


def _strides(factor: Factor, context: Context) -> Strided:
    where = strided(factor.tensor, context.space)
    if where is None:
        raise ValueError("a factor that strides do not describe is not copied")
    return where
