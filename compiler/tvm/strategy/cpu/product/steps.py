"""What a product takes of a factor at each step of k: one element, or a pair of bfloat16.

A pair is two neighbours along k; that behind a last one without a neighbour is zero. It lies in
panels as a float32 of the same bits (:mod:`...math.bfloat16`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane, Strided, strided
from composite.compiler.tvm.codegen.block import (
    Block,
    ceil_quotient,
    const,
    index,
    maximum,
    minimum,
    quotient,
    spread,
)
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import bits, convert, to_storage, with_lanes
from composite.compiler.tvm.strategy.context import Context

_PAIRED = "bfloat16"
_DTYPE = "float32"


def count_steps(depth: Expr | int, *, pairs: bool) -> Expr | int:
    """Return how many steps there are of that many elements."""
    return ceil_quotient(depth, 2) if pairs else depth


class StepReader:
    """Reads steps of a factor, in the compute dtype.

    Args:
        context: The kernel.
        factor: The factor, and whether its matrices are ``[K, count]``.
        batch: Indices of its batch dimensions, already broadcast.
        pairs: Whether a step is a pair.
    """

    def __init__(
        self, context: Context, factor: tuple[Tensor, bool], batch: list[Index], *, pairs: bool
    ) -> None:
        self._context = context
        self._block = context.block
        self._tensor, self._k_first = factor
        own = batch[len(batch) - (self._tensor.rank - 2) :]
        shape = self._tensor.shape
        self._batch: list[Index] = [0 if d == 1 else i for d, i in zip(shape, own, strict=False)]
        self._depth = context.size(shape[-2 if self._k_first else -1])
        self._pairs = pairs
        self._is_even = isinstance(self._depth, int) and self._depth % 2 == 0
        where = strided(self._tensor, context.space)
        self._where = where if where is not None and where.storage.dtype == _PAIRED else None

    def whole(self, k: Expr | int, depth: Expr | int) -> Expr | int:
        """Return how many of the steps ``[k, k + depth)`` have all their elements."""
        if not self._pairs or self._is_even:
            return depth
        left = maximum(0, quotient(self._depth, 2) - k)
        return self._block.bind(minimum(depth, left), "whole")

    def read(self, k: Index, column: Index, lanes: int) -> Expr:
        """Return ``lanes`` steps: from a :class:`Lane` of ``k``, which are whole, or of columns."""
        if not self._pairs:
            value = self._context.access().read(self._tensor, self._at(k, column))
            return spread(value, lanes)
        if isinstance(k, Lane):
            run = Lane(index(k.base * 2), 2 * lanes)
            return bits_of_pairs(self._elements(run, column, 2 * lanes))
        first = k * 2
        second: Expr | int = first + 1
        if not self._is_even:
            second = minimum(second, self._depth - 1)
        low = convert(self._elements(first, column, lanes), "uint32")
        high = convert(self._elements(second, column, lanes), "uint32")
        high = high << const(16, with_lanes("uint32", high))
        if not self._is_even:
            there = first + 1 < self._depth
            nothing = const(0, with_lanes("uint32", high))
            high = tirx.Select(spread(there, lanes), high, nothing)
        return bits(low | high, _DTYPE)

    def _elements(self, k: Index, column: Index, lanes: int) -> Expr:
        """Return elements of bfloat16 as they are stored; those of wider ones are rounded."""
        at = self._at(k, column)
        if self._where is not None:
            return self._block.let(_load(self._block, self._where, at, lanes))
        value = self._context.access().read(self._tensor, at)
        with self._block.flushing(lanes > 1):  # as products of pairs do
            return self._block.let(to_storage(self._block, spread(value, lanes), _PAIRED))

    def _at(self, k: Index, column: Index) -> list[Index]:
        return [*self._batch, *([k, column] if self._k_first else [column, k])]


def _load(block: Block, where: Strided, at: Sequence[Index], lanes: int) -> Expr:
    """Return elements as they are stored."""
    place, step = where.offset, 1
    for i, stride in zip(at, where.strides, strict=True):
        if isinstance(i, Lane):
            place, step = place + i.base * stride, stride
        else:
            place = place + i * stride
    return block.load(where.storage.buffer, place, lanes, step)


def bits_of_pairs(elements: Expr) -> Expr:
    """Return a vector of bfloat16 in uint16 as half as many pairs."""
    lanes = int(elements.ty.dtype.lanes) // 2
    return tirx.reinterpret(f"{_DTYPE}x{lanes}" if lanes > 1 else _DTYPE, elements)
