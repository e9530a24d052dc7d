"""Confirms what results are held against: judge.cc by MPFR, and MPFR by mpmath.

The formulas of judge.cc in float64 are a few of its units in the last place off, which is nothing
in float32. MPFR has 150 bits, and mpmath, whose algorithms are its own, 170.
"""

from __future__ import annotations

from collections.abc import Iterable

import gmpy2
import mpmath
import numpy as np

from tests.exhaustive import judge, numbers
from tests.exhaustive.functions import Function
from tests.exhaustive.judge import Found

_UNITS = 16
"""Units in the last place of float64 that judge.cc may be off."""
_BITS = 100
"""Leading bits in which MPFR and mpmath agree."""


def worst_inputs(found: Iterable[Found]) -> list[list[float]]:
    """Return the inputs of the largest errors."""
    places = [one.error_at for one in found]
    return [place if isinstance(place, list) else [place] for place in places]


def disagreements(function: Function, inputs: Iterable[list[float]]) -> list[str]:
    """Say where MPFR and mpmath differ."""
    found = []
    for operands in inputs:
        with gmpy2.context(precision=150, emin=-(10**8), emax=10**8), mpmath.workprec(170):
            own = function.exact(gmpy2, *map(gmpy2.mpfr, operands))
            if not gmpy2.is_finite(own) or own == 0:
                continue
            other = function.exact(mpmath, *map(mpmath.mpf, operands))
            mantissa, exponent = own.as_mantissa_exp()
            exact = mpmath.mpf(int(mantissa)) * mpmath.mpf(2) ** int(exponent)
            if abs(other - exact) > abs(exact) * mpmath.mpf(2) ** -_BITS:
                found.append(f"{function.name}{tuple(operands)}: MPFR {own}, mpmath {other}")
    return found


def deviations(function: Function, runs: int = 2, length: int = 4) -> list[str]:
    """Say where judge.cc is off, for a sample of float32 numbers."""
    x = numbers.sample(np.dtype(np.float32), runs, length)
    low, high = function.domain
    x = x[(x >= low) & (x <= high)]
    found = np.empty(x.size)
    judge.evaluate(function.name, x, found)
    exact, rest = numbers.exactly(function.exact, [x])
    with np.errstate(all="ignore"):
        is_far = (np.abs(exact) > 2.0**128) & (np.abs(found) > 2.0**128)
        is_near = (np.abs(exact) < 2.0**-160) & (np.abs(found) < 2.0**-160)
        off = np.abs((found - exact) - rest) > _UNITS * np.spacing(np.abs(exact))
    same = (found == exact) | (np.isnan(found) & np.isnan(exact)) | is_far | is_near
    return [
        f"{function.name}({x[i]!r}): {found[i]!r} in judge.cc, by MPFR {exact[i]!r}"
        for i in np.flatnonzero(~same & (off | np.isnan(found)))
    ]
