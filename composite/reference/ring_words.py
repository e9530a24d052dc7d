"""Elements of the ring as NumPy's unsigned integers; see `compiler/tvm/algebra/ring.py`."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from composite.binding import native
from composite.compiler.tvm.algebra import ring

Words = np.ndarray[Any, Any]


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


def product(a: Words, b: Words) -> Words:
    """The matrix product, as `np.matmul`, which is fast for floats alone."""
    if b.ndim == 2:  # all rows in one
        rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        return _multiplied(rows, b).reshape(*a.shape[:-1], b.shape[-1])
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(one, (*batch, *one.shape[-2:])) for one in (a, b))
    made = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    for place in np.ndindex(*batch):
        made[place] = _multiplied(a[place], b[place])
    return made


def _multiplied(a: Words, b: Words) -> Words:
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    made = np.empty((a.shape[0], b.shape[1]), a.dtype)
    pointers = [ctypes.c_void_p(one.ctypes.data) for one in (a, b, made)]
    numbers = [ctypes.c_int64(n) for n in (a.dtype.itemsize, *a.shape, b.shape[1])]
    native.invoke(native.library().composite_multiply_words, *pointers, *numbers)
    return made


def contracted(equation: str, a: Words, b: Words) -> Words:
    """What `np.einsum` makes of two operands."""
    (first, second), wanted = (part.split(",") for part in equation.replace(" ", "").split("->"))
    out = wanted[0]
    once = all(len(set(term)) == len(term) for term in (first, second, out))
    inner = [c for c in first if c in second and c not in out]
    if (
        "." in equation
        or not once
        or any(c not in out + second for c in first)
        or any(c not in out + first for c in second)
    ):
        return np.einsum(equation, a, b)
    batch = [c for c in first if c in second and c in out]
    rows = [c for c in first if c not in second]
    columns = [c for c in second if c not in first]
    sizes = dict(zip(first + second, a.shape + b.shape, strict=True))

    def matrices(words: Words, term: str, *groups: list[str]) -> Words:
        order = [term.index(c) for group in groups for c in group]
        return words.transpose(order).reshape([math.prod(sizes[c] for c in g) for g in groups])

    left, right = matrices(a, first, batch, rows, inner), matrices(b, second, batch, inner, columns)
    made = product(left, right)
    order = [*batch, *rows, *columns]
    return made.reshape([sizes[c] for c in order]).transpose([order.index(c) for c in out])


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
