"""Few rows times a ``[N, K]`` matrix: dot products along K, the matrix read once.

Lanes run along K. ``rows x columns x unroll`` sums, at least 8, keep the multipliers busy. The
columns that are computed at a time are far apart, and the next ones follow each of them: so there
are a few long streams, which are prefetched, where neighbouring columns would be many short ones.
Once a vector's worth of columns is computed in each stream, butterflies add the lanes of the sums,
which yields one vector of the result for each stream and row. Memory bounds one row, multiplication
four and more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane, Storage
from composite.compiler.tvm.codegen.transpose import butterfly
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.machine import LINE_BYTES
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
from composite.compiler.tvm.strategy.indexing import elements, unflatten
from composite.compiler.tvm.strategy.tasks import Tasks
from composite.compiler.tvm.tir.block import (
    Block,
    Buffer,
    ceil_quotient,
    const,
    index,
    minimum,
    quotient,
    remainder,
)

_SHAPES = {1: (4, 2), 2: (4, 1), 3: (2, 2), 4: (4, 1)}
"""Rows of the result -> (columns at a time, steps of K at a time), as far as there are registers
for so many sums; of more rows two columns and one step."""
_LEAST_LANES = 8
"""Lanes that are reckoned with where a vector has fewer."""
_TASK_COLUMNS = 64
_STEPS = 256
"""Vectors that are added up by themselves where there are many: a longer sum loses accuracy."""


class Dots(ThinProduct):
    """Products of few rows with a second factor stored as [N, K].

    Few are up to 7 of 8 lanes: vectors along the rows, the other way, would be filled less.
    """

    name = "dots"

    def match_product(self, product: Product, context: Context) -> ThinWriter | None:
        """Return what writes the product, if both factors are contiguous along K."""
        if context.invariant:  # it adds up lanes, and tiles do not
            return None
        node, matrices = product.node, Matrices.of(product, context)
        if matrices is None or not node.transpose_b:
            return None
        lanes = context.lanes(product.dtype)
        # Vectors of pairs along the rows take two steps at a time.
        filled = lanes // 2 if multiplies_pairs(product, context) else lanes
        if matrices.rows > max(filled, _LEAST_LANES) * 7 // 8:
            return None
        if min(matrices.columns, matrices.depth) < lanes:
            return None
        if (node.transpose_a and matrices.rows != 1) or is_packed(product, context):
            return None
        step = matrices.a.strides[-2 if node.transpose_a else -1]
        if step != 1 or matrices.b.strides[-1] != 1:
            return None
        return _Writer(product, matrices, context)


class _Writer(ThinWriter):
    def tasks(self) -> Tasks:
        """Return the tasks."""
        product, context = self._product, self.context
        lanes = context.lanes(product.dtype)
        columns, depth = self._matrices.columns, self._matrices.depth
        share = context.choose("dots.task", (16, 32, _TASK_COLUMNS, 128, 256), _TASK_COLUMNS)
        groups = ceil_quotient(columns, share)
        batches = elements(product.batch, context)
        arithmetic = quotient(batches * columns * depth * self._matrices.rows, lanes)
        cycles = work_cycles(product, context, arithmetic)

        def body(task: Expr) -> None:
            block = context.block
            batch = unflatten(context, block.bind(quotient(task, groups)), product.batch or (1,))
            first = block.bind(remainder(task, groups) * share, "first")
            vectors = ceil_quotient(minimum(share, columns - first), lanes)
            place = batch if product.batch else []
            _Columns(product, self._matrices, context, place).write(first, vectors)

        return Tasks((Dots.name, *product.sizes, share), batches * groups, cycles, body)


class _Columns:
    """Some columns of the result, a vector's worth or several of them at a time."""

    def __init__(
        self, product: Product, matrices: Matrices, context: Context, batch: list[Index]
    ) -> None:
        self._product = product
        self._context = context
        self._block: Block = context.block
        self._batch = batch
        self._lanes = context.lanes(product.dtype)
        self._vector = f"{product.dtype}x{self._lanes}"
        self._rows = matrices.rows
        columns, unroll = _SHAPES.get(self._rows, (2, 1))
        # Powers of two, so that a vector's worth of columns is whole passes. In registers are the
        # sums, a vector of each column, and one of a row.
        registers = context.target.registers
        most = min(self._lanes, (registers - 1) // (self._rows + 1))
        fit = [c for c in (1, 2, 4, 8) if c <= most]
        self._columns = context.choose("dots.columns", fit, min(columns, fit[-1]))
        most = max(1, registers // 2 // (self._rows * self._columns))
        fit = [u for u in (1, 2, 4) if u <= most]
        self._unroll = context.choose("dots.unroll", fit, min(unroll, fit[-1]))
        self._depth = matrices.depth
        self._count = matrices.columns
        self._a, self._b = matrices.a, matrices.b
        self._a_base = batch_offset(product.node.a, self._a, batch)
        self._b_base = batch_offset(product.node.b, self._b, batch)

    def write(self, first: Expr, vectors: Expr | int) -> None:
        """Compute ``vectors`` vectors of columns of every row, from column ``first`` on.

        The last vector starts earlier where it would pass the end.
        """
        block, streams = self._block, self._columns
        stretch = block.bind(quotient(vectors, streams), "stretch")
        with block.loop(stretch, "vector") as v:
            self._write([self._start(first, stretch * j + v) for j in range(streams)])
        if streams > 1:
            done = block.bind(stretch * streams, "done")
            with block.loop(vectors - done, "vector") as v:
                self._write([self._start(first, done + v)])

    def _start(self, first: Expr, vector: Expr) -> Expr:
        """Return the first column of a vector."""
        at = first + vector * self._lanes
        return self._block.bind(minimum(at, self._count - self._lanes), "start")

    def _write(self, starts: Sequence[Expr]) -> None:
        """Compute the vectors that start at these columns: of one each, or of neighbours a pass."""
        block, lanes = self._block, self._lanes
        size = lanes * len(starts)
        parts = block.workspace(self._rows * size * lanes, self._product.dtype, "parts")
        own = self._columns // len(starts)  # columns that a pass takes of each vector
        with block.loop(lanes // own, "pass") as p:
            ahead = p * own
            columns = [block.bind(s + ahead + j, "column") for s in starts for j in range(own)]
            for i, total in enumerate(self._dots(columns)):
                row, c = divmod(i, self._columns)
                vector, j = divmod(c, own)
                place = row * size + vector * lanes + (ahead + j)
                block.store(parts, place * lanes, total)
        for row in range(self._rows):
            for i, start in enumerate(starts):
                base = row * size + i * lanes
                vectors = [block.load(parts, (base + j) * lanes, lanes) for j in range(lanes)]
                at = [*self._batch, row, Lane(start, lanes)]
                self._product.write_epilogue(self._context, at, add_lanes(block, vectors))

    def _dots(self, columns: Sequence[Expr]) -> list[Expr]:
        """Return a vector of partial sums for each row and column, rows first."""
        block = self._block
        count_of_sums = self._rows * self._columns
        sums = block.registers(count_of_sums * self._unroll, self._vector)
        for i in range(count_of_sums * self._unroll):
            block.store(sums, i, const(0, self._vector))
        stride = self._b.strides[-2]
        bases = [block.bind(index(self._b_base + c * stride), "b") for c in columns]
        step = self._lanes * self._unroll
        whole = self._depth // step

        def steps(first: Expr | int, count: Expr | int) -> None:
            with block.loop(count, "k") as k:
                at = block.bind((first + k) * step, "k")
                self._prefetch(bases, at, step)
                for u in range(self._unroll):
                    self._step(sums, u * count_of_sums, bases, at + u * self._lanes)

        totals = self._in_pieces(sums, whole, steps)
        for k_rest in range(whole * step, self._depth - self._lanes + 1, self._lanes):
            self._step(sums, 0, bases, k_rest)
        if self._depth % self._lanes:
            self._last(sums, bases)
        return [self._total([sums, *totals], i, count_of_sums) for i in range(count_of_sums)]

    def _prefetch(self, bases: Sequence[Expr], k: Expr, count: int) -> None:
        """Prefetch of each stream what follows ``count`` elements from k on after a while.

        What the hardware fetches by itself comes too late where several rows are multiplied: the
        instructions that a CPU looks ahead are then too few lines.
        """
        storage = self._b.storage
        size = ITEM_SIZE[storage.dtype]
        ahead = self._context.machine.prefetch // size
        for base in bases:
            for i in range(0, count, LINE_BYTES // size):
                self._block.prefetch(storage.buffer, base + k + (ahead + i))

    def _in_pieces(
        self, sums: Buffer, whole: int, steps: Callable[[Expr | int, Expr | int], None]
    ) -> list[Buffer]:
        """Write all steps; return what the sums of pieces were added to, where there are many."""
        if whole <= 2 * _STEPS:
            steps(0, whole)
            return []
        block, count = self._block, self._rows * self._columns * self._unroll
        totals = block.workspace(count * self._lanes, self._product.dtype, "totals")
        zero = const(0, self._vector)
        for i in range(count):
            block.store(totals, i * self._lanes, zero)
        with block.loop(whole // _STEPS, "piece") as piece:
            steps(block.bind(piece * _STEPS, "first"), _STEPS)
            for i in range(count):
                so_far = block.load(totals, i * self._lanes, self._lanes)
                value = so_far + tirx.BufferLoad(sums, [index(i)])
                block.store(totals, i * self._lanes, value)
                block.store(sums, i, zero)
        steps(whole // _STEPS * _STEPS, whole % _STEPS)
        return [totals]

    def _total(self, buffers: Sequence[Buffer], i: int, count: int) -> Expr:
        """Return the vector of a sum from all buffers that hold a part of it."""
        sums, *others = buffers
        places = [u * count + i for u in range(self._unroll)]
        parts = [tirx.BufferLoad(sums, [index(place)]) for place in places]
        parts += [
            self._block.load(other, place * self._lanes, self._lanes)
            for other in others
            for place in places
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def _step(
        self,
        sums: Buffer,
        first: int,
        bases: Sequence[Expr],
        k: Expr | int,
        mask: Expr | None = None,
    ) -> None:
        """Multiply one vector of K for each row with each column."""
        block, lanes = self._block, self._lanes

        def load(storage: Storage, at: Expr | int) -> Expr:
            value = from_storage(block.load(storage.buffer, at, lanes), storage.dtype)
            if mask is not None:
                value = tirx.Select(mask, value, const(0, self._vector))
            return block.let(value)

        columns = [load(self._b.storage, base + k) for base in bases]
        stride = 0 if self._rows == 1 else self._a.strides[-2]
        for i in range(self._rows):
            x = load(self._a.storage, self._a_base + i * stride + k)
            for j, column in enumerate(columns):
                slot = index(first + i * self._columns + j)
                block.store(sums, slot, tirx.BufferLoad(sums, [slot]) + x * column)

    def _last(self, sums: Buffer, bases: Sequence[Expr]) -> None:
        """Add the last few of K from a vector that overlaps; what was counted is masked out."""
        new = self._depth % self._lanes
        lane = tirx.Ramp(const(0, "int32"), const(1, "int32"), self._lanes)
        mask = lane >= const(self._lanes - new, f"int32x{self._lanes}")
        self._step(sums, 0, bases, self._depth - self._lanes, mask)


def add_lanes(block: Block, vectors: Sequence[Expr]) -> Expr:
    """Return the vector of the sums of each vector's lanes; as many vectors as lanes."""
    size = len(vectors)
    current = [block.let(v) for v in vectors]
    width = 1
    while len(current) > 1:
        following = []
        for a, b in zip(current[::2], current[1::2], strict=True):
            low, high = butterfly(width, size)
            following.append(block.let(tirx.Shuffle([a, b], low) + tirx.Shuffle([a, b], high)))
        current = following
        width *= 2
    return current[0]
