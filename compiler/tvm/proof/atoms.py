"""The atoms that integers are made of: what each was made of, what bounds it, which came first."""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.tvm.ir.dims import Dim, Poly, symbol
from composite.compiler.tvm.proof.bound import Bound, Case

_LAST = 1 << 40
"""What is added to the order of atoms that are to be eliminated first."""


class Atoms:
    """Sizes, counters, loads, and the results of divisions, minima, maxima and choices.

    Attributes:
        quotients: By its atom, what is divided by what.
        divisions: What is divided, and the atoms of its quotient and its remainder.
    """

    def __init__(self) -> None:
        self._order: dict[str, int] = {}
        self._bounds: dict[str, list[Bound]] = {}
        self._cases: dict[str, tuple[str, tuple[Case, ...]]] = {}
        self._made: dict[object, Poly] = {}
        self._lanes: dict[str, int] = {}
        self.quotients: dict[str, tuple[Dim, Dim]] = {}
        self.divisions: list[tuple[Dim, str, str]] = []

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

    def born(self, name: str) -> int:
        """Return the place of an atom among all, in the order in which they were made."""
        return self._order[name]

    def latest(self, p: Poly) -> str:
        """Return the atom of a polynomial that was made last."""
        return max((a for monomial, _ in p.terms for a in monomial), key=self._order.__getitem__)

    def parts(self, name: str) -> tuple[Dim, ...]:
        """Return what an atom was made of; () if it is a size, a counter or a load."""
        return self.quotients.get(name) or tuple(
            c.value for c in self._cases.get(name, ("", ()))[1]
        )

    def bounds_of(self, name: str) -> Sequence[Bound]:
        """Return the bounds of an atom, by atoms that were made before it."""
        return self._bounds.get(name, ())

    def cases_of(self, name: str) -> tuple[str, tuple[Case, ...]]:
        """Return how an atom was made, ``min``, ``either``, ..., and of what; "" if of nothing."""
        return self._cases.get(name, ("", ()))

    def smaller_of(self, name: str) -> tuple[Dim, Dim] | None:
        """Return the two integers that an atom is the smaller of; None if it is something else."""
        kind, cases = self._cases.get(name, ("", ()))
        return (cases[0].value, cases[1].value) if kind == "min" else None

    def _define(self, name: str, *bounds: Bound) -> None:
        self._bounds[name] = [*bounds, *self._bounds.get(name, ())]
