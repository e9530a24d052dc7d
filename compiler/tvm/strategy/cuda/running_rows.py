"""The softmax of an attention while its logits come, in the registers of a warp.

A lane has elements of two rows of the scores (:mod:`.fragments`). Of each row it keeps the largest
logit and the sum of the exponentials so far; a larger one scales what was added up before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.codegen.block import Buffer, const, index, minimum
from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.tensor import Body, Expr, Pointwise, Tensor
from composite.compiler.tvm.math.numeric import choose, like
from composite.compiler.tvm.plan.running_softmax import RunningSoftmax
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.group import Total
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.strategy.indexing import unflatten

_PARTNERS = (2, 1)
"""In which bits the lanes differ that have elements of the same row."""


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
        self._most = [self._total(found.most) for _ in self._rows]
        self._totals = [self._total(found.total) for _ in self._rows]

    def _total(self, reduction: Tensor) -> Total:
        if not isinstance(reduction.node, Reduce):
            raise TypeError("an attention's rows are reduced")
        return Total(self._block, reduction.node.combine, "float32")

    def add(self, scores: Buffer, sums: Buffer, first: Expr) -> None:
        """Put the exponentials of the logits in place of the scores, and scale the sums.

        ``first`` is the lane's first column of the scores.
        """
        block = self._block
        tiles = int(scores.shape[0]) // 4
        places = self._places(first, [j * 8 + i for j in range(tiles) for i in (0, 1)], tiles * 8)
        batch = place_of(self._matrix, self._found.logits.shape[:-2], self._context)
        for half, row in enumerate(self._rows):
            cells = _cells(tiles, half)
            for (column, inside), cell in zip(places, cells, strict=True):
                logit = self._logit([*batch, row, column], block.let(block.load(scores, cell)))
                if inside is not None:
                    logit = choose(inside, logit, like(float("-inf"), logit))
                block.store(scores, cell, block.let(logit))
            scale = self._raise(half, scores, cells)
            for cell in _cells(int(sums.shape[0]) // 4, half):
                block.store(sums, cell, block.let(block.load(sums, cell)) * scale)

    def _places(
        self, first: Expr, columns: Sequence[int], together: int
    ) -> list[tuple[Expr, Expr | None]]:
        """Return where elements of columns are read, and whether they are; None is always."""
        block, count = self._block, self._context.size(self._found.scores.shape[-1])
        places = [block.bind(first + column, "column") for column in columns]
        if isinstance(count, int) and count % together == 0:
            return [(place, None) for place in places]
        # A small number, so that it takes one register.
        left = block.let(tirx.Cast("int32", minimum(index(count) - first, together)), "left")
        last = index(count) - 1
        return [
            (block.bind(minimum(place, last), "column"), left > const(column, "int32"))
            for place, column in zip(places, columns, strict=True)
        ]

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
        for bits in _PARTNERS:
            most.add_partners(bits)
        largest = most.value()
        # Where a row has nothing but -inf so far, the exponentials are to be 0.
        low = like(float("-inf"), largest)
        base = block.let(choose(tirx.EQ(largest, low), like(0.0, largest), largest))
        scale = self._power(before, base)
        scaled = block.let(total.value() * scale)
        total.restart()
        total.add(scaled)
        for cell in cells:
            block.store(logits, cell, self._power(block.let(block.load(logits, cell)), base))
            total.add(block.load(logits, cell))
        return scale

    def _power(self, x: Expr, most: Expr) -> Expr:
        """Return the exponential of a difference."""
        less = self._block.let(_body(self._found.difference)(self._block, x, most))
        return self._block.let(_body(self._found.power)(self._block, less))

    def divide(self, sums: Buffer) -> None:
        """Make of each sum what the softmax makes of an exponential and its row's total."""
        block, found = self._block, self._found
        batch = place_of(self._matrix, found.logits.shape[:-2], self._context)
        # A product over no columns is 0, whatever a softmax of none is.
        count, zero = self._context.size(found.scores.shape[-1]), const(0.0, "float32")
        some = count > 0 if isinstance(count, int) else block.let(count > index(0))
        for half, (row, total) in enumerate(zip(self._rows, self._totals, strict=True)):
            for bits in _PARTNERS:
                total.add_partners(bits)
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
