"""Few rows times a ``[N, K]`` matrix: dot products along K, the matrix read once and in order.

Lanes run along K. ``rows x columns x unroll`` sums, 8 to 12, keep the multipliers busy; after a
vector's worth of columns the lanes of its sums are added by butterflies, which yields one vector
of the result for each row. Bound by memory for one row, by multiplication from four on.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from ..access import Index, Lane, Strided
from ..block import Block, Buffer, ceil_quotient, const, index, minimum, quotient, remainder
from ..graph import Expr
from .base import Context, Tasks, elements, unflatten
from .product import Product, ThinProduct, batch_offset, in_place, is_packed
from .tile import butterfly

_SHAPES = {1: (4, 2), 2: (4, 1), 3: (2, 2), 4: (2, 1), 5: (2, 1), 6: (2, 1), 7: (1, 1)}
"""Rows of the result -> (columns at a time, steps of K at a time)."""
_TASK_COLUMNS = 64


class Dots(ThinProduct):
    """Products with at most 7 rows and a second factor stored as [N, K]."""

    name = "dots"

    def takes(self, product: Product, context: Context) -> bool:
        """Return whether the product is of this kind."""
        lanes = context.lanes(product.dtype)
        sizes = (product.columns, product.depth)
        if product.rows not in _SHAPES or any(not isinstance(d, int) or d < lanes for d in sizes):
            return False
        if product.node.transpose_a and product.rows != 1:
            return False
        if is_packed(product, context):
            return False
        return product.node.transpose_b and _factors(product, context) is not None

    def tasks(self, product: Product, context: Context) -> Tasks:
        """Return the tasks of a product of this kind."""
        lanes = context.lanes(product.dtype)
        columns = context.size(product.columns)
        share = context.choose("dots.task", (16, 32, _TASK_COLUMNS, 128, 256), _TASK_COLUMNS)
        groups = ceil_quotient(columns, share)
        batches = elements(product.batch, context)
        cycles = quotient(
            batches * columns * context.size(product.depth) * context.size(product.rows), lanes
        )

        def body(task: Expr) -> None:
            block = context.block
            batch = unflatten(context, block.bind(quotient(task, groups)), product.batch or (1,))
            first = block.bind(remainder(task, groups) * share, "first")
            count = minimum(share, columns - first)
            with block.loop(ceil_quotient(count, lanes), "group") as g:
                start = block.bind(minimum(first + g * lanes, columns - lanes), "start")
                _Group(product, context, batch if product.batch else []).write(start)

        return Tasks((self.name, *product.sizes, share), batches * groups, cycles, body)


def _factors(product: Product, context: Context) -> tuple[Strided, Strided] | None:
    """Return where the factors lie, if both are contiguous along K."""
    a = in_place(product.node.a, product.dtype, context)
    b = in_place(product.node.b, product.dtype, context)
    if a is None or b is None:
        return None
    step = a.strides[-2 if product.node.transpose_a else -1]
    return (a, b) if step == 1 and b.strides[-1] == 1 else None


class _Group:
    """One vector's worth of columns."""

    def __init__(self, product: Product, context: Context, batch: list[Index]) -> None:
        factors = _factors(product, context)
        if factors is None or not isinstance(product.rows, int):
            raise TypeError("the factors do not lie as dot products need them")
        self._product = product
        self._context = context
        self._block: Block = context.block
        self._batch = batch
        self._lanes = context.lanes(product.dtype)
        self._vector = f"{product.dtype}x{self._lanes}"
        self._rows = product.rows
        columns, unroll = _SHAPES[product.rows]
        # Powers of two, so that a vector's worth of columns is whole passes; sums in registers.
        most = context.target.registers // 2 // product.rows
        fit = [c for c in (1, 2, 4, 8) if c <= min(self._lanes, most)]
        self._columns = context.choose("dots.columns", fit, min(columns, self._lanes))
        fit = [u for u in (1, 2, 4) if u * self._columns <= most]
        self._unroll = context.choose("dots.unroll", fit, unroll)
        self._depth = int(product.depth) if isinstance(product.depth, int) else 0
        self._a, self._b = factors
        self._a_base = batch_offset(product.node.a, self._a, batch)
        self._b_base = batch_offset(product.node.b, self._b, batch)

    def write(self, start: Expr) -> None:
        """Compute columns ``[start, start + lanes)`` of every row."""
        block, lanes = self._block, self._lanes
        parts = block.workspace(self._rows * lanes * lanes, self._product.dtype, "parts")
        with block.loop(lanes // self._columns, "pass") as p:
            column = block.bind(start + p * self._columns, "column")
            for i, total in enumerate(self._dots(column)):
                row, j = divmod(i, self._columns)
                place = row * lanes * lanes + (p * self._columns + j) * lanes
                block.store(parts, place, total)
        for row in range(self._rows):
            vectors = [block.load(parts, (row * lanes + j) * lanes, lanes) for j in range(lanes)]
            total = add_lanes(block, vectors)
            self._product.finish(self._context, [*self._batch, row, Lane(start, lanes)], total)

    def _dots(self, column: Expr) -> list[Expr]:
        """Return a vector of partial sums for each row and column, rows first."""
        block = self._block
        count = self._rows * self._columns
        sums = block.registers(count * self._unroll, self._vector)
        for i in range(count * self._unroll):
            block.store(sums, i, const(0, self._vector))
        stride = self._b.strides[-2]
        bases = [
            block.bind(index(self._b_base + (column + j) * stride), "b")
            for j in range(self._columns)
        ]
        step = self._lanes * self._unroll
        whole = self._depth // step
        with block.loop(whole, "k") as k:
            at = block.bind(k * step, "k")
            for u in range(self._unroll):
                self._step(sums, u * count, bases, at + u * self._lanes)
        for k_rest in range(whole * step, self._depth - self._lanes + 1, self._lanes):
            self._step(sums, 0, bases, k_rest)
        if self._depth % self._lanes:
            self._last(sums, bases)
        return [self._total(sums, i, count) for i in range(count)]

    def _total(self, sums: Buffer, i: int, count: int) -> Expr:
        total = tirx.BufferLoad(sums, [index(i)])
        for u in range(1, self._unroll):
            total = total + tirx.BufferLoad(sums, [index(u * count + i)])
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

        def load(buffer: Buffer, at: Expr | int) -> Expr:
            value = block.load(buffer, at, lanes)
            if mask is not None:
                value = tirx.Select(mask, value, const(0, self._vector))
            return block.let(value)

        columns = [load(self._b.storage.buffer, base + k) for base in bases]
        stride = 0 if self._rows == 1 else self._a.strides[-2]
        for i in range(self._rows):
            x = load(self._a.storage.buffer, self._a_base + i * stride + k)
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
