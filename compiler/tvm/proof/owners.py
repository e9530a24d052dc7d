"""Which task an element belongs to: tasks are free of races if each accesses its own elements.

An index is taken apart as a number with several digits: ``index = stride * digit + rest`` with
``0 <= rest < stride``, and the rest again. Indices that are equal have equal digits. If the digits
tell the task, then no two tasks access one element; if several accesses tell it by the same strides
and the same digits, neither do two tasks by any two of these accesses.

A vector moved back so as not to pass the end of a row overlaps its neighbour, which may be another
task's. Such a vector owns the elements from where it would begin on; it stores the others again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from composite.compiler.tvm.ir.dims import Dim, Poly, symbol
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.proof.polynomials import atoms_of, from_terms, long_division, split

_PATHS = 3
_DIGITS = 6


class Path(NamedTuple):
    """Strides, and the digits that depend on the task alone; None for the others."""

    steps: tuple[tuple[Dim, Dim | None], ...]


class Owners:
    """Paths from an index to a task, whose counter is the atom ``task``."""

    def __init__(self, integers: Integers, task: str) -> None:
        self._integers = integers
        self._task = task

    def paths(self, index: Dim, tried: Iterable[Path]) -> tuple[set[Path], bool]:
        """Return which of some paths lead to the task, and some more; and whether it was moved.

        The index is that of a whole vector: one of its atoms is the number of the lane.
        """
        others = list(tried)
        found = self._of(index, others)
        if found.intersection(others) or (found and not others):
            return found, False
        with self._integers.scope():
            unmoved = self._unmoved(index)
            return (found, False) if unmoved is None else (found | self._of(unmoved, others), True)

    def half(self, index: Dim) -> tuple[Dim, Dim] | None:
        """Return a stride and a digit that is the same for all tasks; None if there is none.

        It is which of several buffers in one is accessed.
        """
        if isinstance(index, int):
            return None
        constant = dict(index.terms).get((), 0)
        outer = [name for name in atoms_of(index) if self._is_outer(name)]
        for stride in {abs(f) for n in outer if isinstance(f := split(index, n)[0], int)}:
            digit, rest = long_division(index - constant, stride)
            rest, digit = rest + constant % stride, digit + constant // stride
            if all(map(self._is_outer, atoms_of(digit))) and self._is_rest(rest, stride):
                return stride, digit
        return None

    def _unmoved(self, index: Dim) -> Dim | None:
        """Return the index of what a vector owns, by where it would begin; None if it is not moved.

        It may be moved back by less than its length, or to a place that is the same for all tasks.
        """
        for name in atoms_of(index):
            pair = self._integers.smaller_of(name)
            if pair is None:
                continue
            factor, rest = split(index, name)
            begin, last = pair
            along = [a for a in atoms_of(rest) if split(rest, a)[0] == factor]
            within: Dim = sum(map(symbol, (a for a in along if not self._depends(a))), start=0)
            length = self._integers.extent(within)
            is_end = all(map(self._is_outer, atoms_of(last)))
            if length is None or not (is_end or self._integers.is_at_least(last + length, begin)):
                continue
            back = self._integers.fresh("back")
            for fact in (back, last - begin + back, within - back):
                self._integers.learn(fact)
            return rest + factor * (begin - back)
        return None

    def _of(self, index: Dim, tried: Iterable[Path]) -> set[Path]:
        found = {path for path in tried if self._follows(index, path)}
        for steps in self._search(index, 0):
            if len(found) >= _PATHS:
                break
            if self._tells([d for _, d in steps if d is not None]):
                found.add(Path(tuple(steps)))
        return found

    def _follows(self, index: Dim, path: Path) -> bool:
        for stride, digit in path.steps:
            own, rest = _cut(index, stride)
            if digit is not None and own != digit:
                return False
            if not self._is_rest(rest, stride):
                return False
            index = rest
        return True

    def _is_rest(self, rest: Dim, stride: Dim) -> bool:
        return self._integers.is_at_least(rest) and self._integers.is_at_least(stride - 1, rest)

    def _search(self, index: Dim, depth: int) -> Iterator[list[tuple[Dim, Dim | None]]]:
        if depth == _DIGITS or isinstance(index, int):
            return
        for stride in self._strides(index):
            digit, rest = _cut(index, stride)
            if digit == 0 or not self._is_rest(rest, stride):
                continue
            own = digit if self._is_of_task(digit) else None
            if own is not None:
                yield [(stride, own)]
            for more in self._search(rest, depth + 1):
                yield [(stride, own), *more]
            return  # the other strides are smaller

    def _strides(self, index: Poly) -> list[Dim]:
        """Return what atoms of the index are multiplied by, the largest first."""
        found: dict[Dim, None] = {}
        for name in sorted(atoms_of(index), key=self._integers.born, reverse=True):
            factor, _ = split(index, name)
            terms = factor.terms if isinstance(factor, Poly) else (((), factor),)
            for stride in (factor, *(from_terms({m: c}) for m, c in terms)):
                if self._integers.is_at_least(stride, 1):
                    found[stride] = None
        return sorted(found, key=_size, reverse=True)

    def _is_of_task(self, digit: Dim) -> bool:
        """Return whether all atoms of a digit depend on the task and what is around it alone."""
        if isinstance(digit, int):
            return False
        atoms = [self._is_outer(name) or self._depends(name) for name in atoms_of(digit)]
        return all(atoms) and not all(self._is_outer(name) for name in atoms_of(digit))

    def _is_outer(self, name: str) -> bool:
        """Return whether an atom is the same in all tasks."""
        if self._integers.is_lane(name):
            return False
        parts = [a for part in self._integers.parts(name) for a in atoms_of(part)]
        is_older = self._integers.born(name) < self._integers.born(self._task)
        return all(map(self._is_outer, parts)) if parts else is_older

    def _depends(self, name: str) -> bool:
        if name == self._task:
            return True
        parts = self._integers.parts(name)
        return bool(parts) and all(
            self._is_outer(a) or self._depends(a) for part in parts for a in atoms_of(part)
        )

    def _is_known(self, names: set[str], known: set[str]) -> bool:
        """Return whether atoms are equal if some are: those around the task are, and zeros."""
        return all(a in known or self._is_outer(a) or self._integers.is_zero(a) for a in names)

    def _tells(self, digits: list[Dim]) -> bool:
        """Return whether digits that are equal in two tasks show that they are one task."""
        known: set[str] = set()
        told = list(digits)
        for _ in range(_DIGITS):
            whole = [a for a, q, r in self._integers.divisions if self._is_known({q, r}, known)]
            for digit in [*told, *whole]:
                unknown = [a for a in atoms_of(digit) if not self._is_known({a}, known)]
                if len(unknown) != 1:
                    continue
                factor, rest = split(digit, unknown[0])
                alone = unknown[0] not in [*atoms_of(rest), *atoms_of(factor)]
                if alone and self._integers.sign(factor):
                    known.add(unknown[0])
        return self._task in known


def _cut(index: Dim, stride: Dim) -> tuple[Dim, Dim]:
    """Return digit and rest: what is a multiple of the stride, and what is not."""
    constant = dict(index.terms).get((), 0) if isinstance(index, Poly) else index
    digit, rest = long_division(index - constant, stride)
    return digit, rest + constant


def _size(stride: Dim) -> tuple[int, int]:
    if isinstance(stride, int):
        return 0, stride
    return max(len(m) for m, _ in stride.terms), max(c for _, c in stride.terms)
