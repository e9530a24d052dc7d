"""The running totals of a reduction: several at a time, so that no addition waits for another.

Floats are summed in blocks of a fixed length. The sums of the blocks are added with Knuth's TwoSum,
which keeps the rounding error of each addition, so that the error of the whole does not grow with
the number of elements. The other reductions round nothing.
"""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.codegen.block import Block, const, dtype_of, index, lanes_of
from composite.compiler.tvm.ir.anchors import Combine, Reduce
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import choose, is_nan
from composite.compiler.tvm.strategy.context import Context

BLOCK = 64
"""Elements that one total takes before it is put aside."""


class Accumulator:
    """``ways`` totals of ``lanes`` elements, and one of single elements.

    Vectors of several times as many lanes are folded before they are added: one register a total
    leaves the others to what is computed.
    """

    def __init__(
        self, context: Context, combine: Combine, dtype: str, lanes: int, ways: int
    ) -> None:
        self._block: Block = context.block
        self._apply = combine.apply
        self._ways = ways
        self._vector = dtype if lanes == 1 else f"{dtype}x{lanes}"
        self._start = combine.identity(dtype)
        self._none = const(self._start, self._vector)
        self.has_blocks = combine.name == "Sum" and dtype.startswith("float")
        self._parts = self._registers(ways, self._vector, self._none)
        self._single = self._registers(1, dtype, const(self._start, dtype))
        if self.has_blocks:
            self._total = self._registers(1, self._vector, self._none)
            self._lost = self._registers(1, self._vector, self._none)

    @classmethod
    def of(cls, context: Context, node: Reduce, lanes: int, ways: int = 1) -> Accumulator:
        """Return the totals of a reduction."""
        return cls(context, node.combine, compute_dtype(node.operand.dtype), lanes, ways)

    def _registers(self, count: int, dtype: str, start: Expr) -> Expr:
        buffer = self._block.registers(count, dtype)
        for i in range(count):
            self._block.store(buffer, i, start)
        return buffer

    def _load(self, buffer: Expr, slot: int = 0) -> Expr:
        return self._block.let(tirx.BufferLoad(buffer, [index(slot)]))

    def add(self, way: int, value: Expr, skipped: int | Expr = 0) -> None:
        """Add a vector to one of the totals, without the first ``skipped`` lanes."""
        lanes = lanes_of(value)
        if not isinstance(skipped, int) or skipped:
            lane = tirx.Ramp(index(0), index(1), lanes)
            none = const(self._start, str(dtype_of(value)))
            value = choose(lane >= tirx.Broadcast(index(skipped), lanes), value, none)
        self._put(self._parts, way, self._folded(self._block.let(value), lanes_of(self._none)))

    def _folded(self, value: Expr, lanes: int) -> Expr:
        """Return a vector of ``lanes`` that has the halves of a longer one combined."""
        block = self._block
        while (own := lanes_of(value)) > lanes:
            half = list(range(own // 2))
            parts = [[i + first for i in half] for first in (0, own // 2)]
            low, high = (block.let(tirx.Shuffle([value], part)) for part in parts)
            value = block.let(self._apply(block, low, high))
        return value

    def add_single(self, value: Expr) -> None:
        """Add one element."""
        self._put(self._single, 0, value)

    def _put(self, buffer: Expr, slot: int, value: Expr) -> None:
        so_far = self._load(buffer, slot)
        self._block.store(buffer, slot, self._apply(self._block, value, so_far))

    def end_block(self) -> None:
        """Put the totals of a block aside; the next begins from nothing."""
        block = self._block
        part = self._tree([self._load(self._parts, i) for i in range(self._ways)])
        total = self._load(self._total)
        following = block.let(total + part)
        other = block.let(following - total)
        lost = block.let((total - (following - other)) + (part - other))
        block.store(self._total, 0, following)
        block.store(self._lost, 0, self._load(self._lost) + lost)
        for i in range(self._ways):
            block.store(self._parts, i, self._none)

    def _tree(self, values: list[Expr]) -> Expr:
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=False)
            rest = values[len(values) // 2 * 2 :]
            values = [self._block.let(self._apply(self._block, a, b)) for a, b in pairs] + rest
        return values[0]

    def total(self) -> Expr:
        """Return the vector of the lanes' totals."""
        parts = [self._load(self._parts, i) for i in range(self._ways)]
        if not self.has_blocks:
            return self._tree(parts)
        total, lost = self._load(self._total), self._load(self._lost)
        # What was lost on the way to an infinite total is NaN, and of no use.
        lost = self._block.let(choose(is_nan(lost), self._none, lost))
        return self._block.let(self._tree([total, *parts]) + lost)

    def result(self) -> Expr:
        """Return the total over lanes and single elements."""
        block = self._block
        value = self._folded(self.total(), 1)
        return block.let(self._apply(block, value, self._load(self._single)))
