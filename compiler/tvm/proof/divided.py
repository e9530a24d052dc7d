"""Integers that were divided and put together again: what the digits of a fused index are of."""

from __future__ import annotations

from composite.compiler.tvm.ir.dims import Dim, symbol
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.proof.polynomials import atoms_of, split

_QUOTIENTS = 24
"""Quotients of quotients that are looked at."""


def without_remainders(integers: Integers, p: Dim) -> Dim:
    """Return the same integer made of quotients by numbers as large as can be.

    ``x / 6 * 6 + x / 2 % 3 * 2 + x % 2`` is ``x``.
    """
    for whole, quotient, name in reversed(integers.divisions):
        if name in atoms_of(p):
            factor, rest = split(p, name)
            p = rest + factor * (whole - symbol(quotient) * integers.quotients[quotient][1])
    for _ in range(_QUOTIENTS):
        made = ((name, _at_once(integers, name)) for name in atoms_of(p))
        name, same = next((one for one in made if one[1] is not None), ("", None))
        if same is None:
            break
        factor, rest = split(p, name)
        p = rest + factor * same
    return p


def _at_once(integers: Integers, name: str) -> Dim | None:
    """Return ``(x / a + y) / b`` as ``(x + a * y) / (a * b)``; None if it is not so made."""
    if name not in integers.quotients:
        return None
    of, by = integers.quotients[name]
    inner = next((a for a in atoms_of(of) if a in integers.quotients and split(of, a)[0] == 1), "")
    if not inner:
        return None
    (x, a), y = integers.quotients[inner], split(of, inner)[1]
    return integers.quotient(x + y * a, a * by)
