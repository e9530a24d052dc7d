"""Few rows times a ``[K, N]`` matrix: rows of the matrix, scaled, are added to the result's rows.

Lanes run along N, and the matrix is read once, several long rows side by side, which is what the
prefetcher follows; the sums of a task's columns stay in the L1 cache.
"""

from __future__ import annotations

from tvm import tirx

from ..access import Lane, Strided
from ..block import Buffer, ceil_quotient, const, index, minimum, quotient, remainder
from ..graph import Expr
from .base import Context, Tasks, elements, unflatten
from .product import Product, ThinProduct, batch_offset, in_place, is_packed

_STEPS = {1: 8, 2: 4, 3: 3, 4: 2}
"""Rows of the result -> rows of the matrix at a time: as many factors as registers allow."""
_TASK_COLUMNS = 512


class Axpy(ThinProduct):
    """Products with at most 4 rows and a second factor stored as [K, N]."""

    name = "axpy"

    def takes(self, product: Product, context: Context) -> bool:
        """Return whether the product is of this kind."""
        if product.rows not in _STEPS or product.node.transpose_b:
            return False
        if not isinstance(product.columns, int) or not isinstance(product.depth, int):
            return False
        if is_packed(product, context):
            return False
        a = in_place(product.node.a, product.dtype, context)
        b = in_place(product.node.b, product.dtype, context)
        if a is None or b is None or product.columns < context.lanes(product.dtype):
            return False
        return b.strides[-1] == 1

    def tasks(self, product: Product, context: Context) -> Tasks:
        """Return the tasks of a product of this kind."""
        columns = context.size(product.columns)
        lanes = context.lanes(product.dtype)
        share = ceil_quotient(columns, context.target.cores)
        most = context.choose("axpy.columns", (128, 256, _TASK_COLUMNS, 1024), _TASK_COLUMNS)
        width = max(lanes * 4, min(most, int(share)))
        width = -(-width // lanes) * lanes
        groups = ceil_quotient(columns, width)
        batches = elements(product.batch, context)
        cycles = quotient(
            batches * columns * context.size(product.depth) * context.size(product.rows), lanes
        )

        def body(task: Expr) -> None:
            block = context.block
            batch = unflatten(context, block.bind(quotient(task, groups)), product.batch or (1,))
            first = block.bind(remainder(task, groups) * width, "first")
            _Columns(product, context, batch if product.batch else [], width).write(first)

        return Tasks((self.name, *product.sizes, width), batches * groups, cycles, body)


class _Columns:
    """The columns of one task."""

    def __init__(self, product: Product, context: Context, batch: list, width: int) -> None:
        a = in_place(product.node.a, product.dtype, context)
        b = in_place(product.node.b, product.dtype, context)
        if a is None or b is None or not isinstance(product.rows, int):
            raise TypeError("the factors do not lie as they must")
        self._product = product
        self._context = context
        self._block = context.block
        self._batch = batch
        self._width = width
        self._rows = product.rows
        default = _STEPS[product.rows]
        # The factors and a vector of each row of the matrix are in registers.
        fit = max(default, (context.target.registers - 2) // (product.rows + 1))
        steps = [s for s in (1, 2, 3, 4, 6, 8, 12) if s <= fit]
        self._steps = context.choose("axpy.steps", steps, default)
        self._lanes = context.lanes(product.dtype)
        self._a: Strided = a
        self._b: Strided = b
        self._depth = int(product.depth) if isinstance(product.depth, int) else 0
        self._columns = int(product.columns) if isinstance(product.columns, int) else 0

    def write(self, first: Expr) -> None:
        """Write columns ``[first, first + width)``, as far as there are."""
        block, lanes = self._block, self._lanes
        vectors = block.bind(
            ceil_quotient(minimum(self._width, self._columns - first), lanes), "vectors"
        )
        sums = block.workspace(self._rows * self._width, self._product.dtype, "sums")
        zero = const(0, f"{self._product.dtype}x{lanes}")
        with block.loop(vectors, "v") as v:
            for row in range(self._rows):
                block.store(sums, row * self._width + v * lanes, zero)
        steps = self._steps
        whole = self._depth // steps
        with block.loop(whole, "k") as k:
            self._add(sums, first, vectors, block.bind(k * steps, "k"), steps)
        for k_rest in range(whole * steps, self._depth):
            self._add(sums, first, vectors, k_rest, 1)
        for row in range(self._rows):
            with block.loop(vectors, "v") as v:
                column = self._column(first, v)
                total = block.load(sums, row * self._width + v * lanes, lanes)
                at = [*self._batch, row, Lane(column, lanes)]
                self._product.finish(self._context, at, total)

    def _column(self, first: Expr, v: Expr) -> Expr:
        """Return where vector v starts; the last one overlaps."""
        at = minimum(first + v * self._lanes, self._columns - self._lanes)
        return self._block.bind(index(at), "column")

    def _add(self, sums: Buffer, first: Expr, vectors: Expr, k: Expr | int, steps: int) -> None:
        """Add ``steps`` scaled rows of the matrix, from row k on, to the sums."""
        block, lanes = self._block, self._lanes
        node = self._product.node
        row_axis, k_axis = (-1, -2) if node.transpose_a else (-2, -1)
        a_base = batch_offset(node.a, self._a, self._batch)
        b_base = batch_offset(node.b, self._b, self._batch)
        factors = []
        for row in range(self._rows):
            for step in range(steps):
                at = a_base + row * self._a.strides[row_axis] + (k + step) * self._a.strides[k_axis]
                scalar = tirx.BufferLoad(self._a.storage.buffer, [index(at)])
                factors.append(block.let(tirx.Broadcast(scalar, lanes)))
        with block.loop(vectors, "v") as v:
            column = self._column(first, v)
            matrix = [
                block.let(
                    block.load(
                        self._b.storage.buffer,
                        b_base + (k + step) * self._b.strides[-2] + column,
                        lanes,
                    )
                )
                for step in range(steps)
            ]
            for row in range(self._rows):
                place = block.bind(row * self._width + v * lanes, "place")
                total = block.load(sums, place, lanes)
                for step in range(steps):
                    total = total + factors[row * steps + step] * matrix[step]
                block.store(sums, place, total)
