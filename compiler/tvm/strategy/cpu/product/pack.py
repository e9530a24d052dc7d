"""Pack the vector side of a product into panels ``[k][vectors of a panel]``.

The element-wise work that makes the factor, and the conversion of narrow numbers, are done while
packing; so are groups put together (:mod:`.steps`). Behind the last step of a panel is room for
one more, which holds what sums start with where that is not zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.codegen.transpose import transpose
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import mul
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cpu.product.steps import Step, StepReader
from composite.compiler.tvm.tir.block import (
    Block,
    Buffer,
    ceil_quotient,
    const,
    index,
    maximum,
    minimum,
    quotient,
    remainder,
)

_ONES = 0x01010101
"""A step of four ones."""

_ROWS = 4
"""Rows of ``[K, count]`` that are copied side by side."""


@dataclass(frozen=True)
class Panels:
    """A packed buffer.

    From ``base`` on it has room for ``depth`` steps of k of each panel of ``panel`` vectors.
    """

    buffer: Buffer
    depth: Expr | int
    panel: int
    lanes: int
    base: Expr | int = 0

    def place(self, j: Expr | int, k: Expr | int) -> Expr | int:
        """Return where vector j begins at step k."""
        width = self.panel * self.lanes
        return self.panel_at(quotient(j, self.panel)) + (
            k * width + remainder(j, self.panel) * self.lanes
        )

    def panel_at(self, number: Expr | int) -> Expr | int:
        """Return where a panel begins."""
        return self.base + number * (self.depth * self.panel * self.lanes)


class Packer:
    """Writes the packing of one group of vectors.

    Args:
        context: The kernel.
        tensor: The factor.
        k_first: Whether its matrices are ``[K, count]``.
        batch: Indices of its batch dimensions, already broadcast.
        count: How many columns there are in all.
        step: What is multiplied at a step of k; by default, elements as they are computed.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - a factor and how it lies
        self,
        context: Context,
        tensor: Tensor,
        k_first: bool,
        batch: list[Index],
        count: Expr | int,
        step: Step | None = None,
    ) -> None:
        step = step or Step.of_elements(compute_dtype(tensor.dtype))
        self._block = context.block
        self._k_first = k_first
        self._count = count
        self._reader = StepReader(context, (tensor, k_first), batch, step.size, step.vectors)

    def write(
        self, panels: Panels, start: Expr, vectors: Expr | int, k: Expr | int, depth: Expr | int
    ) -> None:
        """Pack ``vectors`` vectors from column ``start`` on, steps ``[k, k + depth)``.

        A vector that would pass the end starts earlier instead: it overlaps its neighbour.
        """
        if self._k_first:
            self._copy(panels, start, vectors, k, depth)
            return
        block, lanes = self._block, panels.lanes
        with block.loop(vectors, "j") as j:
            last = maximum(0, self._count - lanes)
            column = block.bind(minimum(start + j * lanes, last), "column")
            base = block.bind(panels.place(j, 0), "base")
            self._transpose(panels, column, base, k, depth)

    def _copy(
        self, panels: Panels, start: Expr, vectors: Expr | int, k: Expr | int, depth: Expr | int
    ) -> None:
        """Copy rows of ``[K, count]``: long contiguous reads, a few rows side by side."""
        block, lanes, count = self._block, panels.lanes, self._count
        long = count >= lanes if isinstance(count, int) else index(count) >= lanes
        with block.when(long):
            whole = quotient(self._reader.whole(k, depth), _ROWS)
            with block.loop(whole, "k") as four:
                run = (k, block.bind(four * _ROWS, "k"), _ROWS)
                self._copy_rows(panels, start, vectors, run)
            done = block.bind(index(whole * _ROWS), "done")
            with block.loop(depth - done, "k") as rest:
                self._copy_rows(panels, start, vectors, (k, block.bind(done + rest, "k"), 1))
        if long is True:
            return
        with (
            block.when(count < lanes),
            block.loop(depth, "k") as step,
            block.loop(vectors * lanes, "e") as e,
        ):
            j = quotient(e, lanes)
            value = self._reader.read(k + step, minimum(start + e, count - 1), 1)
            block.store(panels.buffer, panels.place(j, step) + (e - j * lanes), value)

    def _copy_rows(
        self,
        panels: Panels,
        start: Expr,
        vectors: Expr | int,
        run: tuple[Expr | int, Expr, int],
    ) -> None:
        """Copy some steps of k of every panel: ``run`` is (first k packed, step, how many)."""
        k, step, rows = run
        block, lanes = self._block, panels.lanes
        width = panels.panel * lanes
        with block.loop(quotient(vectors, panels.panel), "panel") as p:
            base = block.bind(panels.panel_at(p) + step * width, "base")
            at = block.bind(start + p * width, "at")
            columns = [
                block.bind(index(minimum(at + j * lanes, self._count - lanes)), "column")
                for j in range(panels.panel)
            ]
            for i in range(rows):
                for j, column in enumerate(columns):
                    value = self._reader.read(
                        k + step + i, Lane(column, lanes), lanes, is_whole=rows > 1
                    )
                    block.store(panels.buffer, base + i * width + j * lanes, value)

    def _transpose(
        self, panels: Panels, column: Expr, base: Expr, k: Expr | int, depth: Expr | int
    ) -> None:
        """Turn ``lanes`` rows of ``[count, K]`` into one vector a step, squares at a time."""
        block, lanes = self._block, panels.lanes
        width = panels.panel * lanes
        columns = [minimum(column + i, self._count - 1) for i in range(lanes)]
        whole = self._reader.whole(k, depth)

        def one_by_one(step: Expr | int) -> None:
            for i, c in enumerate(columns):
                value = self._reader.read(k + step, c, 1)
                block.store(panels.buffer, base + step * width + i, value)

        long = whole >= lanes if isinstance(whole, int) else index(whole) >= lanes
        with block.when(long):
            with block.loop(ceil_quotient(whole, lanes), "square") as s:
                step = block.bind(minimum(s * lanes, whole - lanes), "k")
                rows = [self._reader.read(Lane(k + step, lanes), c, lanes) for c in columns]
                for i, value in enumerate(transpose(block, rows)):
                    block.store(panels.buffer, base + (step + i) * width, value)
            with block.loop(depth - whole, "last") as last:
                one_by_one(block.bind(whole + last, "k"))
        if long is True:
            return
        with block.when(whole < lanes), block.loop(depth, "k") as step:
            one_by_one(step)


def write_starts(
    block: Block, step: Step, panels: Panels, vectors: Expr | int, depth: Expr | int
) -> None:
    """Write what sums start with behind ``depth`` packed steps, which are the whole of a piece.

    That is what was taken from the rows, times the sum of each column.
    """
    if not step.low:
        return
    lanes = panels.lanes
    dot, vector = step.dot(lanes), f"int32x{lanes}"
    ones = const(_ONES, vector)
    total = block.registers(1, vector)
    with block.loop(vectors, "j") as j:
        base = block.bind(index(panels.place(j, 0)), "base")
        block.store(total, 0, const(0, vector))
        with block.loop(depth, "k") as k:
            own = block.load(panels.buffer, base + k * (panels.panel * lanes), lanes)
            block.store(total, 0, dot(block, tirx.BufferLoad(total, [index(0)]), ones, own))
        value = mul(block, tirx.BufferLoad(total, [index(0)]), const(step.low, vector))
        block.store(panels.buffer, panels.place(j, panels.depth - 1), value)
