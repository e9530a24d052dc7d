"""Matrix products without a register tile: right for every dtype and layout, fast for none.

int64 (which wraps) comes here, and whatever the tiled strategy does not take. Lanes run along the
columns of the result; a row of the result is one task.
"""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir.anchors import Combine, MatMul
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import add, mul, widened
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cpu.product.product import Product, multiplies_pairs
from composite.compiler.tvm.strategy.cpu.product.tile import PIECE
from composite.compiler.tvm.strategy.cpu.rows.accumulate import Accumulator, write_sums
from composite.compiler.tvm.strategy.indexing import elements, unflatten
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import (
    Buffer,
    ceil_quotient,
    const,
    index,
    minimum,
    quotient,
    remainder,
    spread,
)


def _only(buffer: Buffer) -> Expr:
    """Return the element of an array of one."""
    return tirx.BufferLoad(buffer, [index(0)])


_SUM = Combine("Sum", lambda _: 0, add)


class PlainContraction:
    """Any stage whose anchor is a matrix product."""

    name = "contraction"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take every matrix product."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, MatMul):
            return None
        product = Product(stage, anchor, anchor.node)
        if context.invariant and multiplies_pairs(product, context):
            raise NotCovered(
                "numerics='invariant': a product of bfloat16 whose factors do not lie in memory"
            )
        return _Writer(stage, anchor, anchor.node, context)


class _Writer:
    def __init__(self, stage: Stage, anchor: Tensor, node: MatMul, context: Context) -> None:
        self._stage = stage
        self._anchor = anchor
        self._node = node
        self._context = context
        self._dtype = compute_dtype(anchor.dtype)
        self._lanes = context.lanes(anchor.dtype)
        self._inner = context.size(node.a.shape[-2 if node.transpose_a else -1])

    def write(self) -> None:
        """Write the loops."""
        context = self._context
        columns = context.size(self._stage.shape[-1])
        vectors = quotient(columns + (self._lanes - 1), self._lanes)
        rows = elements(self._stage.shape[:-1], context)
        cycles = rows * vectors * self._inner * 4

        def body(task: Expr) -> None:
            block = context.block
            row = unflatten(context, block.bind(quotient(task, vectors)), self._stage.shape[:-1])
            at = block.bind(remainder(task, vectors) * self._lanes, "at")
            is_long = columns >= self._lanes
            with block.when(is_long):
                start = block.bind(index(minimum(at, columns - self._lanes)))
                self._element([*row, Lane(start, self._lanes)], self._lanes)
            if isinstance(is_long, bool):
                with block.when(not is_long), block.loop(columns, "column") as column:
                    self._element([*row, column], 1)
            else:
                with block.otherwise(), block.loop(columns, "column") as column:
                    self._element([*row, column], 1)

        tasks(context, rows * vectors, cycles, body)

    def _element(self, at: list[Index], lanes: int) -> None:
        """Compute one element or one vector of the result."""
        in_order = self._context.invariant and self._dtype.startswith("float")
        result = self._in_order(at, lanes) if in_order else self._in_blocks(at, lanes)
        access = self._context.access()
        access.give(self._anchor, lambda _: result)
        for tensor in self._stage.stores:
            self._context.store(tensor, at, access.compute(tensor, at))

    def _in_blocks(self, at: list[Index], lanes: int) -> Expr:
        total = Accumulator(self._context, _SUM, self._dtype, lanes, 1)
        write_sums(
            self._context,
            [self._inner],
            [total],
            lambda k: total.add(0, self._product(at, k[0], lanes)),
        )
        return total.total()

    def _in_order(self, at: list[Index], lanes: int) -> Expr:
        """Return the sum of the sums of pieces of k, each in order, as tiles have it."""
        block = self._context.block
        dtype = self._dtype if lanes == 1 else f"{self._dtype}x{lanes}"
        total, part = (block.registers(1, dtype) for _ in range(2))
        block.store(total, 0, const(0, dtype))
        with block.loop(ceil_quotient(self._inner, PIECE), "piece") as piece:
            first = block.bind(piece * PIECE, "first")
            block.store(part, 0, const(0, dtype))
            with block.loop(minimum(PIECE, self._inner - first), "k") as k:
                one = self._product(at, block.bind(first + k, "k"), lanes)
                block.store(part, 0, _only(part) + one)
            block.store(total, 0, _only(total) + _only(part))
        return block.let(_only(total))

    def _product(self, at: list[Index], k: Expr, lanes: int) -> Expr:
        """Return the product of step k."""
        node = self._node
        a = self._read(0, at[:-2], [at[-2], k], node.transpose_a)
        b = self._read(1, at[:-2], [k, at[-1]], node.transpose_b)
        return mul(self._context.block, spread(a, lanes), b)

    def _read(self, which: int, batch: list[Index], at: list[Index], transposed: bool) -> Expr:
        """Return an element of a factor, whose batch dimensions broadcast."""
        factor, zero = self._node.operands[which], self._node.zeros[which]
        own = batch[len(batch) - (factor.rank - 2) :]
        place = [0 if d == 1 else i for d, i in zip(factor.shape, own, strict=False)]
        row, column = at
        place += [column, row] if transposed else [row, column]
        return widened(self._context.access().read(factor, place), zero)
