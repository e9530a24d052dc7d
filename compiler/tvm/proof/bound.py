"""One bound of one atom, and how a proof uses it; one of the values that an atom may have."""

from __future__ import annotations

from typing import NamedTuple

from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.proof.polynomials import divide


class Bound(NamedTuple):
    """``sign * factor * atom + rest >= 0``; the factor is positive."""

    sign: int
    factor: Dim
    rest: Dim


class Case(NamedTuple):
    """A value that an atom may have, and what holds if it has that one."""

    value: Dim
    facts: tuple[Dim, ...] = ()


def without(factor: Dim, rest: Dim, bound: Bound) -> Dim:
    """Return what is left to prove of ``factor * atom + rest`` when a bound takes the atom away."""
    found = divide(factor * bound.sign, bound.factor)
    if found is not None:
        return rest - found * bound.rest
    scale = bound.factor
    return rest * scale + (scale - 1) - factor * bound.sign * bound.rest
