"""Which task an element belongs to: tasks are free of races if each accesses its own elements.

An index is taken apart as a number with several digits: ``index = stride * digit + rest`` with
``0 <= rest < stride``, and the rest again. Indices that are equal have equal digits. If the digits
tell the task, then no two tasks access one element; if several accesses tell it by the same strides
and the same digits, neither do two tasks by any two of these accesses.

A vector moved back so as not to pass the end of a row overlaps its neighbour, which may be another
task's. Such a vector owns the elements from where it would begin on; it stores the others again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from composite.compiler.tvm.ir.dims import Dim, Poly, symbol
from composite.compiler.tvm.proof.divided import without_remainders
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.proof.polynomials import atoms_of, from_terms, long_division, split

_PATHS = 3
_DIGITS = 6

_TILE = 16
"""Rows of a tile at most, of which the first one's store shows a multiple of a row alone."""


_Steps = tuple[tuple[Dim, Dim | None], ...]


class Path(NamedTuple):
    """Strides, and the digits that depend on the task alone; None for the others."""

    steps: _Steps


class Owners:
    """Paths from an index to a task, whose counter is the atom ``task``."""

    def __init__(self, integers: Integers, task: str) -> None:
        self._integers = integers
        self._task = task
        self._outer: dict[str, bool] = {}

    def paths(
        self, index: Dim, tried: Iterable[Path], strides: Sequence[Dim] = ()
    ) -> tuple[set[Path], bool]:
        """Return which of some paths lead to the task, or any if none is to try; and if it moved.

        The index is that of a whole vector: one of its atoms is the number of the lane. The strides
        are those of the buffer's dimensions, as far as they are known: the first row's index may
        have none of its row's.
        """
        others = list(tried)
        found = self._of(index, others, strides)
        if found:
            return found, False
        with self._integers.scope():
            unmoved = self._unmoved(index)
            return (found, False) if unmoved is None else (self._of(unmoved, others, strides), True)

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
            if pair is None or self._is_outer(name):
                continue  # one that is the same in all tasks moves no vector
            factor, rest = split(index, name)
            begin, last = pair
            own = self._of_tasks(last)
            if _has_none(rest + factor * own, factor * own):  # where a piece ends, by its length
                rest, begin, last = rest + factor * own, begin - own, last - own
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

    def _of_tasks(self, p: Dim) -> Dim:
        """Return the terms of an integer that are not the same in all tasks."""
        terms = p.terms if isinstance(p, Poly) else ()
        return from_terms({m: c for m, c in terms if not all(map(self._is_outer, m))})

    def _of(self, index: Dim, tried: Sequence[Path], strides: Sequence[Dim]) -> set[Path]:
        """Return which of some paths lead to the task, or, without any to try, some that do."""
        whole = without_remainders(self._integers, index)
        forms = list(dict.fromkeys([whole, index]))
        if tried:
            return {path for path in tried if any(self._follows(form, path) for form in forms)}
        # The first vector of a row may fit into shorter rows than the next ones.
        shares = (self._shares(form, strides) for form in forms)
        shared = {path for share in shares for path in itertools.islice(share, _PATHS)}
        found: set[Path] = set()
        for steps in (steps for form in reversed(forms) for steps in self._search(form, 0)):
            if len(found) >= _PATHS:
                break
            if self._tells([d for _, d in steps if d is not None]):
                found.add(Path(tuple(steps)))
        return shared | found

    def _follows(self, index: Dim, path: Path) -> bool:
        for stride, digit in path.steps:
            own, rest = _cut(index, stride) if digit is not None else _cut_all(index, stride)
            if digit is not None and not self._is_same(own, digit):
                return False
            if not self._is_rest(rest, stride):
                return False
            index = rest
        return True

    def _is_same(self, a: Dim, b: Dim) -> bool:
        """Return whether two digits are proven to be equal where the access is."""
        holds = self._integers.is_at_least
        return a == b or (holds(a, b) and holds(b, a))

    def _shares(self, index: Dim, strides: Sequence[Dim]) -> Iterator[Path]:
        """Yield paths whose digits are atoms that depend on the task alone, and rows above each.

        They are those of a task that has the same columns of all rows: what is above a column, be
        it the rows of tiles of several heights, is a multiple of a row.
        """
        atoms = [a for a in atoms_of(index) if self._depends(a) and not self._is_outer(a)]
        digits = [(split(index, a)[0], a) for a in atoms]
        if all(self._is_stride(share) for share, _ in digits):
            digits.sort(key=lambda one: _size(one[0]), reverse=True)
            if self._tells([symbol(atom) for _, atom in digits]):
                yield from map(Path, self._behind_rows(index, digits, strides))

    def _behind_rows(
        self, index: Dim, digits: list[tuple[Dim, str]], strides: Sequence[Dim]
    ) -> Iterator[_Steps]:
        if not digits:
            yield ()
            return
        (share, atom), *others = digits
        larger = (row for row in strides if _size(row) > _size(share))
        for row in dict.fromkeys((0, *larger, *self._rows(index, share))):
            _, below = (0, index) if row == 0 else _cut_all(index, row)
            own, rest = _cut(below, share)
            if own != symbol(atom) or not self._is_rest(rest, share):
                continue
            if row == 0 or self._is_rest(below, row):
                above: _Steps = () if row == 0 else ((row, None),)
                for more in self._behind_rows(rest, others, strides):
                    yield (*above, (share, own), *more)

    def _rows(self, index: Dim, share: Dim) -> Iterator[Dim]:
        """Yield what all terms of an index above a task's share may be multiples of.

        The least first: it is the same for all rows of a tile, whose numbers are constants.
        """
        terms = dict(index.terms) if isinstance(index, Poly) else {}
        outer = {m: tuple(a for a in m if self._is_outer(a)) for m in terms}
        for common in sorted(set(outer.values()), key=len, reverse=True):
            least = share if isinstance(share, int) and not common else 0
            above = [c for m, c in terms.items() if m and outer[m] == common and abs(c) > least]
            most = math.gcd(*above)
            for parts in range(_TILE, 0, -1):
                row = from_terms({common: most // parts}) if most % parts == 0 and most else 0
                if row not in (0, share):
                    yield row

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
                if self._is_stride(stride):
                    found[stride] = None
        return sorted(found, key=_size, reverse=True)

    def _is_stride(self, stride: Dim) -> bool:
        """Return whether a factor is positive, and the same in all tasks."""
        return all(map(self._is_outer, atoms_of(stride))) and self._integers.is_at_least(stride, 1)

    def _is_of_task(self, digit: Dim) -> bool:
        """Return whether all atoms of a digit depend on the task and what is around it alone."""
        if isinstance(digit, int):
            return False
        atoms = [self._is_outer(name) or self._depends(name) for name in atoms_of(digit)]
        return all(atoms) and not all(self._is_outer(name) for name in atoms_of(digit))

    def _is_outer(self, name: str) -> bool:
        """Return whether an atom is the same in all tasks."""
        if name not in self._outer:
            self._outer[name] = self._is_made_outside(name)
        return self._outer[name]

    def _is_made_outside(self, name: str) -> bool:
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


def _has_none(p: Dim, terms: Dim) -> bool:
    """Return whether no product that is in some terms is in an integer."""
    if isinstance(p, int) or isinstance(terms, int):
        return True
    return not {m for m, _ in p.terms} & {m for m, _ in terms.terms}


def _cut(index: Dim, stride: Dim) -> tuple[Dim, Dim]:
    """Return digit and rest: what is a multiple of the stride, and what is not."""
    constant = dict(index.terms).get((), 0) if isinstance(index, Poly) else index
    digit, rest = long_division(index - constant, stride)
    return digit, rest + constant


def _cut_all(index: Dim, stride: Dim) -> tuple[Dim, Dim]:
    """Return digit and rest, the constant divided too."""
    digit, rest = _cut(index, stride)
    constant = dict(rest.terms).get((), 0) if isinstance(rest, Poly) else rest
    if isinstance(stride, int):
        digit, rest = digit + constant // stride, rest - constant // stride * stride
    return digit, rest


def _size(stride: Dim) -> tuple[int, int]:
    if isinstance(stride, int):
        return 0, stride
    return max(len(m) for m, _ in stride.terms), max(c for _, c in stride.terms)
