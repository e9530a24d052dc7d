"""Numbers that are compared: moved by a rounding error, with other addresses, in a dtype's range.

Not for: how far results may be apart (tolerance.py).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import ml_dtypes  # TensorFlow's bfloat16, of which numpy.finfo knows nothing
import numpy as np
import tensorflow as tf

from composite.reference.ulps import Ulps

Array = np.ndarray[Any, Any]

_NEARBY = 4  # runs with other roundings, in pairs
_SIGNS = 4099  # a prime: neighbouring rows are moved in other ways
_BITS_OF_TF32, _HALF_OF_TF32 = 0xFFFFE000, 0x1000  # sign, exponent and 10 bits; half of the last
# Ops whose results begin with the lowest or the largest number of their dtype.
FROM_ENDS = ("MaxPool", "MaxPool3D", "UnsortedSegmentMax", "UnsortedSegmentMin")
_BLOCK = 1 << 15  # elements that the first caches hold, with what is computed of them
_LARGE_TINY = 1e-30  # a smallest normal number above it is half's


def is_floating(array: Array) -> bool:
    """Whether an array holds floating numbers, bfloat16 among them."""
    return bool(tf.as_dtype(array.dtype).is_floating)


def nearby(arrays: Iterable[Array]) -> Iterator[list[Array]]:
    """The arrays, some times, with each floating number a rounding error up or down."""
    given = list(arrays)
    for seed in range(_NEARBY):
        random, up = _of_pair(seed)
        yield [_rounded(random, up, x) for x in given]


def _of_pair(seed: int) -> tuple[np.random.Generator, float]:
    """Where the signs of a run come from, and its own: the two of a pair move all the other way.

    The error of an op may undo a move in one direction, which independent runs would repeat by
    chance in some of a million elements.
    """
    pair, second = divmod(seed, 2)
    return np.random.default_rng(pair), -1.0 if second else 1.0


def _rounded(random: np.random.Generator, up: float, array: Array) -> Array:
    if not is_floating(array):
        return array
    step = up * _eps(array.dtype)
    signs = random.choice([-1.0, 1.0], array.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(array.astype(np.float64) * (1 + step * signs)).astype(array.dtype)


@functools.cache
def _eps(dtype: Any) -> float:
    return float(ml_dtypes.finfo(dtype).eps)


_ONCE = Ulps()


class Rounder:
    """Moves numbers by rounding errors up or down: others each time, the same for each seed.

    Seeds 2n and 2n + 1 move the same numbers in opposite directions. `share` is that of the numbers
    that are moved.
    """

    def __init__(self, seed: int, share: float = 1.0) -> None:
        self._random, self._up = _of_pair(seed)
        signs = self._random.choice([-1.0, 1.0], _SIGNS)
        signs *= self._random.random(_SIGNS) < share
        self._twice = np.concatenate([signs, signs])  # each rotation is a slice of it

    def __call__(self, array: Array, ulps: Ulps = _ONCE) -> Array:
        """A copy with each floating number moved, by as many rounding errors as are stated."""
        if not is_floating(array) or not array.size:
            return array
        first = _SIGNS - self._random.integers(_SIGNS)
        eps = _eps(array.dtype)
        result, one = ulps.at(eps)
        moves = self._up * eps * self._twice[first : first + min(array.size, _SIGNS)]
        with np.errstate(over="ignore", invalid="ignore"):
            moved = array.astype(_wide(array)) * _like(array, 1 + result * moves)
            if one:
                moved += _like(array, one * moves)
        return np.asarray(moved).astype(array.dtype)


def _like(array: Array, values: Array) -> Array:
    """The values, over and over, in the shape of an array."""
    return np.resize(values, array.shape).astype(_wide(array))


def _wide(array: Array) -> Any:
    """What an array is computed with: numbers of 16 bits are wider on the way."""
    return np.float32 if array.dtype == np.float32 else np.float64


class Flusher:
    """Makes zeros, at random, of numbers in float64 that float32 has no normal ones for."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.has_flushed = False

    def __call__(self, array: Array) -> Array:
        """A copy with each such number a zero or as it is."""
        small = (array != 0) & (np.abs(array) < np.finfo(np.float32).tiny)
        if not small.any():
            return array
        self.has_flushed = True
        return np.where(small & (self._random.random(array.shape) < 0.5), 0.0, array)


