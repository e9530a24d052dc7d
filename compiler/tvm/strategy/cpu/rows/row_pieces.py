"""Few long rows: cut into pieces, so that several threads work on one row.

Threads share the pieces of one sweep at a time. Each piece stores its totals in a small buffer,
which one thread adds up before the next sweep begins.
"""

from __future__ import annotations

from functools import partial

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE, compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cpu.rows.accumulate import Accumulator
from composite.compiler.tvm.strategy.cpu.rows.row_loops import Kept, RowLoops
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.strategy.row_program import RowProgram, Sweep
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import (
    Buffer,
    index,
    maximum,
    minimum,
    quotient,
    remainder,
)


def piece_elements(context: Context) -> int:
    """Return the elements in a piece, unless those of a place of the first dimension are more."""
    return context.machine.kept // ITEM_SIZE["float32"]


class RowPieces:
    """Writes the sweeps over rows, sweep by sweep."""

    def __init__(self, program: RowProgram, context: Context, lanes: int) -> None:
        self._program = program
        self._context = context
        self._block = context.block
        self._lanes = lanes
        self._rows = context.size(product(program.rows))
        self._width = context.size(product(program.inner))
        self._first = context.size(program.inner[0])
        rest = context.size(product(program.inner[1:]))
        self._piece = maximum(1, quotient(piece_elements(context), maximum(1, rest)))
        pieces = quotient(self._first + (self._piece - 1), self._piece)
        self._pieces = self._block.bind(pieces, "pieces")
        self._kept = {t: self._buffer(t, self._rows * self._width) for t in program.keeps}
        self._totals: dict[Tensor, Buffer] = {}

    def write(self) -> None:
        """Write all sweeps."""
        program = self._program
        for one, values in zip(program.sweeps, program.values, strict=True):
            parts = [self._buffer(t, self._rows * self._pieces) for t in one.reductions]

            cycles = quotient(self._rows * self._width * one.cost, self._lanes)
            piece = partial(self._write_piece, one, parts)
            tasks(self._context, self._rows * self._pieces, cycles, piece)
            totals = [self._buffer(t, self._rows) for t in one.reductions]
            with self._block.loop(self._rows, "row") as counter:
                row = self._block.bind(counter + 0, "row")
                for node, total, part in zip(one.reductions.values(), totals, parts, strict=True):
                    self._block.store(total, row, self._add_up(node, part, row))
                self._totals |= dict(zip(one.reductions, totals, strict=True))
                self._loops(row).store_values(values)

    def _buffer(self, tensor: Tensor, size: Expr | int) -> Buffer:
        return self._block.workspace(size, compute_dtype(tensor.dtype), "pieces")

    def _loops(self, row: Expr) -> RowLoops:
        """Return a row with the totals of the sweeps before."""
        place = unflatten(self._context, row, self._program.rows)
        begin = self._block.bind(index(row * self._width), "begin")
        kept = {t: Kept(buffer, begin) for t, buffer in self._kept.items()}
        loops = RowLoops(self._program, self._context, self._lanes, place, kept)
        for tensor, total in self._totals.items():
            loops.know(tensor, self._block.let(self._block.load(total, row)))
        return loops

    def _write_piece(self, one: Sweep, parts: list[Buffer], task: Expr) -> None:
        block = self._block
        start = block.bind(remainder(task, self._pieces) * self._piece, "start")
        count = block.bind(index(minimum(self._piece, self._first - start)), "count")
        loops = self._loops(block.bind(quotient(task, self._pieces), "row"))
        loops.learn(one.values)
        for total, part in zip(loops.run(one, start, count), parts, strict=True):
            block.store(part, task, total.result())

    def _add_up(self, node: Reduce, parts: Buffer, row: Expr) -> Expr:
        total = Accumulator.of(self._context, node, lanes=1)
        with self._block.loop(self._pieces, "piece") as piece:
            total.add(0, self._block.load(parts, row * self._pieces + piece))
            if total.has_blocks:
                total.end_block()
        return total.result()
