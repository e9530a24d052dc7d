"""How far the functions of :mod:`.math` are off: the one table of bounds.

In units in the last place of the exact result: the distance of the two numbers of the dtype around
it. The bounds are for all inputs, infinities and NaN included; but in float32 a result whose exact
value is subnormal may be zero, which TensorFlow's threads make of it anyway. `make exhaustive`
measures them, see docs/numerics.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """The largest error of a function, in units in the last place.

    Attributes:
        float32: Where a product and a sum are rounded once.
        float64: The same in float64; libm's own where it is called.
        unfused: float32 where a product and a sum are rounded each, as on x86-64-v2.
    """

    float32: float
    float64: float
    unfused: float

    def of(self, dtype: str, *, fuses: bool) -> float:
        """Return the bound in a dtype; 16-bit floats are computed in float32 and rounded."""
        if dtype == "float64":
            return self.float64
        wide = self.float32 if fuses else self.unfused
        return wide if dtype == "float32" else 0.5 + wide * 2.0**-13


def _bound(float32: float, float64: float, unfused: float | None = None) -> Bound:
    return Bound(float32, float64, float32 if unfused is None else unfused)


LIBM = 1.0
"""The largest error of most functions of float64 that kernels take from the C library."""

BOUNDS: Mapping[str, Bound] = {
    "exp": _bound(1.0, 1.5, unfused=1.5),
    "exp_of_difference": _bound(7.0, 1.5),
    "exp_of_minus_size": _bound(1.5, 1.5),
    "exp_of_minus_square": _bound(5.5, 375.0),  # float64: e^y of a square that was rounded
    "expm1": _bound(2.0, 2.0),
    "log": _bound(1.0, 1.5),
    "log1p": _bound(2.0, 2.0),
    "tanh": _bound(2.0, 3.5),
    "sigmoid": _bound(2.5, 2.5),
    "softplus": _bound(2.5, 3.0),
    "tanh_of_softplus": _bound(4.5, 3.5),
    "erf": _bound(6.0, LIBM, unfused=7.0),
    "erfc": _bound(7.5, 2.5, unfused=8.0),
    "rsqrt": _bound(1.5, 1.5),
    "sin": _bound(1.5, LIBM),
    "cos": _bound(1.5, 8.0),  # float64: glibc, next to a zero
    "tan": _bound(3.0, 15.0),  # float64: glibc, next to a pole
    "atan": _bound(1.5, LIBM),
    "atan2": _bound(2.0, LIBM),
    "power": _bound(1.0, LIBM),
    "divide_by_one": _bound(2.5, 2.5),
}
"""By the names of the functions."""