def smallest_normal(dtype: Any) -> float:
    """The least positive number that is no denormal."""
    return float(ml_dtypes.finfo(dtype).tiny)


def flushes(dtype: Any) -> bool:
    """Whether TensorFlow's threads take denormals for zeros: not those of half.

    Its smallest normal number is no small one, and it is computed with in float32.
    """
    return smallest_normal(dtype) <= _LARGE_TINY


def in_double(array: Array) -> Array:
    """A floating array in float64, with zeros for what TensorFlow's threads take for zeros.

    In float64 these would be normal numbers: times infinity they give infinity, and a zero NaN.
    """
    wide = array.astype(np.float64)
    if flushes(array.dtype):
        small = _are_flushed(array)
        if small.any():
            wide[small] = np.copysign(0.0, wide[small])
    return wide


def tensor_in_double(array: Array) -> Any:
    """The same as a tensor: by TensorFlow's cast, which is faster, where no number is flushed."""
    blocks = (array.reshape(-1)[at : at + _BLOCK] for at in range(0, array.size, _BLOCK))
    if array.dtype != np.float32 or any(_are_flushed(block).any() for block in blocks):
        return tf.constant(in_double(array))
    return tf.cast(tf.constant(array), tf.float64)


def _are_flushed(array: Array) -> Array:
    """Where TensorFlow's threads flush a number to zero."""
    with np.errstate(invalid="ignore"):
        small = np.abs(array) < array.dtype.type(smallest_normal(array.dtype))
    return np.asarray(small & (array != 0))


def in_range(exact: Array, dtype: Any) -> Array:
    """A reference whose numbers beyond those of `dtype` are infinite, as they are there."""
    beyond = np.abs(exact) > float(ml_dtypes.finfo(dtype).max)
    return np.where(beyond, np.copysign(np.inf, exact), exact) if beyond.any() else exact


def with_ends(op: str, result: Array, largest: float) -> Array:
    """A result in float64 with the ends of another dtype where it has those of float64.

    TensorFlow's largest number of a window of NaNs is the lowest number that there is.
    """
    if op not in FROM_ENDS or result.dtype != np.float64:
        return result
    return np.where(
        np.abs(result) == np.finfo(np.float64).max, np.copysign(largest, result), result
    )


def in_tensor_float_32(array: Array) -> Array:
    """The float32 numbers with 10 bits of mantissa, to nearest, as a GPU's tensor cores read them.

    Ties go away from zero, as PTX's `cvt.rna.tf32.f32` has them.
    """
    return _of_ten_bits(array, _HALF_OF_TF32)


def cut_to_tensor_float_32(array: Array) -> Array:
    """The same, but toward zero: what tensor cores make of numbers that nobody rounds for them."""
    return _of_ten_bits(array, 0)


def _of_ten_bits(array: Array, added: int) -> Array:
    bits = np.asarray(array, np.float32).view(np.uint32) + np.uint32(added)
    return np.where(np.isfinite(array), (bits & np.uint32(_BITS_OF_TF32)).view(np.float32), array)


def gap(room: Array, alignment: int) -> int:
    """How many elements of a room lie in front of the first at a multiple of `alignment`."""
    return -room.ctypes.data % alignment // room.itemsize


def aligned(array: Array, alignment: int) -> Array:
    """A copy whose address is a multiple of `alignment`."""
    room = np.empty(array.size + alignment, array.dtype)
    begin = gap(room, alignment)
    moved: Array = room[begin : begin + array.size].reshape(array.shape)
    moved[...] = array
    return moved


def unaligned(array: Array) -> Array:
    """A copy whose address has no alignment but an element's."""
    room = np.empty(array.size + 1, array.dtype)
    moved: Array = room[1:].reshape(array.shape)
    moved[...] = array
    return moved
