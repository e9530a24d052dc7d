"""What a product takes of its factors at each step of k: an element of each, or a group of them.

Groups are neighbours along k, in as many bits as a sum has, and travel as a number of that size:
pairs of bfloat16 as a float32 (:mod:`...math.bfloat16`), pairs of int16 and four 8-bit integers as
an int32 (:mod:`...math.integer_dots`). Behind a last group that is not whole are zeros.

8-bit integers are multiplied as a uint8 by an int8. So the lowest number of the rows' dtype is
taken from each of their elements, and what sums start with makes up for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane, Strided, strided
from composite.compiler.tvm.ir.dtypes import fits
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math import bfloat16, integer_dots
from composite.compiler.tvm.math.integer_dots import Dot
from composite.compiler.tvm.math.numeric import (
    add,
    bits,
    convert,
    element,
    mul,
    to_storage,
    widened,
    with_lanes,
)
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.target import Target
from composite.compiler.tvm.tir.block import (
    Block,
    ceil_quotient,
    const,
    index,
    maximum,
    minimum,
    quotient,
    spread,
)

_BITS = {"bfloat16": 16, "int16": 16, "int8": 8, "uint8": 8}


@dataclass(frozen=True)
class Part:
    """What steps hold of one factor: its elements less ``zero``, each as a ``dtype``."""

    dtype: str
    zero: int = 0


@dataclass(frozen=True)
class Step:
    """What is multiplied at a step.

    Attributes:
        vectors: What is held of the factor that supplies vectors.
        rows: What is held of the one that supplies single steps.
        size: Elements of each.
        low: What was taken from the rows' elements beside what the product takes from them.
    """

    vectors: Part
    rows: Part
    size: int = 1
    low: int = 0

    @classmethod
    def of_elements(cls, dtype: str) -> Step:
        """Return the step that is one element of each factor."""
        return cls(Part(dtype), Part(dtype))

    @property
    def is_group(self) -> bool:
        """Whether there are several elements in a step."""
        return self.size > 1

    @property
    def padding(self) -> int:
        """What a step of the rows is where the product takes zeros: 8-bit ones less ``low``."""
        return int.from_bytes(bytes([-self.low] * 4), "little", signed=True) if self.low else 0

    def count(self, elements: Expr | int) -> Expr | int:
        """Return how many steps there are of that many elements."""
        return ceil_quotient(elements, self.size) if self.is_group else elements

    def dot(self, lanes: int) -> Dot:
        """Return what adds the products of a step to that many sums."""
        if not self.is_group:
            return lambda block, sums, a, b: add(block, sums, mul(block, a, b))
        if self.rows.dtype == "bfloat16":
            return bfloat16.dot
        return integer_dots.pairs(lanes) if self.size == 2 else integer_dots.quads()


BFLOAT16_PAIRS = Step(Part("bfloat16"), Part("bfloat16"), 2)


def integer_steps(
    rows: tuple[Tensor, int], vectors: tuple[Tensor, int], target: Target
) -> list[Step]:
    """Return the steps for factors of narrow integers, each with its zero point; largest first."""
    (row, row_zero), (vector, vector_zero) = rows, vectors
    own, least = np.iinfo(row.dtype), np.iinfo(row.dtype).min
    low = int(least) - row_zero
    is_byte = own.bits == _BITS["int8"] and 0 <= -low <= np.iinfo(np.uint8).max
    found = []
    if target.has_quads and is_byte and fits(vector.dtype, vector_zero, "int8"):
        found.append(Step(Part("int8", vector_zero), Part("uint8", int(least)), 4, low))
    for dtype, size in (("int16", 2), ("int32", 1)):
        if size == 1 or target.has_int16_pairs:
            found.append(Step(Part(dtype, vector_zero), Part(dtype, row_zero), size))
    return found


class StepReader:
    """Reads steps of a factor.

    Args:
        context: The kernel.
        factor: The factor, and whether its matrices are ``[K, count]``.
        batch: Indices of its batch dimensions, already broadcast.
        size: Elements of a step.
        part: What is held of them.
    """

    def __init__(
        self,
        context: Context,
        factor: tuple[Tensor, bool],
        batch: list[Index],
        size: int,
        part: Part,
    ) -> None:
        self._context = context
        self._block = context.block
        self._tensor, self._k_first = factor
        own = batch[len(batch) - (self._tensor.rank - 2) :]
        shape = self._tensor.shape
        self._batch: list[Index] = [0 if d == 1 else i for d, i in zip(shape, own, strict=False)]
        self._depth = context.size(shape[-2 if self._k_first else -1])
        self._size, self._part = size, part
        self._is_even = isinstance(self._depth, int) and self._depth % size == 0
        where = strided(self._tensor, context.space)
        self._where = where if where is not None and where.storage.dtype == "bfloat16" else None

    def whole(self, k: Expr | int, depth: Expr | int) -> Expr | int:
        """Return how many of the steps ``[k, k + depth)`` have all their elements."""
        if self._is_even:
            return depth
        left = maximum(0, quotient(self._depth, self._size) - k)
        return self._block.bind(minimum(depth, left), "whole")

    def read(self, k: Index, column: Index, lanes: int, *, is_whole: bool = False) -> Expr:
        """Return ``lanes`` steps: from a :class:`Lane` of ``k``, which are whole, or of columns."""
        size = self._size
        if size == 1:
            return self._elements(k, column, lanes)
        if isinstance(k, Lane):
            run = Lane(index(k.base * size), size * lanes)
            return joined(self._elements(run, column, size * lanes), size)
        first, width, is_whole = k * size, _BITS[self._part.dtype], is_whole or self._is_even
        total = self._unsigned(first, column, lanes)
        for i in range(1, size):
            at: Expr | int = first + i
            last = at if is_whole else minimum(at, self._depth - 1)
            high = self._unsigned(last, column, lanes)
            high = high << const(width * i, with_lanes("uint32", high))
            if not is_whole:
                nothing = const(0, with_lanes("uint32", high))
                high = tirx.Select(spread(at < self._depth, lanes), high, nothing)
            total = total | high
        return bits(total, _carrier(self._part.dtype))

    def _unsigned(self, k: Expr | int, column: Index, lanes: int) -> Expr:
        """Return elements as they are held, with zeros before them."""
        value = self._elements(k, column, lanes)
        return convert(bits(value, f"uint{_BITS[self._part.dtype]}"), "uint32")

    def _elements(self, k: Index, column: Index, lanes: int) -> Expr:
        """Return elements as they are held; those of wider floats are rounded."""
        at = self._at(k, column)
        if self._part.dtype == "bfloat16" and self._where is not None:
            return self._block.let(_load(self._block, self._where, at, lanes))
        value = spread(self._context.access().read(self._tensor, at), lanes)
        if self._part.dtype == "bfloat16":
            with self._block.flushing(lanes > 1):  # as products of pairs do
                return self._block.let(to_storage(self._block, value, "bfloat16"))
        if element(value) == self._part.dtype and not self._part.zero:
            return value
        return convert(widened(value, self._part.zero), self._part.dtype)

    def _at(self, k: Index, column: Index) -> list[Index]:
        return [*self._batch, *([k, column] if self._k_first else [column, k])]


def joined(elements: Expr, size: int) -> Expr:
    """Return a vector of elements as steps of that many."""
    dtype = element(elements)
    lanes = int(elements.ty.dtype.lanes) // size
    carrier = _carrier("bfloat16" if dtype == "uint16" else dtype)
    return tirx.reinterpret(f"{carrier}x{lanes}" if lanes > 1 else carrier, elements)


def _carrier(dtype: str) -> str:
    """Return what a group of such elements travels as; bfloat16 is stored as uint16."""
    return "float32" if dtype == "bfloat16" else "int32"


def _load(block: Block, where: Strided, at: Sequence[Index], lanes: int) -> Expr:
    """Return elements as they are stored."""
    place, step = where.offset, 1
    for i, stride in zip(at, where.strides, strict=True):
        if isinstance(i, Lane):
            place, step = place + i.base * stride, stride
        else:
            place = place + i * stride
    return block.load(where.storage.buffer, place, lanes, step)
