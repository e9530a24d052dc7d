"""The epilogue of sums that the lanes of a warp hold as tensor cores do.

A warp stores 16 rows of its sums at a time in shared memory and takes them back, each lane some
that lie side by side in a row. On these it computes and stores what the stage makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tvm import tirx

from composite.compiler.tvm.codegen.access import Access, Index
from composite.compiler.tvm.codegen.block import Buffer, index, quotient, remainder
from composite.compiler.tvm.codegen.device_block import WARP
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.fragments import Fragments
from composite.compiler.tvm.strategy.cuda.vectors import (
    Lanes,
    Loads,
    device_block,
    read_in_place,
    vector_width,
)

_ROWS = 16
"""Rows that a warp stores at a time."""


class SumsEpilogue:
    """What a stage makes of its anchor, whose elements are the sums.

    A warp has ``columns`` of them side by side, a multiple of 16.
    """

    def __init__(self, stage: Stage, anchor: Tensor, columns: int, context: Context) -> None:
        self._stage = stage
        self._anchor = anchor
        self._context = context
        self._block = device_block(context)
        self._columns = columns
        # Pairs of elements that half a warp stores are then in different banks.
        self._row = columns + 8
        # Its own results are computed, never loaded: nobody has stored them yet.
        made = {anchor, *stage.stores}
        self._reading = replace(context, space=context.space.without(made))
        self._read = read_in_place(stage.stores, stage.shape, made, context)
        everything = [*stage.stores, *self._read]
        self._width = vector_width(everything, stage.shape[-1], context)

    def bytes(self, warps: int) -> int:
        """Return how much shared memory it takes."""
        return warps * _ROWS * self._row * 4

    def write(self, held: Fragments, pool: Buffer, sums: Buffer, at: Sequence[Index]) -> None:
        """Write it; the first of the warp's sums is the anchor's element ``at``."""
        block = self._block
        room = block.view(pool, "float32", "room")
        parts = int(sums.shape[0]) // (self._columns // 2)  # a lane has half a column of a part
        start = block.bind(index(held.warp * (_ROWS * self._row)), "start")
        own = block.bind(start + held.row * self._row + held.column * 2, "own")
        with block.loop(parts, "part") as part:
            for number in range(parts):
                with block.when(tirx.EQ(part, index(number))):
                    self._leave(room, own, sums, number)
            block.call("composite_warp_barrier")
            *batch, row, column = at
            first = block.bind(row + part * _ROWS, "row")
            self._take(held, room, start, [*batch, first, column])
            block.call("composite_warp_barrier")

    def _leave(self, room: Buffer, own: Expr, sums: Buffer, part: int) -> None:
        """Store a lane's sums where others of its warp take them."""
        along = self._columns // 8
        for i in range(along):
            for half in range(2):
                place = own + (half * 8 * self._row + i * 8)
                self._block.copy(room, place, sums, 4 * (part * along + i) + 2 * half, 2)

    def _take(self, held: Fragments, room: Buffer, start: Expr, at: Sequence[Index]) -> None:
        """Compute and store what is made of the sums that the warp has left."""
        block, width, together = self._block, self._width, self._columns // self._width
        *batch, row, column = at
        rows, columns = (index(self._context.size(d)) for d in self._stage.shape[-2:])
        with block.loop(_ROWS * together // WARP, "vector") as i:
            number = block.bind(held.lane + i * WARP, "number")
            y = block.bind(quotient(number, together), "y")
            x = block.bind(remainder(number, together) * width, "x")
            own = [block.bind(row + y, "row"), block.bind(column + x, "column")]
            with block.when(tirx.And(own[0] < rows, own[1] < columns)):
                cells = block.registers(width, "float32", "taken")
                block.copy(cells, 0, room, start + y * self._row + x, width)
                self._store([*batch, *own], [block.load(cells, k) for k in range(width)])

    def _store(self, at: list[Index], sums: Sequence[Expr]) -> None:
        access = self._reading.access()
        lanes = Lanes(self._context, at, self._width)
        _give(access, self._anchor, lanes, sums)
        Loads(self._reading, access, self._read).load(lanes)
        stores = self._stage.stores
        values = [[access.compute(t, place) for place in lanes.places] for t in stores]
        for tensor, elements in zip(stores, values, strict=True):
            lanes.store(tensor, elements)


def _give(access: Access, anchor: Tensor, lanes: Lanes, sums: Sequence[Expr]) -> None:
    """Let elements of the anchor be those that a lane has, which its column tells apart."""
    own = {id(place[-1]): value for place, value in zip(lanes.places, sums, strict=True)}

    def element(at: Sequence[Index]) -> Expr:
        return own[id(at[-1])] if len(sums) > 1 else sums[0]

    access.give(anchor, element)
