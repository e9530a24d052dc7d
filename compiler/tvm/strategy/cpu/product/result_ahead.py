"""What follows a product is prefetched while it is multiplied: what is read of it, and written.

The sums of a block of rows lie in a near cache. What its epilogue reads beside them, and where it
stores, come from memory in short pieces of many rows, which no hardware foresees: so each tile
asks for its own part while it is multiplied. Only where something is read that no L2 cache holds:
stores alone wait for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from composite.compiler.tvm.codegen.access import Index, Strided, strided
from composite.compiler.tvm.ir.dims import ceildiv, static_size
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.machine import LINE_BYTES
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cost import read_beside
from composite.compiler.tvm.tir.block import index, minimum, quotient, remainder

Ask = Callable[[Expr | int], None]


class Part(NamedTuple):
    """Elements of the result: from a row and a column on, so many."""

    row: Expr
    column: Expr
    rows: int
    columns: int


class ResultAhead:
    """Prefetches what a stage makes of a product, in the matrix of the given batch indices.

    ``unroll`` steps of a sum are one turn. Without a stage nothing is prefetched.
    """

    def __init__(
        self, stage: Stage | None, context: Context, batch: Sequence[Index], unroll: int
    ) -> None:
        self._block = context.block
        self._batch = batch
        self._unroll = unroll
        read = [] if stage is None else _places(read_beside(stage, context), stage, context)
        results = _places(stage.stores, stage, context) if stage is not None and read else []
        self._places = [*((where, False) for where in read), *((where, True) for where in results)]

    def asks(self, part: Part, depth: Expr | int) -> Ask | None:
        """Return what prefetches a part at a step of a sum of so many; None if nothing."""
        if not self._places or not isinstance(depth, int):
            return None
        turns = max(1, depth // self._unroll)
        asks = [self._of_place(*place, part, turns) for place in self._places]

        def ask(k: Expr | int) -> None:
            turn = self._block.bind(quotient(k, self._unroll), "turn")
            for one in asks:
                one(turn)

        return ask

    def _of_place(self, where: Strided, is_result: bool, part: Part, turns: int) -> Ask:
        block = self._block
        together = LINE_BYTES // ITEM_SIZE[where.storage.dtype]
        lines = ceildiv(part.columns, together)  # of a row
        total = part.rows * lines
        each = ceildiv(total, turns)
        at = (*self._batch, part.row, part.column)
        first = sum((i * s for i, s in zip(at, where.strides, strict=True)), where.offset)
        first = block.bind(index(first), "ahead")

        def ask(turn: Expr | int) -> None:
            for n in range(each):
                number = block.bind(minimum(turn * each + n, total - 1), "line")
                row, line = quotient(number, lines), remainder(number, lines)
                to = first + row * where.strides[-2] + line * together
                block.prefetch(where.storage.buffer, to, write=is_result, level=2)

        return ask


def _places(tensors: Sequence[Tensor], stage: Stage, context: Context) -> list[Strided]:
    """Return where those tensors lie that have the result's elements and fill no L2 cache."""
    size = static_size(stage.shape) or 0
    found = [strided(t, context.space) for t in tensors if t.shape == stage.shape]
    return [
        where
        for where in found
        if where is not None
        and where.strides[-1] == 1
        and size * ITEM_SIZE[where.storage.dtype] > context.machine.near
    ]
