"""Running sums: serial along their dimension, with lanes and threads across the others.

Along the last dimension, each row is a chain of scalars, as in TensorFlow.

Floats are summed in blocks: a running sum is that of the blocks before plus that within the block.
What rounding loses where a block ends, the next block begins with. So the error does not grow with
the number of elements, and a running sum of numbers that are not negative never falls.
"""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.ir.anchors import Scan
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import choose, is_nan
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cost import chain_cost
from composite.compiler.tvm.strategy.cpu.rows.accumulate import two_sum
from composite.compiler.tvm.strategy.indexing import elements, unflatten
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import (
    Buffer,
    ceil_quotient,
    const,
    dtype_of,
    index,
    minimum,
    quotient,
    remainder,
    spread,
)

_COLUMNS = 4
"""Vectors of columns that are summed together, to use whole cache lines of each row."""
_BLOCK = 256
"""Elements that are summed by themselves: at a block's end, the chain of additions is longer."""


class RunningSum:
    """Any stage whose anchor is a scan; "sum" stands for any combination here."""

    name = "scan"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take scans."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, Scan):
            return None
        return _Writer(stage, anchor, anchor.node, context)


class _Writer:
    def __init__(self, stage: Stage, anchor: Tensor, node: Scan, context: Context) -> None:
        self._stage = stage
        self._anchor = anchor
        self._node = node
        self._context = context
        self._dtype = compute_dtype(anchor.dtype)
        self._lanes = context.lanes(anchor.dtype)

    def write(self) -> None:
        """Write a task for each row, or for each block of columns."""
        context, shape, axis = self._context, self._stage.shape, self._node.axis
        cycles = elements(shape, context) * chain_cost(self._stage, context)
        others = (*shape[:axis], *shape[axis + 1 :])
        if axis == len(shape) - 1:
            tasks(context, elements(others, context), cycles, lambda i: self._single(i, others))
            return
        inner = context.size(shape[-1])
        width = self._lanes * _COLUMNS
        blocks = quotient(inner + (width - 1), width)

        def body(task: Expr) -> None:
            row = context.block.bind(quotient(task, blocks), "row")
            at = context.block.bind(remainder(task, blocks) * width, "at")
            self._columns(row, at, inner, others)

        outer = elements(others[:-1], context)
        tasks(context, outer * blocks, quotient(cycles, self._lanes), body)

    def _kept(self, flat: Expr | int, shape: Shape) -> list[Index]:
        return unflatten(self._context, flat, shape) if shape else []

    def _single(self, flat: Expr, others: Shape) -> None:
        """Sum one chain of scalars."""
        self._chains([self._kept(flat, others)], 1)

    def _columns(self, row: Expr, at: Expr, inner: Expr | int, others: Shape) -> None:
        """Sum neighbouring columns together; the last vectors overlap their neighbours."""
        block, lanes = self._context.block, self._lanes
        outer = self._kept(row, others[:-1])
        is_long = inner >= lanes if isinstance(inner, int) else index(inner) >= lanes

        def short() -> None:
            with block.loop(minimum(inner - at, lanes * _COLUMNS), "column") as column:
                self._chains([[*outer, block.bind(at + column)]], 1)

        with block.when(is_long):
            starts = [
                block.bind(index(minimum(at + j * lanes, inner - lanes)), "c")
                for j in range(_COLUMNS)
            ]
            self._chains([[*outer, Lane(start, lanes)] for start in starts], lanes)
        if isinstance(is_long, bool):
            if not is_long:
                short()
            return
        with block.otherwise():
            short()

    def _chains(self, places: list[list[Index]], lanes: int) -> None:
        """Write the loop along the dimension for chains at other indices."""
        block, node, count = self._context.block, self._node, len(places)
        dtype = self._dtype if lanes == 1 else f"{self._dtype}x{lanes}"
        identity = const(node.combine.identity(self._dtype), dtype)
        totals = self._registers(count, dtype, identity)
        size = self._context.size(self._stage.shape[node.axis])

        def step(k: Expr, done: Buffer | None = None) -> None:
            own = block.bind(size - 1 - k) if node.reverse else k
            for slot, place in enumerate(places):
                at = [*place[: node.axis], own, *place[node.axis :]]
                self._step(totals, slot, at, lanes, done)

        if not self._has_blocks or (isinstance(size, int) and size <= _BLOCK):
            with block.loop(size, "k") as k:
                step(k)
            return
        done = self._registers(count, dtype, identity)
        with block.loop(ceil_quotient(size, _BLOCK), "b") as b:
            first = block.bind(b * _BLOCK, "first")
            with block.loop(minimum(_BLOCK, size - first), "k") as k:
                step(block.bind(first + k, "k"), done)
            for slot in range(count):
                self._end_block(totals, done, slot)

    @property
    def _has_blocks(self) -> bool:
        return self._node.combine.name == "Sum" and self._dtype.startswith("float")

    def _registers(self, count: int, dtype: str, start: Expr) -> Buffer:
        buffer = self._context.block.registers(count, dtype)
        for slot in range(count):
            self._context.block.store(buffer, slot, start)
        return buffer

    def _load(self, buffer: Buffer, slot: int) -> Expr:
        return self._context.block.let(tirx.BufferLoad(buffer, [index(slot)]))

    def _end_block(self, totals: Buffer, done: Buffer, slot: int) -> None:
        block = self._context.block
        total, lost = two_sum(block, self._load(done, slot), self._load(totals, slot))
        block.store(done, slot, total)
        # What was lost on the way to an infinite total is NaN, and of no use.
        zero = const(0, str(dtype_of(lost)))
        block.store(totals, slot, choose(is_nan(lost), zero, lost))

    def _step(
        self, totals: Buffer, slot: int, at: list[Index], lanes: int, done: Buffer | None
    ) -> None:
        """Add one element to a running sum; ``done`` holds the sums of the blocks before."""
        block, node = self._context.block, self._node
        value = spread(self._context.access().read(node.operand, at), lanes)
        before = self._load(totals, slot)
        after = block.let(node.combine.apply(block, before, block.let(value)))
        block.store(totals, slot, after)
        result = before if node.exclusive else after
        if done is not None:
            result = block.let(self._load(done, slot) + result)
        access = self._context.access()
        access.give(self._anchor, lambda _: result)
        for tensor in self._stage.stores:
            self._context.store(tensor, at, access.compute(tensor, at))
