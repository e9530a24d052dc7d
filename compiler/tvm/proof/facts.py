"""What is known of integers, and proofs that polynomials over their atoms are not negative.

A fact is a polynomial that is not negative. A proof eliminates one atom after the other, the one
made last first, by a fact that bounds it; fractions are rounded, so that ``32 * v < n`` and ``v``
in whole numbers are understood. Before that, a product is taken apart into its rows and columns,
and what is false in an example of all that is known is given up.
What cannot be proven so may still be true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from composite.compiler.tvm.ir.dims import Dim, Poly, symbol
from composite.compiler.tvm.proof.atoms import Atoms
from composite.compiler.tvm.proof.bound import Bound, Case, without
from composite.compiler.tvm.proof.models import Models
from composite.compiler.tvm.proof.polynomials import (
    Terms,
    atoms_of,
    degree,
    longest,
    rounded,
    split,
    without_constant,
)

_STEPS = 1000
"""Eliminations that one proof may take."""

_HARD = 12
"""Eliminations beyond which a proof of more is tried: that questions like this one need none."""

_ALL_STEPS = 100_000
"""Eliminations that all proofs together may take: what is left then is not proven."""

_DEPTH = 48
"""Steps that rest on one another."""

_IMPLIED = 24
"""Facts that one fact may imply, each of the one before."""

_DEGREE = 8
"""Factors of a product beyond which a proof does not follow it."""


class Facts(Atoms):
    """Atoms and facts, in scopes: a fact is forgotten at the end of the scope it was learned in."""

    def __init__(self) -> None:
        super().__init__()
        self._learned: list[str] = []  # atoms in the order of the bounds that they were given
        self._models = Models(self)
        self._proven: dict[Terms, int] = {}  # by the terms of a sum, its least constant
        self._replaced: list[tuple[Terms, int | None]] = []  # what was proven of them before
        self._failed: set[Poly] = set()
        self._refused: dict[Terms, int] = {}  # questions without a proof, by what is known now
        self._left = 0
        self._budget = _ALL_STEPS
        self._depth = 0

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget, at the end, what is learned inside."""
        count = len(self._learned)
        proven = len(self._replaced)
        with self._models.scope(is_case=self._left > 0):
            yield
        while len(self._replaced) > proven:
            terms, before = self._replaced.pop()
            if before is None:
                del self._proven[terms]
            else:
                self._proven[terms] = before
        for name in self._learned[count:]:
            self._bounds[name].pop()
        del self._learned[count:]
        self._failed.clear()

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
        self._models.learned()
        self._failed.clear()
        if self._left == 0:
            self._refused.clear()
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
        if isinstance(p, int) and isinstance(least, int):
            return p >= least
        if self._left > 0:
            return self._holds(p - least)  # within another proof
        p = rounded(p - least)
        if isinstance(p, int):
            return p >= 0
        terms, constant = without_constant(p)
        if terms in self._proven and constant >= self._proven[terms]:
            return True
        if terms in self._refused and constant <= self._refused[terms]:
            return False  # less than this was not proven
        self._left = min(_STEPS, self._budget)
        self._failed.clear()
        holds = self._holds_by_digits(p)
        self._left = 0
        if not holds:
            self._refused[terms] = constant
        return holds

    def is_nonzero(self, p: Dim) -> bool:
        """Return whether it is proven that ``p`` is above or below 0, whichever of its cases."""
        if self.sign(p):
            return True
        if isinstance(p, int) or p != symbol(self.latest(p)):
            return False
        kind, cases = self._cases.get(self.latest(p), ("", ()))
        return kind == "either" and all(
            self._holds_in(case, self.is_nonzero)
            for case in self._open_cases(self.latest(p), kind, cases)
        )

    def is_zero(self, name: str) -> bool:
        """Return whether it is proven that an atom is 0."""
        return self.is_at_least(symbol(name)) and self.is_at_least(symbol(name) * -1)

    def _holds(self, p: Dim) -> bool:
        p = rounded(p)
        if isinstance(p, int):
            return p >= 0
        terms, constant = without_constant(p)
        before = self._proven.get(terms)
        if before is not None and before <= constant:
            return True
        too_far = self._left <= 0 or self._depth >= _DEPTH or degree(p) > _DEGREE
        if too_far or p in self._failed or self._models.refute(p):
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
        self._replaced.append((terms, self._proven.get(terms)))
        self._proven[terms] = constant
        return True

    def _holds_by_digits(self, p: Dim) -> bool:
        """Return whether a sum with a product is proven not to be negative, digit by digit.

        ``size * above + below`` is ``size * (above - 1) + (size + below)``: rows of an index are
        looked at without its columns, and once for all of them.
        """
        if isinstance(p, int) or self._models.refute(p):
            return self._holds(p)
        for name in longest(p):
            size = symbol(name)
            if self.parts(name) or not self._holds(size):
                continue
            above, below = split(p, name)
            for carried in (0, 1):
                rest = below + size * carried
                if self._holds(rest) and self._holds_by_digits(above - carried):
                    return True
        return self._holds_and_more(p)

    def _holds_and_more(self, p: Poly) -> bool:
        """Return whether a sum is proven not to be negative; if that was hard, try what is next.

        The rows of a tile ask the same of one constant after the other.
        """
        left = self._left
        if not self._holds(p):
            return False
        steps = left - self._left
        more = self._models.least(p) if steps > _HARD else 0
        for part in (more, more // 2):
            left, self._left = self._left, min(2 * steps, self._budget)
            if part == 0 or self._holds(p - part):
                self._left = left
                break
            self._left = left
        return True

    def _eliminate(self, p: Poly) -> bool:
        name = self.latest(p)
        factor, rest = split(p, name)
        kind, cases = self._cases.get(name, ("", ()))
        if self._is_sum(p) or self._divides_out(p):
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
                for case in self._open_cases(name, kind, cases)
            ):
                return True
        return False

    def _is_sum(self, p: Poly) -> bool:
        """Return whether no term of a sum of several is negative since no atom of it is."""
        return (
            len(p.terms) > 1
            and all(c > 0 for _, c in p.terms)
            and all(self._holds(symbol(name)) for name in atoms_of(p))
        )

    def _divides_out(self, p: Poly) -> bool:
        """Return whether it is proven that a product is not negative since its factors are not."""
        first, *others = [set(m) for m, _ in p.terms]
        for name in sorted(first.intersection(*others)):
            factor, _ = split(p, name)
            if self._holds(symbol(name)) and self._holds(factor):
                return True
        return False

    def _open_cases(self, name: str, kind: str, cases: Iterable[Case]) -> Iterator[Case]:
        """Yield the cases of an atom; what is known of the atom are facts about its value."""
        for case in cases:
            if kind == "either":
                known = [b.factor * case.value * b.sign + b.rest for b in self.bounds_of(name)]
                yield Case(case.value, (*case.facts, *known))
            else:
                yield case

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
