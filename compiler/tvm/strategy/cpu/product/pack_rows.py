"""Pack rows that are broadcast, where a product cannot read them in place.

16-bit floats are widened once for all panels of a task, narrow integers less their zero point, or
they are made groups where the target multiplies those and they do not lie so already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cpu.product.steps import Step, StepReader
from composite.compiler.tvm.tir.block import (
    Block,
    Buffer,
    ceil_quotient,
    index,
    minimum,
)

_APART = 16
"""More steps of a row than are used, lest all rows fall into the same sets of the cache."""


@dataclass(frozen=True)
class PackedRows:
    """A buffer of ``count`` rows, whose elements are strides apart along rows and steps."""

    buffer: Buffer
    row_stride: Expr | int
    step_stride: Expr | int
    count: Expr | int

    @classmethod
    def room(
        cls, block: Block, dtype: str, rows: Expr | int, steps: Expr | int, *, k_first: bool
    ) -> PackedRows:
        """Return room for rows, steps next to each other unless the factor is ``[K, count]``."""
        pitch = rows if k_first else steps + _APART
        buffer = block.workspace((steps if k_first else rows) * pitch, dtype, "rows")
        row_stride, step_stride = (1, pitch) if k_first else (pitch, 1)
        return cls(buffer, row_stride, step_stride, rows)

    def place(self, row: Expr | int, step: Expr | int) -> Expr | int:
        """Return where a step of a row is."""
        return row * self.row_stride + step * self.step_stride


class RowPacker:
    """Writes the packing of some rows, at the given batch indices."""

    def __init__(
        self,
        context: Context,
        factor: tuple[Tensor, bool],
        batch: list[Index],
        step: Step,
        lanes: int,
    ) -> None:
        self._block = context.block
        self._k_first = factor[1]
        self._lanes = lanes
        self._reader = StepReader(context, factor, batch, step.size, step.rows)

    def write(self, room: PackedRows, first: Expr, k: Expr | int, depth: Expr | int) -> None:
        """Pack as many rows from ``first`` on as ``room`` counts, steps ``[k, k + depth)``."""
        block, k_first = self._block, self._k_first

        def copy(row: Expr | int, step: Expr | int, lanes: int) -> None:
            rows: Index = first + row
            steps: Index = k + step
            if lanes > 1 and k_first:
                rows = Lane(index(rows), lanes)
            elif lanes > 1:
                steps = Lane(index(steps), lanes)
            value = self._reader.read(steps, rows, lanes)
            block.store(room.buffer, room.place(row, step), value)

        if k_first:
            with block.loop(depth, "k") as step:
                self._line(room.count, room.count, lambda row, lanes: copy(row, step, lanes))
            return
        whole = self._reader.whole(k, depth)
        with block.loop(room.count, "r") as row:
            self._line(depth, whole, lambda step, lanes: copy(row, step, lanes))

    def _line(
        self, count: Expr | int, whole: Expr | int, copy: Callable[[Expr | int, int], None]
    ) -> None:
        """Copy what lies side by side: vectors, the last of which overlaps, and what is no whole.

        If there are fewer than a vector has lanes, they are copied one by one.
        """
        block, lanes = self._block, self._lanes
        long = whole >= lanes if isinstance(whole, int) else index(whole) >= lanes
        with block.when(long):
            with block.loop(ceil_quotient(whole, lanes), "v") as v:
                copy(block.bind(minimum(v * lanes, whole - lanes), "at"), lanes)
            with block.loop(count - whole, "last") as last:
                copy(block.bind(whole + last, "at"), 1)
        if long is True:
            return
        with block.when(whole < lanes), block.loop(count, "at") as at:
            copy(at, 1)
