"""The softmax of an attention while its logits come, in the registers of a warp.

A lane has elements of two rows of the scores (:mod:`.fragments`). Of each row it keeps the largest
logit and the sum of the exponentials so far; a larger one scales what was added up before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tirx

from composite.compiler.tvm.algebra import ring
from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.ir.anchors import Combine, Reduce
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.tensor import Body, Expr, Pointwise, Tensor
from composite.compiler.tvm.math.by_name import by_name
from composite.compiler.tvm.math.numeric import bits, choose, like
from composite.compiler.tvm.plan.running_softmax import RunningSoftmax
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.group import Total
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.tir.block import Block, Buffer, const, index, minimum
from composite.compiler.tvm.tir.stand_ins import NAMED

_LOG2_E = 1.4426950408889634
_LARGER = Combine("Larger", lambda _: float("-inf"), lambda _, x, y: tirx.max(x, y))
"""The larger number. A NaN is passed over: its own exponential is NaN anyway."""
_PARTNERS = (2, 1)
"""In which bits the lanes differ that have elements of the same row."""


@by_name
def exp_of_difference(block: Block, less: Expr) -> Expr:
    """Return the exponential of a number that is not above 0, as a power of 2.

    The product with log2(e) is rounded, an error of at most 126 / 2^24 of a power that is a normal
    number. The factors of the second product are rounded to 2^-11.
    """
    power = block.let(less * const(_LOG2_E, "float32"))
    return block.let(tirx.call_pure_extern("float32", "composite_exp2", power))


def _nothing_of_ring() -> Expr:
    return bits(const(ring.NOTHING, "uint32"), "float32")


class RunningRows:
    """Two rows of a lane, of which nothing was seen.

    Args:
        found: The attention.
        matrix: The number of the matrix that the rows are of.
        first: The lane's first row; the other one is the eighth after it.
        context: The kernel's.
    """

    def __init__(self, found: RunningSoftmax, matrix: Expr, first: Expr, context: Context) -> None:
        self._found = found
        self._matrix = matrix
        self._context = context
        self._block = device_block(context)
        # Where there is no row, it is the last one's double, which nobody stores.
        last = index(context.size(found.scores.shape[-2])) - 1
        rows = (minimum(index(first + half * 8), last) for half in range(2))
        self._rows = [self._block.bind(row, "row") for row in rows]
        self._most = [Total(self._block, _LARGER, "float32") for _ in self._rows]
        if not isinstance(found.total.node, Reduce):
            raise TypeError("an attention's rows are reduced")
        combine = found.total.node.combine
        self._totals = [Total(self._block, combine, "float32") for _ in self._rows]

    def add(self, scores: Buffer, sums: Buffer, first: Expr) -> None:
        """Put the exponentials of the logits in place of the scores, and scale the sums.

        ``first`` is the lane's first column of the scores.
        """
        block = self._block
        tiles = int(scores.shape[0]) // 4
        columns = [j * 8 + i for j in range(tiles) for i in (0, 1)]
        count = self._context.size(self._found.scores.shape[-1])
        is_whole = isinstance(count, int) and count % (tiles * 8) == 0
        batch = place_of(self._matrix, self._found.logits.shape[:-2], self._context)
        for half, row in enumerate(self._rows):
            for column, cell in zip(columns, _cells(tiles, half), strict=True):
                place: Expr = index(first + column)
                place = block.bind(
                    place if is_whole else minimum(place, index(count) - 1), "column"
                )
                logit = self._logit([*batch, row, place], block.let(block.load(scores, cell)))
                block.store(scores, cell, block.let(logit))
        if not is_whole:
            self._leave_out(scores, index(count) - first, columns)
        for half in range(2):
            scale = self._raise(half, scores, _cells(tiles, half))
            for cell in _cells(int(sums.shape[0]) // 4, half):
                block.store(sums, cell, block.let(block.load(sums, cell)) * scale)

    def _leave_out(self, logits: Buffer, left: Expr, columns: Sequence[int]) -> None:
        """Let logits of columns that there are none of be -inf: in the last piece, if at all."""
        block, low = self._block, self._nothing()
        # A small number, so that it takes one register.
        left = block.let(tirx.Cast("int32", minimum(left, columns[-1] + 1)), "left")
        with block.when(left <= const(columns[-1], "int32")):
            for half in range(2):
                cells = _cells(int(logits.shape[0]) // 4, half)
                for column, cell in zip(columns, cells, strict=True):
                    inside = left > const(column, "int32")
                    block.store(logits, cell, choose(inside, block.load(logits, cell), low))

    def _logit(self, at: list[Index], score: Expr) -> Expr:
        """Return an element of the logits, made of that of the scores."""
        access = self._context.access()  # an element's own: it has one score
        access.give(self._found.scores, lambda _: score)
        return access.compute(self._found.logits, at)

    def _raise(self, half: int, logits: Buffer, cells: Sequence[int]) -> Expr:
        """Make exponentials of a row's logits; return what scales those of before."""
        block, most, total = self._block, self._most[half], self._totals[half]
        before = most.value()
        for cell in cells:
            most.add(block.load(logits, cell))
        for partner in _PARTNERS:
            most.add_partners(partner)
        largest = most.value()
        # Where a row has nothing but -inf so far, the exponentials are to be 0; over a ring
        # -inf is a number like others.
        low = like(float("-inf"), largest)
        none = choose(tirx.EQ(largest, low), like(0.0, largest), largest)
        with block.stand_ins.standing(largest) as found:
            base = found(block.let(none))
        scale = self._power(before, base)
        scaled = block.let(total.value() * scale)
        total.restart()
        total.add(scaled)
        for cell in cells:
            block.store(logits, cell, self._power(block.let(block.load(logits, cell)), base))
            total.add(block.load(logits, cell))
        return scale

    def _power(self, x: Expr, base: Expr) -> Expr:
        """Return the exponential of ``x - base``, which is not above 0."""
        block = self._block
        named = tirx.call_pure_extern("float32", NAMED + exp_of_difference.__name__, x - base)
        # Over the ring e^-inf is not 0.
        stand_in = choose(tirx.EQ(x, _nothing_of_ring()), like(0.0, x), named)
        with block.stand_ins.standing(stand_in) as found:
            return found(exp_of_difference(block, block.let(x - base)))

    def _nothing(self) -> Expr:
        """Return what stands for a logit that there is none of: -inf, or no other's over a ring."""
        return self._block.stand_ins.add(const(float("-inf"), "float32"), _nothing_of_ring())

    def divide(self, sums: Buffer) -> None:
        """Make of each sum what the softmax makes of an exponential and its row's total."""
        block, found = self._block, self._found
        batch = place_of(self._matrix, found.logits.shape[:-2], self._context)
        # A product over no columns is 0, whatever a softmax of none is.
        count, zero = self._context.size(found.scores.shape[-1]), const(0.0, "float32")
        some = count > 0 if isinstance(count, int) else block.let(count > index(0))
        for half, (row, total) in enumerate(zip(self._rows, self._totals, strict=True)):
            for partner in _PARTNERS:
                total.add_partners(partner)
            whole = total.value()
            access = self._context.access()
            access.give(found.total, _always(whole))
            place: list[Index] = [*batch, row, 0]
            part = block.let(access.compute(found.part, place[: found.part.rank]))
            for cell in _cells(int(sums.shape[0]) // 4, half):
                value = block.let(block.load(sums, cell))
                value = block.let(_body(found.share)(block, value, part))
                block.store(sums, cell, value if some is True else choose(some, value, zero))


def place_of(matrix: Expr, batch: Shape, context: Context) -> list[Index]:
    """Return the indices of a matrix, in dimensions that number all of them."""
    return unflatten(context, matrix, batch) if batch else []


def _cells(tiles: int, half: int) -> list[int]:
    """Return a lane's registers that have elements of one of its rows, in the columns' order."""
    return [4 * j + 2 * half + i for j in range(tiles) for i in range(2)]


def _body(tensor: Tensor) -> Body:
    if not isinstance(tensor.node, Pointwise):
        raise TypeError("an attention's softmax is made element by element")
    return tensor.node.body


def _always(value: Expr) -> Callable[..., Expr]:
    return lambda _: value
