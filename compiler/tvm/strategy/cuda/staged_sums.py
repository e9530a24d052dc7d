"""The epilogue of sums that the lanes of a warp hold as tensor cores do.

A warp stores some rows of its sums at a time in shared memory and takes them back, each lane some
that lie side by side in a row. On these it computes and stores what the stage makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.codegen.device_block import WARP
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.fragments import Fragments
from composite.compiler.tvm.strategy.cuda.made_of_sums import MadeOfSums
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.tir.block import Buffer, index, quotient, remainder

_ROWS = 16
"""Rows that a warp stores at a time; columns, if the sums are those of the transpose."""
_TURNED_ROWS = 64
"""Rows of these."""


class SumsEpilogue:
    """What a stage makes of its anchor, whose elements are the sums.

    A warp has ``columns`` of them side by side, a multiple of 16. They are those of the anchor's
    last two dimensions, or, if they are ``turned``, of its transpose.
    """

    def __init__(
        self, stage: Stage, anchor: Tensor, columns: int, context: Context, *, turned: bool = False
    ) -> None:
        self._shape = stage.shape
        self._context = context
        self._block = device_block(context)
        self._turned = turned
        self._rows, self._columns = (_TURNED_ROWS, _ROWS) if turned else (_ROWS, columns)
        # What the lanes store at a time is then in different banks.
        self._row = self._columns + (4 if turned else 8)
        self._made = MadeOfSums(stage, anchor, context)

    def bytes(self, warps: int) -> int:
        """Return how much shared memory it takes."""
        return warps * self._rows * self._row * 4

    def write(self, held: Fragments, pool: Buffer, sums: Buffer, at: Sequence[Index]) -> None:
        """Write it; the first of the warp's sums is the anchor's element ``at``."""
        block = self._block
        room = block.view(pool, "float32", "room")
        parts = int(sums.shape[0]) * WARP // (self._rows * self._columns)
        start = block.bind(index(held.warp * (self._rows * self._row)), "start")
        own = block.bind(start + self._place(held.row, held.column * 2), "own")
        with block.loop(parts, "part") as part:
            for number in range(parts):
                with block.when(tirx.EQ(part, index(number))):
                    self._leave(room, own, sums, number)
            block.call("composite_warp_barrier")
            *batch, row, column = at
            first = block.bind(row + part * self._rows, "row")
            self._take(held, room, start, [*batch, first, column])
            block.call("composite_warp_barrier")

    def _place(self, row: Expr | int, column: Expr | int) -> Expr:
        """Return where an element of the sums lies in shared memory."""
        return index(column * self._row + row if self._turned else row * self._row + column)

    def _leave(self, room: Buffer, own: Expr, sums: Buffer, part: int) -> None:
        """Store a lane's sums where others of its warp take them."""
        block, along = self._block, self._rows * self._columns // 128  # 16 x 8 at a time
        for i in range(along):
            for half in range(2):
                place, cell = self._place(half * 8, i * 8), 4 * (part * along + i) + 2 * half
                if not self._turned:
                    block.copy(room, own + place, sums, cell, 2)
                    continue
                for n in range(2):
                    value = block.load(sums, cell + n)
                    block.store(room, own + place + n * self._row, value)

    def _take(self, held: Fragments, room: Buffer, start: Expr, at: Sequence[Index]) -> None:
        """Compute and store what is made of the sums that the warp has left."""
        block, width = self._block, self._made.width
        together = self._columns // width
        *batch, row, column = at
        rows, columns = (index(self._context.size(d)) for d in self._shape[-2:])
        with block.loop(self._rows * together // WARP, "vector") as i:
            number = block.bind(held.lane + i * WARP, "number")
            y = block.bind(quotient(number, together), "y")
            x = block.bind(remainder(number, together) * width, "x")
            own = [block.bind(row + y, "row"), block.bind(column + x, "column")]
            with block.when(tirx.And(own[0] < rows, own[1] < columns)):
                cells = block.registers(width, "float32", "taken")
                block.copy(cells, 0, room, start + y * self._row + x, width)
                self._made.store([*batch, *own], [block.load(cells, k) for k in range(width)])
