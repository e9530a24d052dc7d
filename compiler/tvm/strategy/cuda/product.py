"""Dense and batched matrix products: a block computes a square of the result.

Both factors go through shared memory in pieces along the inner dimension; each thread adds up a
square of its own in registers. Sums are of fused multiply-adds in the compute dtype: IEEE
arithmetic, for the numbers that tensor cores do not multiply (:mod:`.tensor_product`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.codegen.device_block import Grid
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim, floordiv, product
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import add, choose, mul, multiply_add, widened
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.strategy.epilogue import write_epilogue
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.tir.block import Buffer, const, index, minimum, quotient, remainder

_SIDE = 16
"""Threads along each side of a square."""
_DEPTH = 16
"""Elements of the inner dimension that are in shared memory at a time."""


class Product:
    """Any stage whose anchor is a matrix product."""

    name = "product"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take matrix products."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, MatMul):
            return None
        return _Writer(stage, anchor, anchor.node, context)


@dataclass(frozen=True)
class _Factor:
    """One of the factors: its tensor, and which of its last two dimensions is the inner one."""

    tensor: Tensor
    inner_last: bool
    size: Dim  # of the other one
    zero: int  # taken from its elements, if they are narrow integers


class _Writer:
    def __init__(self, stage: Stage, anchor: Tensor, node: MatMul, context: Context) -> None:
        self._stage = stage
        self._context = context
        self._block = device_block(context)
        self._dtype = compute_dtype(anchor.dtype)
        *batch, rows, columns = anchor.shape
        self._batch = tuple(batch)
        self._a = _Factor(node.a, not node.transpose_a, rows, node.zeros[0])
        self._b = _Factor(node.b, node.transpose_b, columns, node.zeros[1])
        self._inner = node.a.shape[-2 if node.transpose_a else -1]
        # A square of few elements leaves more of them to other multiprocessors.
        self._own = context.choose("product.own", (2, 4, 8), 4)
        self._tile = _SIDE * self._own

    def write(self) -> None:
        """Write one launch."""
        block, threads = self._block, _SIDE * _SIDE
        down, along = (floordiv(f.size + (self._tile - 1), self._tile) for f in (self._a, self._b))
        work = product(self._batch) * down * along
        with block.launch(work, 1, threads) as grid:
            # A row more, so that threads that store neighbours of a column meet no bank twice.
            places = _DEPTH * (self._tile + 1)
            squares = [block.shared(places, self._dtype, name) for name in ("left", "right")]
            with block.share_out(grid.block, self._context.size(work), grid.blocks) as unit:
                at = unflatten(self._context, unit, (*self._batch, down, along))
                self._square(grid, at, squares)

    def _square(self, grid: Grid, at: list[Index], squares: list[Buffer]) -> None:
        """Write a square of the result."""
        block, own = self._block, self._own
        *batch, down, along = at
        sums = block.registers(own * own, self._dtype, "sums")
        for i in range(own * own):
            block.store(sums, i, const(0, self._dtype))
        first = block.bind(index(down * self._tile), "row")
        left = block.bind(index(along * self._tile), "column")
        size = self._context.size(self._inner)
        with block.loop(quotient(size + (_DEPTH - 1), _DEPTH), "piece") as piece:
            inner = block.bind(piece * _DEPTH, "inner")
            for factor, start, square in zip(
                (self._a, self._b), (first, left), squares, strict=True
            ):
                self._load(grid, factor, [*batch, start, inner], square)
            block.barrier()
            self._add(grid, squares, sums)
            block.barrier()
        y = block.bind(first + quotient(grid.thread, _SIDE) * own, "y")
        x = block.bind(left + remainder(grid.thread, _SIDE), "x")
        rows, columns = (index(self._context.size(f.size)) for f in (self._a, self._b))
        for i in range(own * own):
            row = block.bind(y + i // own, "row")
            column = block.bind(x + i % own * _SIDE, "column")
            with block.when(tirx.And(row < rows, column < columns)):
                total = tirx.BufferLoad(sums, [index(i)])
                write_epilogue(self._context, self._stage, [*batch, row, column], total)

    def _load(self, grid: Grid, factor: _Factor, at: list[Index], to: Buffer) -> None:
        """Have the threads of the block store a piece of a factor; what is outside is 0.

        ``at`` is where it begins, the inner dimension last.
        """
        block, tile = self._block, self._tile
        *batch, start, inner = at
        size, depth = (self._context.size(d) for d in (factor.size, self._inner))
        fast = _DEPTH if factor.inner_last else tile  # neighbours in memory
        shape = factor.tensor.shape
        for i in range(tile * _DEPTH // (_SIDE * _SIDE)):
            element = block.bind(grid.thread + i * _SIDE * _SIDE, "element")
            near, far = remainder(element, fast), quotient(element, fast)
            k, other = (near, far) if factor.inner_last else (far, near)
            k, other = block.bind(k, "k"), block.bind(other, "other")
            deep, wide = block.bind(inner + k, "deep"), block.bind(start + other, "wide")
            inside = block.let(tirx.And(deep < index(depth), wide < index(size)))
            deep = block.bind(index(minimum(deep, depth - 1)), "deep")
            wide = block.bind(index(minimum(wide, size - 1)), "wide")
            last = [wide, deep] if factor.inner_last else [deep, wide]
            own = batch[len(batch) - (len(shape) - 2) :]
            place = [0 if d == 1 else j for d, j in zip(shape[:-2], own, strict=True)]
            value = self._context.access().read(factor.tensor, [*place, *last])
            value = widened(value, factor.zero)
            zero = const(0, self._dtype)
            block.store(to, k * (tile + 1) + other, choose(inside, value, zero))

    def _add(self, grid: Grid, squares: list[Buffer], sums: Buffer) -> None:
        """Add the products of a piece."""
        block, own = self._block, self._own
        y = block.bind(quotient(grid.thread, _SIDE) * own, "y")
        x = block.bind(remainder(grid.thread, _SIDE), "x")
        with block.loop(_DEPTH, "k") as k:
            row = block.bind(k * (self._tile + 1), "at")
            a = [block.let(block.load(squares[0], row + y + i)) for i in range(own)]
            b = [block.let(block.load(squares[1], row + x + i * _SIDE)) for i in range(own)]
            for i in range(own * own):
                total = block.let(tirx.BufferLoad(sums, [index(i)]))
                block.store(sums, i, self._multiply_add(a[i // own], b[i % own], total))

    @property
    def _multiply_add(self) -> Callable[[Expr, Expr, Expr], Expr]:
        block = self._block
        if self._dtype.startswith("float"):
            return lambda a, b, c: multiply_add(block, a, b, c)
        return lambda a, b, c: add(block, block.let(mul(block, a, b)), c)
