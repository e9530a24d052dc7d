"""Polynomials taken apart: by an atom, by a common factor, by another polynomial."""

from __future__ import annotations

import math
from collections import Counter

from composite.compiler.tvm.ir.dims import Dim, Poly

Terms = tuple[tuple[tuple[str, ...], int], ...]

_TERMS = 32
"""Terms that a quotient of polynomials may have."""


def split(p: Dim, name: str) -> tuple[Dim, Dim]:
    """Return ``factor`` and ``rest`` of ``p = factor * atom + rest``."""
    factor: dict[tuple[str, ...], int] = {}
    rest: dict[tuple[str, ...], int] = {}
    for monomial, c in p.terms if isinstance(p, Poly) else (((), p),):
        if name in monomial:
            place = monomial.index(name)
            factor[monomial[:place] + monomial[place + 1 :]] = c
        else:
            rest[monomial] = c
    return from_terms(factor), from_terms(rest)


def atoms_of(p: Dim) -> list[str]:
    """Return the atoms of a polynomial."""
    if isinstance(p, int):
        return []
    return list(dict.fromkeys(a for monomial, _ in p.terms for a in monomial))


def without_constant(p: Poly) -> tuple[Terms, int]:
    """Return the terms that have atoms, and the constant."""
    first, *_ = p.terms  # the shortest product is the first
    return (p.terms, 0) if first[0] else (p.terms[1:], first[1])


def longest(p: Poly) -> list[str]:
    """Return the atoms of the longest products, those in most terms first; none of single atoms."""
    most = degree(p)
    atoms = {a for monomial, _ in p.terms if len(monomial) == most > 1 for a in monomial}
    counts = Counter(a for monomial, _ in p.terms for a in atoms.intersection(monomial))
    return sorted(atoms, key=lambda a: (-counts[a], a))


def degree(p: Poly) -> int:
    """Return how many atoms the longest product has."""
    return max(len(monomial) for monomial, _ in p.terms)


def from_terms(terms: dict[tuple[str, ...], int]) -> Dim:
    """Return the polynomial of terms that are all different and none of them 0."""
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return Poly(tuple(sorted(terms.items())))


def rounded(p: Dim) -> Dim:
    """Return a polynomial that is not negative where this one is, without a common factor."""
    if isinstance(p, int):
        return p
    common = 0
    for monomial, c in p.terms:
        if monomial:
            common = math.gcd(common, c)
            if common == 1:
                return p
    return Poly(tuple((m, c // common) for m, c in p.terms if m or c // common))


def divide(a: Dim, b: Dim) -> Dim | None:
    """Return ``a / b`` if that is a polynomial of whole numbers, else None."""
    quotient, rest = long_division(a, b)
    return quotient if rest == 0 else None


def long_division(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """Return a quotient and what is left, no term of which is a multiple of the first of ``b``."""
    if b == 1:
        return a, 0
    first = _terms(b)[-1]
    whole: Dim = 0
    rest = a
    for _ in range(_TERMS):
        part = next((q for t in reversed(_terms(rest)) if (q := _over(t, first)) is not None), None)
        if part is None:
            break
        whole, rest = whole + part, rest - part * b
    return whole, rest


def _terms(p: Dim) -> list[tuple[tuple[str, ...], int]]:
    """Return the terms, those of the highest degree last: an order that products keep."""
    if isinstance(p, int):
        return [((), p)] if p else []
    return sorted(p.terms, key=lambda term: (len(term[0]), term[0]))


def _over(a: tuple[tuple[str, ...], int], b: tuple[tuple[str, ...], int]) -> Dim | None:
    """Return the quotient of two terms if there is one."""
    if a[1] % b[1]:
        return None
    rest = list(a[0])
    for atom in b[0]:
        if atom not in rest:
            return None
        rest.remove(atom)
    return from_terms({tuple(rest): a[1] // b[1]})


def whole_part(a: Dim, b: Dim) -> Dim:
    """Return the part of ``a / b`` that leaves no fraction."""
    if not isinstance(b, int):
        return long_division(a, b)[0]
    parts = {m: c // b if not m else int(c / b) for m, c in _terms(a)}
    return from_terms({m: c for m, c in parts.items() if c})
