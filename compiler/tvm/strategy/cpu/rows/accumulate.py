"""The running totals of a reduction: several at a time, so that no addition waits for another.

Floats are summed in blocks of a fixed length. The sums of the blocks are added with Knuth's TwoSum,
which keeps the rounding error of each addition, so that the error of the whole does not grow with
the number of elements. The other reductions round nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from tvm import tirx

from composite.compiler.tvm.ir.anchors import Combine, Reduce
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import choose, is_nan
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.tir.block import (
    Block,
    Buffer,
    ceil_quotient,
    const,
    dtype_of,
    index,
    lanes_of,
    minimum,
)

BLOCK = 64
"""Elements that one total takes before it is put aside."""


class _Aside:
    """A sum of the sums of blocks, with what its roundings lost."""

    def __init__(self, block: Block, dtype: str) -> None:
        self._block = block
        self._none = const(0, dtype)
        self._total, self._lost = (block.registers(1, dtype) for _ in range(2))
        for buffer in (self._total, self._lost):
            block.store(buffer, 0, self._none)

    def _load(self, buffer: Buffer) -> Expr:
        return self._block.let(tirx.BufferLoad(buffer, [index(0)]))

    def add(self, part: Expr) -> None:
        """Add the sum of a block."""
        block, total = self._block, self._load(self._total)
        following, lost = two_sum(block, total, part)
        block.store(self._total, 0, following)
        block.store(self._lost, 0, self._load(self._lost) + lost)

    def with_rest(self, rest: Expr) -> Expr:
        """Return the sum of all blocks and of what is in none."""
        lost = self._load(self._lost)
        # What was lost on the way to an infinite total is NaN, and of no use.
        lost = self._block.let(choose(is_nan(lost), self._none, lost))
        return self._block.let((self._load(self._total) + rest) + lost)


def two_sum(block: Block, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Return a + b, and what rounding it lost (Knuth, The Art of Computer Programming 2, 4.2.2)."""
    total = block.let(a + b)
    other = block.let(total - a)
    return total, block.let((a - (total - other)) + (b - other))


def tree(block: Block, combine: Combine, values: list[Expr]) -> Expr:
    """Return values combined in pairs, and pairs of these, so that few wait for one another."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        rest = values[len(values) // 2 * 2 :]
        values = [block.let(combine.apply(block, a, b)) for a, b in pairs] + rest
    return values[0]


class Accumulator:
    """``ways`` totals of ``lanes`` elements, and one of single elements.

    Vectors of several times as many lanes are folded before they are added: one register a total
    leaves the others to what is computed.
    """

    def __init__(
        self, context: Context, combine: Combine, dtype: str, lanes: int, ways: int
    ) -> None:
        self._block: Block = context.block
        self._combine, self._apply = combine, combine.apply
        self._ways = ways
        self._vector = dtype if lanes == 1 else f"{dtype}x{lanes}"
        self._start = combine.identity(dtype)
        self._none = const(self._start, self._vector)
        self.has_blocks = combine.name == "Sum" and dtype.startswith("float")
        self._parts = self._registers(ways, self._vector, self._none)
        self._single = self._registers(1, dtype, const(self._start, dtype))
        if self.has_blocks:
            self._aside = _Aside(self._block, self._vector)
            self._aside_single = _Aside(self._block, dtype)

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
        self._aside.add(self._total_of_ways())
        self._aside_single.add(self._load(self._single))
        for i in range(self._ways):
            block.store(self._parts, i, self._none)
        block.store(self._single, 0, const(self._start, str(dtype_of(self._load(self._single)))))

    def _total_of_ways(self) -> Expr:
        parts = [self._load(self._parts, i) for i in range(self._ways)]
        return tree(self._block, self._combine, parts)

    def total(self) -> Expr:
        """Return the vector of the lanes' totals."""
        parts = self._total_of_ways()
        return self._aside.with_rest(parts) if self.has_blocks else parts

    def result(self) -> Expr:
        """Return the total over lanes and single elements."""
        block = self._block
        single = self._load(self._single)
        if self.has_blocks:
            single = self._aside_single.with_rest(single)
        return block.let(self._apply(block, self._folded(self.total(), 1), single))


def write_sums(
    context: Context,
    extents: Sequence[Expr | int],
    totals: Sequence[Accumulator],
    body: Callable[[list[Expr]], None],
    each: int = 1,
) -> None:
    """Write loops whose body adds to totals, which are put aside after each block.

    Args:
        context: What the loops are written for. In an invariant kernel blocks are of the innermost
            loop, be its extent known or not.
        extents: Of the loops, the innermost last.
        totals: What the body adds to.
        body: Receives the counters.
        each: How many elements each total takes in the body.
    """
    block = context.block
    sums = [t for t in totals if t.has_blocks]
    cut, size = _cut(extents, each) if sums else (len(extents), 1)
    if sums and extents and context.invariant:
        cut, size = len(extents) - 1, max(1, BLOCK // each)
    with ExitStack() as stack:
        at = [stack.enter_context(block.loop(extent, "k")) for extent in extents[:cut]]
        if cut == len(extents):
            body(at)
            return
        extent = extents[cut]
        whole = isinstance(extent, int) and extent % size == 0
        with block.loop(ceil_quotient(extent, size), "b") as b:
            first = block.bind(b * size, "first")
            count = size if whole else minimum(size, extent - first)
            with block.loop(count, "k") as k, ExitStack() as inside:
                own = block.bind(first + k, "k")
                inner = [inside.enter_context(block.loop(e, "k")) for e in extents[cut + 1 :]]
                body([*at, own, *inner])
            for one in sums:
                one.end_block()


def _cut(extents: Sequence[Expr | int], each: int) -> tuple[int, int]:
    """Return the loop that is cut into blocks, none being their number, and its part of a block.

    It is the innermost one within which a total may take more elements than a block has.
    """
    for cut in reversed(range(len(extents))):
        extent = extents[cut]
        if not isinstance(extent, int) or each * extent > BLOCK:
            return cut, max(1, BLOCK // each)
        each *= max(1, extent)
    return len(extents), 1
