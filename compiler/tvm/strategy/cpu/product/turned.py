"""Few rows times a ``[N, K]`` matrix, each sum in the order of K: squares of the matrix are turned.

For products whose order must be that of tiles. Lanes run along N: as many neighbouring rows of the
matrix as a vector has lanes are loaded along K, a vector of each, and turned in registers, so that
nothing is packed and the matrix is read once. :mod:`.dots` adds up lanes instead, which is faster
and another order.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.codegen.transpose import transpose
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import from_storage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cpu.product.product import (
    Matrices,
    Product,
    ThinProduct,
    ThinWriter,
    batch_offset,
    is_packed,
    multiplies_pairs,
    work_cycles,
)
from composite.compiler.tvm.strategy.cpu.product.tile import PIECE
from composite.compiler.tvm.strategy.indexing import elements, unflatten
from composite.compiler.tvm.strategy.tasks import Tasks
from composite.compiler.tvm.tir.block import (
    Buffer,
    ceil_quotient,
    const,
    index,
    minimum,
    quotient,
    remainder,
)

_LEAST_LANES = 8
_TASK_COLUMNS = 64


class TurnedSquares(ThinProduct):
    """Products of few rows with a second factor stored as [N, K], of invariant kernels."""

    name = "turned"

    def match_product(self, product: Product, context: Context) -> ThinWriter | None:
        """Return what writes the product, if the second factor is contiguous along K."""
        if not context.invariant or not product.node.transpose_b:
            return None
        matrices = Matrices.of(product, context)
        if matrices is None or multiplies_pairs(product, context) or is_packed(product, context):
            return None
        lanes = context.lanes(product.dtype)
        if matrices.rows > max(lanes, _LEAST_LANES) * 7 // 8 or matrices.b.strides[-1] != 1:
            return None
        if min(matrices.columns, matrices.depth) < lanes:
            return None
        return _Writer(product, matrices, context)


class _Writer(ThinWriter):
    def tasks(self) -> Tasks:
        """Return the tasks."""
        product, context, matrices = self._product, self.context, self._matrices
        lanes, columns = context.lanes(product.dtype), matrices.columns
        groups = ceil_quotient(columns, _TASK_COLUMNS)
        batches = elements(product.batch, context)
        loads = quotient(batches * columns * matrices.depth, lanes)
        cycles = work_cycles(product, context, loads * max(matrices.rows, lanes // 4))

        def body(task: Expr) -> None:
            block = context.block
            batch = unflatten(context, block.bind(quotient(task, groups)), product.batch or (1,))
            first = block.bind(remainder(task, groups) * _TASK_COLUMNS, "first")
            vectors = ceil_quotient(minimum(_TASK_COLUMNS, columns - first), lanes)
            place = batch if product.batch else []
            writer = _Columns(product, matrices, context, place)
            with block.loop(vectors, "vector") as v:
                at = minimum(first + v * lanes, columns - lanes)
                writer.write(block.bind(index(at), "start"))

        key = (TurnedSquares.name, *product.sizes)
        return Tasks(key, batches * groups, cycles, body)


class _Columns:
    """A vector of columns of every row."""

    def __init__(
        self, product: Product, matrices: Matrices, context: Context, batch: list[Index]
    ) -> None:
        self._product = product
        self._context = context
        self._block = context.block
        self._batch = batch
        self._matrices = matrices
        self._rows = matrices.rows
        self._lanes = context.lanes(product.dtype)
        self._vector = f"{product.dtype}x{self._lanes}"
        self._a_base = batch_offset(product.node.a, matrices.a, batch)
        self._b_base = batch_offset(product.node.b, matrices.b, batch)

    def write(self, start: Expr) -> None:
        """Compute a vector of columns from one on, and store what is made of it."""
        block, depth, lanes = self._block, self._matrices.depth, self._lanes
        totals, parts = (block.registers(self._rows, self._vector) for _ in range(2))
        self._clear(totals)
        pitch = self._matrices.b.strides[-2]
        lines = [
            block.bind(index(self._b_base + (start + j) * pitch), "line") for j in range(lanes)
        ]
        whole, rest = divmod(depth, PIECE)
        with block.loop(whole, "piece") as piece:
            self._clear(parts)
            first = block.bind(piece * PIECE, "k")
            with block.loop(PIECE // lanes, "square") as square:
                self._add_square(parts, lines, block.bind(first + square * lanes, "k"))
            self._put_aside(totals, parts)
        if rest:
            self._clear(parts)
            with block.loop(rest // lanes, "square") as square:
                at = block.bind(whole * PIECE + square * lanes, "k")
                self._add_square(parts, lines, at)
            if rest % lanes:  # a square that overlaps, without the steps that were added
                self._add_square(parts, lines, depth - lanes, lanes - rest % lanes)
            self._put_aside(totals, parts)
        for row in range(self._rows):
            value = block.let(tirx.BufferLoad(totals, [index(row)]))
            at = [*self._batch, row, Lane(start, lanes)]
            self._product.write_epilogue(self._context, at, value)

    def _clear(self, sums: Buffer) -> None:
        for row in range(self._rows):
            self._block.store(sums, row, const(0, self._vector))

    def _put_aside(self, totals: Buffer, parts: Buffer) -> None:
        for row in range(self._rows):
            total, part = (tirx.BufferLoad(b, [index(row)]) for b in (totals, parts))
            self._block.store(totals, row, total + part)

    def _add_square(
        self, sums: Buffer, lines: Sequence[Expr], k: Expr | int, skipped: int = 0
    ) -> None:
        """Add as many steps from k on as there are lanes, but for some."""
        block, lanes = self._block, self._lanes
        a, b = self._matrices.a, self._matrices.b
        size = ITEM_SIZE[b.storage.dtype]
        ahead = self._context.machine.prefetch // size
        loaded = []
        for line in lines:
            block.prefetch(b.storage.buffer, line + k + ahead)
            raw = block.load(b.storage.buffer, line + k, lanes)
            loaded.append(block.let(from_storage(raw, b.storage.dtype)))
        row_axis, k_axis = (-1, -2) if self._product.node.transpose_a else (-2, -1)
        for step, vector in enumerate(transpose(block, loaded)):
            if step < skipped:
                continue
            for row in range(self._rows):
                at = self._a_base + row * a.strides[row_axis] + (k + step) * a.strides[k_axis]
                raw = tirx.BufferLoad(a.storage.buffer, [index(at)])
                factor = block.let(tirx.Broadcast(from_storage(raw, a.storage.dtype), lanes))
                total = tirx.BufferLoad(sums, [index(row)])
                block.store(sums, row, total + factor * vector)
