"""Which kernel to try next: the neighbours of the default, then those of the best, mixed.

The default comes first. Then each knob takes its other values in turn, all others being the
default's, for half of the trials at most: that tells which knobs matter. The rest are children of
the best so far: one knob changed, or the knobs of two taken from either. Nothing is tried twice,
and the same seed with the same answers asks the same questions.

Not for: how long a kernel takes (`local`, `remote`), what it is (`space`).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from composite.compiler.tvm.choices import Chosen, Knob, Value

_PARENTS = 4
_TRIES = 200  # at a new child, before the space counts as exhausted
_CROSSED = 0.4  # of the children have two parents


class Point(Protocol):
    """A kernel of the space."""

    @property
    def choices(self) -> Mapping[str, Value]:
        """What was chosen for it."""

    @property
    def knobs(self) -> Sequence[Knob]:
        """What there was to choose."""

    @property
    def digest(self) -> str:
        """Equal for equal kernels."""


P = TypeVar("P", bound=Point)


class Search(Generic[P]):
    """One search. `make(choices)` gives the kernel of some choices, or None if there is none.

    `first`: choices that were good elsewhere, which are tried before all others.
    """

    def __init__(
        self,
        make: Callable[[Chosen], P | None],
        trials: int,
        seed: int = 0,
        first: Sequence[Chosen] = (),
    ) -> None:
        self._make = make
        self._random = random.Random(seed)
        self._seen: set[str] = set()
        self._asked: set[tuple[tuple[str, Value], ...]] = set()
        self._tried: list[tuple[float, P]] = []
        default = make({})
        assert default is not None, "there is a kernel without any choices"
        self.default = default
        self._seen.add(default.digest)
        self._neighbours = itertools.chain(first, _neighbours(default, self._random))
        self._left = trials // 2

    def propose(self) -> P | None:
        """A kernel that was not proposed before; None when there is none, or it is hard to find."""
        while self._left > 0:
            choices = next(self._neighbours, None)
            if choices is None:
                self._left = 0
            elif (point := self._new(choices)) is not None:
                self._left -= 1
                return point
        for _ in range(_TRIES):
            if (point := self._new(self._child())) is not None:
                return point
        return None

    def tell(self, point: P, ratio: float | None) -> None:
        """How long a proposed kernel takes, as a part of the default's time; None if it failed."""
        if ratio is not None:
            self._tried.append((ratio, point))

    def know(self, point: P, ratio: float | None) -> None:
        """`tell` of a kernel that is known from before, and was not proposed."""
        self._seen.add(point.digest)
        self._left = max(0, self._left - 1)
        self.tell(point, ratio)

    def best(self, count: int) -> list[P]:
        """The fastest so far that are faster than the default, the fastest first."""
        found = sorted((t for t in self._tried if t[0] < 1.0), key=lambda t: t[0])
        return [point for _, point in found[:count]]

    def _new(self, choices: Chosen) -> P | None:
        """The point of some choices; None if its kernel was proposed before."""
        key = tuple(sorted(choices.items()))
        if key in self._asked:
            return None
        self._asked.add(key)
        point = self._make(choices)
        if point is None or point.digest in self._seen:
            return None
        self._seen.add(point.digest)
        return point

    def _child(self) -> Chosen:
        parents = [*self.best(_PARENTS), self.default]
        # The faster, the more children.
        weights = [1.0 / (rank + 1) for rank in range(len(parents))]
        mother, father = self._random.choices(parents, weights, k=2)
        if mother is not father and self._random.random() < _CROSSED:
            theirs = father.choices
            return {
                name: theirs.get(name, value) if self._random.random() < 0.5 else value
                for name, value in mother.choices.items()
            }
        child = dict(mother.choices)
        knobs = [knob for knob in mother.knobs if len(knob.candidates) > 1]
        for knob in self._random.sample(knobs, min(len(knobs), self._random.choice((1, 1, 2)))):
            child[knob.name] = self._random.choice(_others(knob, child[knob.name]))
        return child


def _neighbours(default: Point, source: random.Random) -> Iterator[dict[str, Value]]:
    """The choices that differ from the default's in one knob, each knob in its turn."""
    columns = []
    for knob in default.knobs:
        others = _others(knob, default.choices[knob.name])
        source.shuffle(others)
        columns.append([(knob.name, value) for value in others])
    for row in itertools.zip_longest(*columns):
        for change in row:
            if change is not None:
                yield {**default.choices, change[0]: change[1]}


def _others(knob: Knob, value: Value) -> list[Value]:
    return [candidate for candidate in knob.candidates if candidate != value]
