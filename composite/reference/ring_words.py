"""Elements of the ring as NumPy's unsigned integers; see `compiler/tvm/algebra/ring.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from composite.compiler.tvm.algebra import ring

Words = np.ndarray[Any, Any]

_PART = 16  # bits
_MASK = (1 << _PART) - 1
_MOST_BITS = 2 * _PART  # of words whose products consist of three of parts
_MOST_SUMMANDS = 1 << 20  # of 33 bits, whose sum float64 holds


def width(words: Words) -> int:
    """The bits of an element."""
    return words.dtype.itemsize * 8


def of(name: str) -> Callable[..., Words]:
    """A function of the ring on arrays of one dtype that broadcast."""
    function = ring.function(name)

    def apply(*operands: Words) -> Words:
        return np.asarray(function(*operands, bits=width(operands[0])), operands[0].dtype)

    return apply


def like(value: float, words: Words) -> Words:
    """A constant of the words' width."""
    return words.dtype.type(ring.constant(value, f"float{width(words)}"))


def quotient(a: Words, b: Words) -> Words:
    """The words' a / b."""
    return a * of("inverse")(b)


def minus(words: Words) -> Words:
    """The words' -x."""
    return of("neg")(words)


def before(a: Words, b: Words) -> Words:
    """Where a < b."""
    return of("order")(a) < of("order")(b)


def larger(a: Words, b: Words) -> Words:
    """The larger of two."""
    return np.where(before(b, a), a, b)


def smaller(a: Words, b: Words) -> Words:
    """The smaller of two."""
    return np.where(before(a, b), a, b)


def absolute(words: Words) -> Words:
    """The larger of x and -x."""
    return larger(words, minus(words))


def bilinear(function: Callable[[Any, Any], Any], a: Words, b: Words, count: int) -> Words:
    """What a sum of `count` products is over the ring; `function` takes any dtype.

    Words of 16 and 32 bits are multiplied as float64, in parts of 16 bits whose sums are exact:
    NumPy has fast products of floats alone.
    """
    bits = width(a)
    if bits > _MOST_BITS or count > _MOST_SUMMANDS:
        return np.asarray(function(a, b), a.dtype)

    def part(words: Words, number: int) -> Any:
        return ((words >> (_PART * number)) & _MASK).astype(np.float64)

    def whole(sums: Any) -> Any:
        return np.asarray(sums).astype(np.uint64)

    low = whole(function(part(a, 0), part(b, 0)))
    if bits > _PART:
        high = function(part(a, 0), part(b, 1)) + function(part(a, 1), part(b, 0))
        low += whole(high) << np.uint64(_PART)
    return np.asarray(low.astype(a.dtype))


def product(a: Words, b: Words) -> Words:
    """The matrix product, as `np.matmul`."""
    return bilinear(np.matmul, a, b, a.shape[-1])


def total(words: Words, axes: tuple[int, ...], *, keep: bool = False) -> Words:
    """The sum over axes."""
    made: Words = np.add.reduce(words, axis=axes, keepdims=True, dtype=words.dtype)
    return made if keep else made.squeeze(axes)


def extreme(words: Words, axes: tuple[int, ...], *, keep: bool, largest: bool) -> Words:
    """The largest or smallest over axes; of none, the smallest or largest that there is."""
    bits = width(words)
    none = np.asarray(ring.least(bits) if largest else ring.most(bits), words.dtype)
    combine = np.maximum if largest else np.minimum
    best: Words = combine.reduce(
        of("order")(words), axis=axes, keepdims=True, initial=of("order")(none)
    )
    made = np.asarray(ring.of_rank(best, bits), words.dtype)
    return made if keep else made.squeeze(axes)
