"""The integers of a kernel, and arithmetic on them.

An integer is a polynomial over atoms (:class:`..ir.dims.Poly`): sizes, counters of loops, and the
results of divisions, minima, maxima, choices and loads.
"""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.tvm.ir.dims import Dim, Poly, symbol
from composite.compiler.tvm.proof.bound import Bound, Case
from composite.compiler.tvm.proof.facts import Facts
from composite.compiler.tvm.proof.polynomials import atoms_of, divide, split, whole_part

_FOLLOWED = 24
"""Bounds of bounds that are looked at."""


class Integers(Facts):
    """Atoms, facts about them, and what they are made of."""

    def extent(self, p: Dim) -> Dim | None:
        """Return the most that a sum of counters can be; None if no bound is found."""
        for name in sorted(atoms_of(p), key=self.born, reverse=True):
            found = self.bound(p, self._order[name], above=True)
            if found is None:
                return None
            p = found
        return p

    def quotient(self, a: Dim, b: Dim) -> Dim | None:
        """Return ``a // b``; None unless it is proven that ``a >= 0`` and ``b >= 1``."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b if b > 0 and a >= 0 else None
        if not self.is_at_least(b, 1) or not self.is_at_least(a):
            return None
        found = self._simplest(a, b)
        made = self._made.get(("quotient", a, b))
        if made is None or made == found:
            return found
        self.learn(made - found)  # less was known when it was made
        self.learn(found - made)
        return made

    def _simplest(self, a: Dim, b: Dim) -> Dim:
        """Return a quotient, the whole part of which is no part of the division."""
        whole = whole_part(a, b)
        if whole != 0 and not self.is_at_least(rest := a - whole * b):
            whole, rest = 0, a
        rest = a - whole * b
        if self.is_at_least(b - 1, rest):
            return whole
        found = self._quotient(rest, b)
        most = self._most(rest, b)
        if most is not None:
            self.learn(found * -1 + most)
        return found + whole

    def _most(self, a: Dim, b: Dim) -> Dim | None:
        """Return a bound of ``a // b`` if ``a``'s is a number, or one less than a multiple."""
        if isinstance(b, int):
            most = self.bound(a, 0, above=True, number=True)
            if isinstance(most, int):
                return most // b
        above = self.extent(a)
        whole = None if above is None else divide(above + 1, b)
        return None if whole is None else whole - 1

    def _quotient(self, a: Dim, b: Dim) -> Poly:
        key = ("quotient", a, b)
        if key not in self._made:
            made = self._made[key] = self.atom(f"div{len(self._made)}")
            (name,) = made.terms[0][0]
            self.quotients[name] = (a, b)
            self._define(name, Bound(1, 1, 0), Bound(-1, b, a), Bound(1, b, b - 1 - a))
        return self._made[key]

    def remainder(self, a: Dim, b: Dim) -> Dim | None:
        """Return ``a % b``; None unless it is proven that ``a >= 0`` and ``b >= 1``."""
        odd = dict(a.terms).get((), 0) if isinstance(a, Poly) else 0
        if b == 2 and odd == 1 and (even := self.remainder(a - 1, 2)) is not None:
            return 1 - even  # of two buffers that are used in turns, the other one
        quotient = self.quotient(a, b)
        return None if quotient is None else self.with_remainders(a - b * quotient)

    def with_remainders(self, p: Dim) -> Dim:
        """Return a difference that is a remainder as the atom of that, anything else as it is."""
        for name in atoms_of(p):
            if name not in self.quotients:
                continue
            a, b = self.quotients[name]
            factor, rest = split(p, name)
            times = divide(factor * -1, b)
            if times is not None and times != 0 and divide(rest, times) == a:
                return self._remainder(name, a, b) * times
        return p

    def _remainder(self, quotient: str, a: Dim, b: Dim) -> Poly:
        key = ("remainder", a, b)
        if key not in self._made:
            made = self._made[key] = self.atom(f"mod{len(self._made)}")
            (name,) = made.terms[0][0]
            whole = a - symbol(quotient) * b
            self._cases[name] = ("remainder", (Case(a), Case(b)))
            self.divisions.append((a, quotient, name))
            same = (Bound(1, 1, whole * -1), Bound(-1, 1, whole))
            self._define(name, *same, Bound(1, 1, 0), Bound(-1, 1, b - 1))
        return self._made[key]

    def minimum(self, a: Dim, b: Dim) -> Dim:
        """Return the smaller of two integers."""
        return self._extreme("min", a, b, 1)

    def maximum(self, a: Dim, b: Dim) -> Dim:
        """Return the larger of two integers."""
        return self._extreme("max", a, b, -1)

    def _extreme(self, kind: str, a: Dim, b: Dim, sign: int) -> Dim:
        for chosen, other in ((a, b), (b, a)):
            if self.is_at_least(further := (other - chosen) * sign):
                self.learn(further)  # an index made of it is asked for that again
                return chosen
        key = (kind, a, b)
        if key not in self._made:
            made = self._made[key] = self.atom(f"{kind}{len(self._made)}")
            (name,) = made.terms[0][0]
            self._cases[name] = (kind, (Case(a), Case(b)))
            self._define(name, Bound(-sign, 1, a * sign), Bound(-sign, 1, b * sign))
        return self._made[key]

    def either(self, cases: Sequence[tuple[Dim, Sequence[Dim]]], own: int | None = None) -> Poly:
        """Return an integer that has one of some values; each comes with what then holds.

        It is the same one for the same cases, unless each has a number of its ``own``.
        """
        found = tuple(Case(value, tuple(facts)) for value, facts in cases)
        key = ("either", found, own)
        if key not in self._made:
            name = f"either{len(self._made)}"
            self._made[key] = self.atom(name)
            self._cases[name] = ("either", found)
        return self._made[key]

    def bound(self, p: Dim, before: int, *, above: bool, number: bool = False) -> Dim | None:
        """Return a bound of ``p`` made of atoms born before a time alone; None if none is found.

        One that is a number is taken before others where that is asked for.
        """
        for _ in range(_FOLLOWED):
            if isinstance(p, int) or self._order[name := self.latest(p)] < before:
                return p
            factor, rest = split(p, name)
            sign = self.sign(factor) * (-1 if above else 1)
            found = [
                rest - k * b.rest
                for b in self._bounds.get(name, ())
                if b.sign == sign and (k := divide(factor * b.sign, b.factor)) is not None
            ]
            if not found:
                return None
            numbers = [bound for bound in found if number and isinstance(bound, int)]
            p = numbers[-1] if numbers else found[-1]
        return None
