"""Examples of what the atoms may be, in which all that is known holds.

What is false in one of them has no proof, and none is looked for. Nothing is proven by an example:
one that is wrong could only keep a proof from being found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from composite.compiler.tvm.ir.dims import Dim, Poly
from composite.compiler.tvm.proof.atoms import Atoms
from composite.compiler.tvm.proof.polynomials import atoms_of

_FAR = (0, 1, 43, 1009, 6)
"""How far above its least value a size is that has no greatest, in each model at first."""

_NEAR = (13, 5, 61, 29)
"""In models made anew it is one of so many sizes."""

_DEEP = 64
"""Values that rest on one another, at most."""

_TRIES = 8
"""How often a model is made anew at most, before it is left out until other facts are known."""


class Models:
    """Several models of the same atoms, far from one another."""

    def __init__(self, atoms: Atoms) -> None:
        self._models = [_Model(atoms, number) for number in range(len(_FAR))]

    def refute(self, p: Poly) -> bool:
        """Return whether ``p`` is below 0 in one of the models."""
        for place, model in enumerate(self._models):
            if model.refutes(p):
                if place:  # the next question is like this one
                    del self._models[place]
                    self._models.insert(0, model)
                return True
        return False

    def least(self, p: Poly) -> int:
        """Return the least value of ``p`` in the models, 0 if there is none."""
        found = [value for model in self._models if (value := model.value(p)) is not None]
        return min(found, default=0)

    def learned(self) -> None:
        """Have the models looked at again: more is known."""
        for model in self._models:
            model.learned()

    @contextmanager
    def scope(self, *, is_case: bool) -> Iterator[None]:
        """Have the models back, at the end, as they are; in a case of a proof none is made anew."""
        kept = [(model, model.state()) for model in self._models]
        if is_case:
            for model in self._models:
                model.patience = 1
        yield
        for model, state in kept:
            model.restore(state)


class _UnknownError(Exception):
    """An atom has no value: facts contradict one another, or values were chosen badly."""


class _Model:
    """Values of atoms, each found when it is asked for."""

    def __init__(self, atoms: Atoms, number: int) -> None:
        self._atoms = atoms
        self._number = number  # what is drawn
        self._values: dict[str, int] = {}
        self._sound: set[str] = set()  # atoms of which all that is known holds
        self._open: set[str] = set()  # atoms that values are being chosen for
        self._tries = self.patience = _TRIES

    def state(self) -> tuple[dict[str, int], set[str], int, int]:
        return dict(self._values), set(self._sound), self._tries, self.patience

    def restore(self, state: tuple[dict[str, int], set[str], int, int]) -> None:
        self._values, self._sound, self._tries, self.patience = state

    def learned(self) -> None:
        self._sound.clear()
        self._tries = self.patience

    def refutes(self, p: Poly) -> bool:
        while self._tries > 0:
            try:
                if self._at(p) >= 0:
                    return False
                if self._is_sound(p):
                    return True
            except _UnknownError:
                pass
            self._values.clear()
            self._sound.clear()
            self._tries -= 1
            self._number += len(_FAR)
        self.patience = max(1, self.patience // 2)
        return False

    def value(self, p: Poly) -> int | None:
        """Return what ``p`` is in this model, None if it is no model of what is known."""
        try:
            value = self._at(p)
            return value if self._tries > 0 and self._is_sound(p) else None
        except _UnknownError:
            return None

    def _at(self, p: Dim) -> int:
        if isinstance(p, int):
            return p
        values, total = self._values, 0
        for monomial, factor in p.terms:
            term = factor
            for atom in monomial:
                value = values.get(atom)
                term *= self._value(atom) if value is None else value
            total += term
        return total

    def _is_sound(self, p: Dim) -> bool:
        """Return whether what is known of the atoms of ``p`` holds, and of those it is known by."""
        todo, seen = atoms_of(p), set()
        while todo:
            name = todo.pop()
            if name in self._sound or name in seen or name not in self._values:
                continue  # one that no value was asked of is of no account
            seen.add(name)
            for bound in self._atoms.bounds_of(name):
                value = self._at(bound.factor) * bound.sign * self._values[name]
                if value + self._at(bound.rest) < 0:
                    return False
                todo += [*atoms_of(bound.factor), *atoms_of(bound.rest)]
            made = self._made(name)
            if made is not None and made != self._values[name]:
                return False
            todo += [a for part in self._atoms.parts(name) for a in atoms_of(part)]
        self._sound |= seen
        return True

    def _value(self, name: str) -> int:
        if self._atoms.is_lane(name) and not self._atoms.parts(name):
            self._values[name] = 0  # what bounds it may be made of lanes
        if name in self._open or len(self._open) >= _DEEP:
            raise _UnknownError  # it bounds itself, or too many others do
        self._open.add(name)
        try:
            found = self._made(name)
            self._values[name] = self._chosen(name) if found is None else found
        finally:
            self._open.discard(name)
        return self._values[name]

    def _made(self, name: str) -> int | None:
        """Return what an atom is made of what it was made of; None if it was made of nothing."""
        if name in self._atoms.quotients:
            a, b = map(self._at, self._atoms.quotients[name])
            return _over(a, b) // b
        kind, cases = self._atoms.cases_of(name)
        if kind == "either":
            for case in cases if self._number % 2 == 0 else reversed(cases):
                if all(self._at(fact) >= 0 for fact in case.facts):
                    return self._at(case.value)
            raise _UnknownError
        if not kind:
            return None
        a, b = (self._at(case.value) for case in cases)
        return _MADE[kind](a, b)

    def _chosen(self, name: str) -> int:
        """Return a value between all bounds of an atom."""
        low: int | None = None
        high: int | None = None
        for bound in self._atoms.bounds_of(name):
            if name in atoms_of(bound.factor) or name in atoms_of(bound.rest):
                continue  # of its square: looked at when it has been chosen
            factor, rest = self._at(bound.factor), self._at(bound.rest)
            if factor <= 0:
                raise _UnknownError
            if bound.sign > 0:
                least = -(rest // factor)
                low = least if low is None else max(low, least)
            else:
                high = rest // factor if high is None else min(high, rest // factor)
        if low is not None and high is not None and low > high:
            raise _UnknownError
        return self._between(low, high, self._atoms.born(name))

    def _between(self, low: int | None, high: int | None, place: int) -> int:
        number = self._number
        drawn = (number * 7919 + place * 104729) >> 3
        if low is None or high is None:
            many = _NEAR[number % len(_NEAR)]
            far = _FAR[number] + place % 7 if number < len(_FAR) else drawn % many
            return high - far if low is None and high is not None else (low or 0) + far
        if number >= len(_FAR):
            return (low, high, low + drawn % (high - low + 1))[drawn % 3]
        return (low, high, (low + high) // 2, high, low)[number]


def _over(a: int, b: int) -> int:
    if b <= 0:
        raise _UnknownError
    return a


_MADE: dict[str, Callable[[int, int], int]] = {
    "min": min,
    "max": max,
    "remainder": lambda a, b: _over(a, b) % b,
}
