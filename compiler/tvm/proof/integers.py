"""What is known of a kernel's integers, and proofs that polynomials over them are not negative.

An integer is a polynomial over atoms (:class:`..ir.dims.Poly`): sizes, counters of loops, and the
results of divisions, minima, maxima, choices and loads. A fact is a polynomial that is not
negative. A proof eliminates one atom after the other, the one made last first, by a fact that
bounds it; fractions are rounded, so that ``32 * v < n`` and ``v`` in whole numbers are understood.
What cannot be proven so may still be true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from composite.compiler.tvm.ir.dims import Dim, Poly, symbol
from composite.compiler.tvm.proof.bound import Bound, Case, without
from composite.compiler.tvm.proof.polynomials import (
    atoms_of,
    degree,
    divide,
    rounded,
    split,
    whole_part,
)

_STEPS = 1000
"""Eliminations that one proof may take."""

_ALL_STEPS = 40_000
"""Eliminations that all proofs together may take: what is left then is not proven."""

_LAST = 1 << 40
"""What is added to the order of atoms that are to be eliminated first."""

_DEPTH = 48
"""Steps that rest on one another."""

_IMPLIED = 24
"""Facts that one fact may imply, each of the one before."""

_DEGREE = 8
"""Factors of a product beyond which a proof does not follow it."""


class Integers:
    """Atoms and facts, in scopes: a fact is forgotten at the end of the scope it was learned in.

    Attributes:
        quotients: By its atom, what is divided by what.
        divisions: What is divided, and the atoms of its quotient and its remainder.
    """

    def __init__(self) -> None:
        self._order: dict[str, int] = {}
        self._bounds: dict[str, list[Bound]] = {}
        self._cases: dict[str, tuple[str, tuple[Case, ...]]] = {}
        self.quotients: dict[str, tuple[Dim, Dim]] = {}
        self._learned: list[str] = []  # atoms in the order of the bounds that they were given
        self._proven: list[set[Poly]] = [set()]
        self._failed: set[Poly] = set()
        self._left = 0
        self._budget = _ALL_STEPS
        self._depth = 0
        self._made: dict[object, Poly] = {}
        self._lanes: dict[str, int] = {}
        self.divisions: list[tuple[Dim, str, str]] = []

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget, at the end, what is learned inside."""
        count = len(self._learned)
        self._proven.append(set())
        yield
        self._proven.pop()
        for name in self._learned[count:]:
            self._bounds[name].pop()
        del self._learned[count:]
        self._failed.clear()

    def atom(self, name: str) -> Poly:
        """Return a new integer, of which nothing is known; ValueError if there is one so named."""
        if name in self._order:
            raise ValueError(f"{name!r} stands for two integers")
        self._order[name] = len(self._order)
        return symbol(name)

    @property
    def count(self) -> int:
        """How many atoms there are."""
        return len(self._order)

    def lane(self, lanes: int) -> Poly:
        """Return the number of any lane of a vector of so many."""
        key = ("lane", lanes)
        if key not in self._made:
            name = f"lane{lanes}"
            self._made[key] = self.atom(name)
            self._lanes[name] = lanes
            self._order[name] += _LAST  # bounded by numbers: what is left can be rounded
            self._define(name, Bound(1, 1, 0), Bound(-1, 1, lanes - 1))
        return self._made[key]

    def vary(self, atom: Poly, lanes: int) -> None:
        """Note that an atom stands for a value that each lane has its own of."""
        (name,) = atom.terms[0][0]
        self._lanes[name] = lanes

    def is_lane(self, name: str) -> bool:
        """Return whether each lane of a vector has its own value of an atom."""
        return name in self._lanes

    def lanes(self, name: str) -> int:
        """Return of how many lanes each has its own value of an atom."""
        return self._lanes[name]

    def fresh(self, hint: str) -> Poly:
        """Return a new integer, of which nothing is known, under a name of its own."""
        return self.atom(f"{hint}#{len(self._order)}")

    def extent(self, p: Dim) -> Dim | None:
        """Return the most that a sum of counters can be; None if no bound is found."""
        for name in sorted(atoms_of(p), key=self.born, reverse=True):
            found = self.bound(p, self._order[name], above=True)
            if found is None:
                return None
            p = found
        return p

    def born(self, name: str) -> int:
        """Return the place of an atom among all, in the order in which they were made."""
        return self._order[name]

    def learn(self, fact: Dim, depth: int = _IMPLIED) -> None:
        """Note that a polynomial is not negative, and what follows from that."""
        fact = rounded(fact)
        if isinstance(fact, int) or depth == 0:
            return
        name = self.latest(fact)
        factor, rest = split(fact, name)
        sign = self.sign(factor) or self._sign_of_product(fact)
        if sign == 0:
            return
        bound = Bound(sign, factor * sign, rest)
        if bound in self._bounds.setdefault(name, []):
            return
        self._bounds[name].append(bound)
        self._learned.append(name)
        self._failed.clear()
        kind, cases = self._cases.get(name, ("", ()))
        if (kind, sign) in {("min", 1), ("max", -1)}:
            for case in cases:
                self.learn(factor * case.value + rest, depth - 1)
        if name in self.quotients:
            above, below = self.quotients[name]
            most = above if sign > 0 else above - below + 1
            self.learn(factor * most + rest * below, depth - 1)

    def _sign_of_product(self, fact: Poly) -> int:
        """Return 1 if a fact says that a product is not 0, and learn that no factor of it is."""
        terms = dict(fact.terms)
        if len(terms) != 2 or terms.get((), 0) >= 0:
            return 0
        atoms = {a for monomial in terms for a in monomial}
        if not all(self.is_at_least(symbol(a)) for a in atoms):
            return 0
        for atom in atoms:
            self.learn(symbol(atom) - 1)
        return 1

    def sign(self, p: Dim) -> int:
        """Return 1 or -1 if a polynomial is proven to be above or below 0, else 0."""
        if isinstance(p, int):
            return (p > 0) - (p < 0)
        return 1 if self.is_at_least(p, 1) else -1 if self.is_at_least(p * -1, 1) else 0

    def is_at_least(self, p: Dim, least: Dim = 0) -> bool:
        """Return whether it is proven that ``p >= least``."""
        if self._left > 0:
            return self._holds(p - least)  # within another proof
        self._left = min(_STEPS, self._budget)
        self._failed.clear()
        holds = self._holds(p - least)
        self._left = 0
        return holds

    def is_nonzero(self, p: Dim) -> bool:
        """Return whether it is proven that ``p`` is above or below 0, whichever of its cases."""
        if self.sign(p):
            return True
        if isinstance(p, int) or p != symbol(self.latest(p)):
            return False
        kind, cases = self._cases.get(self.latest(p), ("", ()))
        return kind == "either" and all(self._holds_in(case, self.is_nonzero) for case in cases)

    def is_zero(self, name: str) -> bool:
        """Return whether it is proven that an atom is 0."""
        return self.is_at_least(symbol(name)) and self.is_at_least(symbol(name) * -1)

    def latest(self, p: Poly) -> str:
        """Return the atom of a polynomial that was made last."""
        return max((a for monomial, _ in p.terms for a in monomial), key=self._order.__getitem__)

    def _holds(self, p: Dim) -> bool:
        p = rounded(p)
        if isinstance(p, int):
            return p >= 0
        if any(p in proven for proven in self._proven):
            return True
        too_far = self._left <= 0 or self._depth >= _DEPTH or degree(p) > _DEGREE
        if too_far or p in self._failed:
            return False
        self._left -= 1
        self._budget -= 1
        self._failed.add(p)  # and so no proof rests on itself
        self._depth += 1
        holds = self._eliminate(p)
        self._depth -= 1
        if not holds:
            return False
        self._failed.discard(p)
        self._proven[-1].add(p)
        return True

    def _eliminate(self, p: Poly) -> bool:
        name = self.latest(p)
        factor, rest = split(p, name)
        kind, cases = self._cases.get(name, ("", ()))
        if self._divides_out(p):
            return True
        signs = (1, -1) if not isinstance(factor, int) else (1,) if factor > 0 else (-1,)
        for sign in signs:
            if not self._holds(factor * sign):
                continue
            if any(
                self._holds(without(factor, rest, bound))
                for bound in reversed(self._bounds.get(name, ()))
                if bound.sign == sign
            ):
                return True
            covers = kind == "either" or (kind, sign) in {("min", 1), ("max", -1)}
            if covers and all(
                self._holds_in(case, lambda value: self._holds(factor * value + rest))
                for case in cases
            ):
                return True
        return False

    def _divides_out(self, p: Poly) -> bool:
        """Return whether it is proven that a product is not negative since its factors are not."""
        first, *others = [set(m) for m, _ in p.terms]
        for name in sorted(first.intersection(*others)):
            factor, _ = split(p, name)
            if self._holds(symbol(name)) and self._holds(factor):
                return True
        return False

    def _holds_in(self, case: Case, holds: Callable[[Dim], bool]) -> bool:
        if not case.facts:
            return holds(case.value)
        if self.is_impossible(case.facts):
            return True
        with self.scope():
            for fact in case.facts:
                self.learn(fact)
            return holds(case.value)

    def is_impossible(self, facts: Sequence[Dim]) -> bool:
        """Return whether one of some facts is proven to be wrong."""
        return any(self.is_at_least(fact * -1, 1) for fact in facts)

    def quotient(self, a: Dim, b: Dim) -> Dim | None:
        """Return ``a // b``; None unless it is proven that ``a >= 0`` and ``b >= 1``."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b if b > 0 and a >= 0 else None
        if not self.is_at_least(b, 1) or not self.is_at_least(a):
            return None
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
        if isinstance(b, int) and isinstance(most := self.bound(a, 0, above=True), int):
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

    def _define(self, name: str, *bounds: Bound) -> None:
        self._bounds[name] = [*bounds, *self._bounds.get(name, ())]

    def minimum(self, a: Dim, b: Dim) -> Dim:
        """Return the smaller of two integers."""
        return self._extreme("min", a, b, 1)

    def maximum(self, a: Dim, b: Dim) -> Dim:
        """Return the larger of two integers."""
        return self._extreme("max", a, b, -1)

    def _extreme(self, kind: str, a: Dim, b: Dim, sign: int) -> Dim:
        if self.is_at_least((b - a) * sign):
            return a
        if self.is_at_least((a - b) * sign):
            return b
        key = (kind, a, b)
        if key not in self._made:
            made = self._made[key] = self.atom(f"{kind}{len(self._made)}")
            (name,) = made.terms[0][0]
            self._cases[name] = (kind, (Case(a), Case(b)))
            self._define(name, Bound(-sign, 1, a * sign), Bound(-sign, 1, b * sign))
        return self._made[key]

    def either(self, cases: Sequence[tuple[Dim, Sequence[Dim]]]) -> Dim:
        """Return an integer that has one of some values; each comes with what then holds."""
        found = tuple(Case(value, tuple(facts)) for value, facts in cases)
        key = ("either", found)
        if key not in self._made:
            name = f"either{len(self._made)}"
            self._made[key] = self.atom(name)
            self._cases[name] = ("either", found)
        return self._made[key]

    def parts(self, name: str) -> tuple[Dim, ...]:
        """Return what an atom was made of; () if it is a size, a counter or a load."""
        return self.quotients.get(name) or tuple(
            c.value for c in self._cases.get(name, ("", ()))[1]
        )

    def bound(self, p: Dim, before: int, *, above: bool) -> Dim | None:
        """Return a bound of ``p`` made of atoms born before a time alone; None if none is found."""
        for _ in range(_IMPLIED):
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
            p = found[-1]
        return None

    def smaller_of(self, name: str) -> tuple[Dim, Dim] | None:
        """Return the two integers that an atom is the smaller of; None if it is something else."""
        kind, cases = self._cases.get(name, ("", ()))
        return (cases[0].value, cases[1].value) if kind == "min" else None
