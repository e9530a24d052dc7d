"""Inputs by their bits, and errors of results of any dtype, with NumPy and MPFR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gmpy2
import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}

# Where the formulas change, where results overflow or vanish, and where functions have zeros. The
# last ones are as near to multiples of pi/2 as numbers of float32 and float64 get.
_PLACES = (0.0, 0.5, 1.0, 2.0, 4.0, 9.2, 8.667, 9.38, 18.0, 20.0, 38.0, 88.0, 88.72284, 87.33655,
           103.972, 104.0, 708.3964, 709.7827, 745.1332, 1e-9, 71476.0, 1.5707964, 3.1415927,
           0.6931472, 0.34657359, 0.17328680, 0.27077, 16367173.0 * 2.0**72,
           6381956970095103.0 * 2.0**797)  # fmt: skip


def format_of(dtype: np.dtype) -> tuple[int, int, int]:
    """Return a dtype's bits of the mantissa, and the exponents of its least and largest numbers."""
    info = ml_dtypes.finfo(dtype)
    return int(info.nmant), int(info.minexp), int(info.maxexp) - 1


def from_bits(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the numbers of some bits."""
    return bits.astype(_BITS[dtype.itemsize]).view(dtype)


def sample(dtype: np.dtype, runs: int, length: int, seed: int = 0) -> np.ndarray:
    """Return runs of neighbours: so many of each sign and exponent, and those at certain places."""
    mantissa, *_ = format_of(dtype)
    random = np.random.default_rng(seed)
    strata = np.arange(1 << (8 * dtype.itemsize - mantissa), dtype=np.uint64)
    starts = np.repeat(strata << np.uint64(mantissa), runs)
    starts += random.integers(0, (1 << mantissa) - length, starts.size, np.uint64)
    with np.errstate(over="ignore"):
        places = np.array([*_PLACES, *(-p for p in _PLACES), np.inf, -np.inf], dtype)
    near = places.view(_BITS[dtype.itemsize]).astype(np.uint64)
    # Wrapped around the end of the numbers, they are numbers all the same.
    starts = np.concatenate([near - np.uint64(length // 2), starts])
    return from_bits((starts[:, None] + np.arange(length, dtype=np.uint64)).ravel(), dtype)


def wide(x: np.ndarray) -> np.ndarray:
    """Return the numbers in float64."""
    with np.errstate(invalid="ignore"):  # of NaNs that signal
        return x.astype(np.float64)


def exactly(
    function: Callable[..., Any], operands: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return a function's values as sums of two float64, by MPFR.

    The first one has float64's largest number for those beyond it.
    """
    high, low = np.empty(operands[0].size), np.zeros(operands[0].size)
    with gmpy2.context(precision=150, emin=-(10**8), emax=10**8, trap_erange=False):
        given = zip(*(wide(o).tolist() for o in operands), strict=True)
        for i, numbers in enumerate(given):
            value = function(gmpy2, *map(gmpy2.mpfr, numbers))
            high[i] = float(value)
            if np.isfinite(high[i]) and high[i] != 0:
                low[i] = float(value - gmpy2.mpfr(high[i]))
    return high, low


def errors(results: np.ndarray, high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Return errors in units in the last place of the exact value, `high` and `low` together.

    As judge.cc has them; of half, whose denormals are no small numbers, no zero is right where the
    exact value is not.
    """
    mantissa, least, most = format_of(results.dtype)
    with np.errstate(all="ignore"):
        exponent = np.where(high == 0, least, np.frexp(high)[1] - 1)
        exponent = np.where(np.isfinite(high), np.clip(exponent, least, most), most)
        end = 2.0 ** (most + 1) if most < 1023 else np.inf  # infinity counts as this
        given, wanted = (np.clip(y, -end, end) for y in (wide(results), high))
        difference = np.where(given == wanted, 0, given - wanted)
        difference -= np.where(np.abs(high) < end, low, 0)
        error = np.abs(np.ldexp(difference, mantissa - exponent))
        if results.dtype != np.float16:
            error[(given == 0) & (np.abs(high) < 2.0**least)] = 0
        error[np.isnan(given) & np.isnan(high)] = 0
    return np.where(np.isnan(error), np.inf, error)


def places(numbers: np.ndarray) -> np.ndarray:
    """Return the places of numbers in their order, zero once."""
    signed = numbers.view(f"i{numbers.dtype.itemsize}").astype(np.int64)
    size = signed & np.int64((1 << (8 * numbers.dtype.itemsize - 1)) - 1)
    return np.where(signed < 0, -size, size)
