"""Few rows times a ``[K, N]`` matrix: rows of the matrix, scaled, are added to the result's rows.

Lanes run along N. The matrix is read once, four rows at a time, each over as many columns as there
are sums in the L1 cache. The four rows are far apart, so that the hardware prefetches each as a
stream of its own; more than four could evict each other where they are a power of two apart. To
keep the streams long, threads take pieces of K rather than columns, and the sums of the pieces are
added behind the tasks. So are those of shorter pieces within a task, lest a long sum lose accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.ir.dims import ceildiv
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
from composite.compiler.tvm.strategy.cpu.product.tile import PIECE, added_to_nothing
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

_STEPS = {1: 4, 2: 4, 3: 3, 4: 2}
"""Rows of the result -> rows of the matrix at a time: as registers for factors and cache allow."""
_TASKS_PER_CORE = 2
_LEAST_DEPTH = 64
"""Steps of k below which a piece of them is not worth sums of its own."""


class Axpy(ThinProduct):
    """Products with at most 4 rows and a second factor stored as [K, N]."""

    name = "axpy"

    def match_product(self, product: Product, context: Context) -> ThinWriter | None:
        """Return what writes the product, if the rows of the second factor are contiguous."""
        matrices = Matrices.of(product, context)
        if matrices is None or matrices.rows not in _STEPS or product.node.transpose_b:
            return None
        if matrices.columns < context.lanes(product.dtype) or is_packed(product, context):
            return None
        if context.invariant and multiplies_pairs(product, context):
            return None
        return _Writer(product, matrices, context) if matrices.b.strides[-1] == 1 else None


class _Writer(ThinWriter):
    def tasks(self) -> Tasks:
        """Return the tasks."""
        product, context, matrices = self._product, self.context, self._matrices
        lanes = context.lanes(product.dtype)
        width = _width(matrices, lanes, context)
        groups = ceil_quotient(matrices.columns, width)
        batches = elements(product.batch, context)
        arithmetic = quotient(batches * matrices.columns * matrices.depth * matrices.rows, lanes)
        cycles = work_cycles(product, context, arithmetic)
        pieces = _pieces(product, matrices, context, groups * batches, cycles)
        if pieces > 1:
            return _Pieces(product, matrices, context, width, pieces).tasks(cycles)

        def body(task: Expr) -> None:
            block = context.block
            batch = unflatten(context, block.bind(quotient(task, groups)), product.batch or (1,))
            first = block.bind(remainder(task, groups) * width, "first")
            place = batch if product.batch else []
            _Columns(product, matrices, context, width, place).write(first)

        return Tasks((Axpy.name, *product.sizes, width), batches * groups, cycles, body)


def _width(matrices: Matrices, lanes: int, context: Context) -> int:
    """Return how many columns a task takes; a team in a loop shares them, and has no pieces."""
    most = context.machine.sums // ITEM_SIZE["float32"] // matrices.rows
    most = context.choose("axpy.columns", [most >> i for i in range(4)], most)
    shares = context.trips is not None or context.invariant  # k is not cut for them
    share = ceildiv(matrices.columns, context.target.cores if shares else 1)
    return ceildiv(max(lanes * 4, min(most, share)), lanes) * lanes


def _pieces(
    product: Product,
    matrices: Matrices,
    context: Context,
    tasks: Expr | int,
    cycles: Expr | int,
) -> int:
    """Return into how many pieces k is cut, so that all threads have work; 1 within a loop."""
    if context.trips is not None or context.target.cores == 1 or product.batch:
        return 1
    if context.invariant:
        return 1
    if (
        not isinstance(tasks, int)
        or not isinstance(cycles, int)
        or cycles < context.machine.parallel
    ):
        return 1
    wanted = ceildiv(_TASKS_PER_CORE * context.target.cores, tasks)
    most = max(1, matrices.depth // _LEAST_DEPTH)
    options = [p for p in (1, 2, 4, 8, 16, 32, 64) if p <= most]
    return context.choose("axpy.pieces", options, max(p for p in options if p <= wanted))


class _Columns:
    """Some columns of the result, from a first one on.

    Sums lie as ``[rows, width]``, and what is behind the last column is never written.
    """

    def __init__(
        self,
        product: Product,
        matrices: Matrices,
        context: Context,
        width: int,
        batch: list[Index],
    ) -> None:
        self._product = product
        self._context = context
        self._block = context.block
        self._batch = batch
        self._width = width
        self._rows = matrices.rows
        default = _STEPS[matrices.rows]
        # The factors and a vector of each row of the matrix are in registers.
        fit = max(default, (context.target.registers - 2) // (matrices.rows + 1))
        steps = [s for s in (1, 2, 3, 4, 6, 8, 12) if s <= fit]
        self._steps = context.choose("axpy.steps", steps, default)
        self._lanes = context.lanes(product.dtype)
        self._a, self._b = matrices.a, matrices.b
        self._depth = matrices.depth
        self._columns = matrices.columns

    @property
    def size(self) -> int:
        """How many sums there are."""
        return self._rows * self._width

    def write(self, first: Expr) -> None:
        """Write columns ``[first, first + width)``, as far as there are."""
        sums = self._block.workspace(self.size, self._product.dtype, "sums")
        self.add_up(sums, 0, first, 0, self._depth)
        self.write_results(first, lambda at: self._block.load(sums, at, self._lanes))

    def add_up(
        self, sums: Buffer, base: Expr | int, first: Expr, k: Expr | int, depth: int
    ) -> None:
        """Set the sums from ``base`` on to those of steps ``[k, k + depth)``, if there are."""
        block = self._block
        vectors = self._vectors(first)
        exact = self._depth % depth == 0
        count = depth if exact else block.bind(minimum(depth, self._depth - k), "count")
        self._clear(sums, base, vectors)
        if depth <= PIECE:
            self._add_steps(sums, base, (first, vectors), k, count)
            return
        part = block.workspace(self.size, self._product.dtype, "part")
        size = PIECE
        if not self._context.invariant:
            size = ceildiv(ceildiv(depth, ceildiv(depth, PIECE)), self._steps) * self._steps
        with block.loop(ceil_quotient(count, size), "piece") as piece:
            start = block.bind(piece * size, "start")
            own = size if exact and depth % size == 0 else minimum(size, count - start)
            self._clear(part, 0, vectors)
            self._add_steps(part, 0, (first, vectors), k + start, block.bind(own, "own"))
            self._add_part(sums, base, part, vectors)

    def _places(self, vectors: Expr | int, write: Callable[[Expr], None]) -> None:
        """Write for the place of each vector of sums."""
        with self._block.loop(vectors, "v") as v:
            for row in range(self._rows):
                write(index(row * self._width + v * self._lanes))

    def _clear(self, sums: Buffer, base: Expr | int, vectors: Expr | int) -> None:
        zero = const(0, f"{self._product.dtype}x{self._lanes}")
        self._places(vectors, lambda at: self._block.store(sums, base + at, zero))

    def _add_part(self, sums: Buffer, base: Expr | int, part: Buffer, vectors: Expr | int) -> None:
        block, lanes = self._block, self._lanes

        def add(at: Expr) -> None:
            value = block.load(sums, base + at, lanes) + block.load(part, at, lanes)
            block.store(sums, base + at, value)

        self._places(vectors, add)

    def _add_steps(
        self,
        sums: Buffer,
        base: Expr | int,
        columns: tuple[Expr, Expr | int],
        k: Expr | int,
        count: Expr | int,
    ) -> None:
        """Add steps ``[k, k + count)`` to the sums of columns, as in :meth:`_add`."""
        block, steps = self._block, self._steps
        whole = block.bind(quotient(count, steps), "whole")
        with block.loop(whole, "k") as step:
            if self._context.invariant:  # in their order, wherever a product is cut
                rows = [block.bind(k + step * steps + s, "k") for s in range(steps)]
            else:
                rows = [block.bind(k + whole * s + step, "k") for s in range(steps)]
            self._add(sums, base, columns, rows)
        with block.loop(count - whole * steps, "k") as step:
            self._add(sums, base, columns, [block.bind(k + whole * steps + step, "k")])

    def write_results(self, first: Expr, load: Callable[[Expr], Expr]) -> None:
        """Store what is made of the sums, which ``load`` has a vector of for a place in them."""
        block, lanes = self._block, self._lanes
        vectors = self._vectors(first)
        for row in range(self._rows):
            with block.loop(vectors, "v") as v:
                total = load(index(row * self._width + v * lanes))
                if self._context.invariant:
                    total = block.let(added_to_nothing(total))
                at = [*self._batch, row, Lane(self._column(first, v), lanes)]
                self._product.write_epilogue(self._context, at, total)

    def _vectors(self, first: Expr) -> Expr | int:
        left = minimum(self._width, self._columns - first)
        if self._columns % self._width == 0:
            left = self._width
        return self._block.bind(ceil_quotient(left, self._lanes), "vectors")

    def _column(self, first: Expr, v: Expr) -> Expr:
        """Return where vector v starts; the last one overlaps where columns are not whole ones."""
        at = first + v * self._lanes
        if self._columns % self._lanes:
            at = minimum(at, self._columns - self._lanes)
        return self._block.bind(index(at), "column")

    def _add(
        self,
        sums: Buffer,
        base: Expr | int,
        columns: tuple[Expr, Expr | int],
        ks: Sequence[Expr],
    ) -> None:
        """Add some rows of the matrix, scaled, to the sums.

        ``columns`` are the first one, and how many vectors.
        """
        block, lanes = self._block, self._lanes
        node = self._product.node
        row_axis, k_axis = (-1, -2) if node.transpose_a else (-2, -1)
        a_base = batch_offset(node.a, self._a, self._batch)
        b_base = batch_offset(node.b, self._b, self._batch)
        factors = []
        for row in range(self._rows):
            for k in ks:
                at = a_base + row * self._a.strides[row_axis] + k * self._a.strides[k_axis]
                raw = tirx.BufferLoad(self._a.storage.buffer, [index(at)])
                scalar = from_storage(raw, self._a.storage.dtype)
                factors.append(block.let(tirx.Broadcast(scalar, lanes)))
        matrix, pitch = self._b.storage.buffer, self._b.strides[-2]
        lines = [block.bind(index(b_base + k * pitch), "line") for k in ks]
        first, vectors = columns
        with block.loop(vectors, "v") as v:
            column = self._column(first, v)
            raw = [block.load(matrix, line + column, lanes) for line in lines]
            loaded = [block.let(from_storage(r, self._b.storage.dtype)) for r in raw]
            for row in range(self._rows):
                place = block.bind(base + row * self._width + v * lanes, "place")
                total = block.load(sums, place, lanes)
                for factor, vector in zip(factors[row * len(ks) :], loaded, strict=False):
                    total = total + factor * vector
                block.store(sums, place, total)


class _Pieces:
    """A product that is cut along k: each task has sums of its own, which are added behind."""

    def __init__(
        self, product: Product, matrices: Matrices, context: Context, width: int, pieces: int
    ) -> None:
        depth, step = matrices.depth, _STEPS[matrices.rows]
        self._product = product
        self._context = context
        self._columns = _Columns(product, matrices, context, width, [])
        self._width = width
        self._depth = ceildiv(ceildiv(depth, pieces), step) * step
        self._count = ceildiv(depth, self._depth)
        self._groups = ceildiv(matrices.columns, width)

    def tasks(self, cycles: Expr | int) -> Tasks:
        """Return the tasks: each a piece of k for a group of columns."""
        key = (Axpy.name, *self._product.sizes, self._width, self._count)
        return Tasks(key, self._count * self._groups, cycles, self._piece, around=self._around)

    def _piece(self, task: Expr) -> None:
        block = self._context.block
        first = block.bind(remainder(task, self._groups) * self._width, "first")
        k = block.bind(quotient(task, self._groups) * self._depth, "k")
        base = block.bind(task * self._columns.size, "base")
        self._columns.add_up(self._sums, base, first, k, self._depth)

    @contextmanager
    def _around(self) -> Iterator[None]:
        block, size = self._context.block, self._columns.size
        count = self._count * self._groups * size
        self._sums = block.workspace(count, self._product.dtype, "pieces")
        yield
        with block.loop(self._groups, "group") as group:
            first = block.bind(group * self._width, "first")
            self._columns.write_results(first, lambda at: self._total(group * size + at))

    def _total(self, at: Expr) -> Expr:
        """Return a vector of sums over the pieces."""
        lanes = self._context.lanes(self._product.dtype)
        pitch = self._groups * self._columns.size
        parts = [
            self._context.block.load(self._sums, at + piece * pitch, lanes)
            for piece in range(self._count)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total
