"""The parts of a graph that end in a tensor and have so many inputs: where an op may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from composite.recognition.view import View
from composite.recognition.vocabulary import Vocabulary

_MOST_STEPS = 400  # for one node and size
_SIZES = (8, 16, 40)


@dataclass(frozen=True)
class Cut:
    """A part of a graph.

    Attributes:
        root: what it computes.
        inputs: the tensors that it is computed from.
        ops: the nodes that compute it, without constants and what follows from them.
        kinds: those of its nodes.
    """

    root: Any
    inputs: tuple[Any, ...]
    ops: frozenset[str]
    kinds: frozenset[str]


class Cuts:
    """Parts of a graph in which an op with a vocabulary may be."""

    def __init__(self, view: View, words: Vocabulary, dtypes: Sequence[frozenset[Any]]) -> None:
        """`dtypes` are those that each input may have."""
        self._view = view
        self._words = words
        self._room = {one: sum(one in given for given in dtypes) for one in set().union(*dtypes)}
        self._steps = 0
        self._size = 0
        self._opened: dict[int, bool] = {}
        self._sources: dict[int, set[int]] = {}

    def at(self, root: Any, most: int) -> Iterator[Cut]:
        """Each part that computes a tensor from at most so many others.

        Those of which no input is computed from another come first, and small ones.
        """
        first = self._view.number(root)
        if not self._may_be(first):
            return
        seen: set[tuple[int, ...]] = set()
        later: list[tuple[int, Cut]] = []
        for size in _SIZES:
            self._size = size
            self._steps = _MOST_STEPS
            for inputs, opened, count in self._from(first, (first,), (), (), Counter(), most):
                numbers = tuple(sorted(inputs))
                if numbers in seen:
                    continue
                seen.add(numbers)
                cut = self._cut(root, inputs, opened, count)
                entangled = sum(bool(self._behind(x) & {*inputs}) for x in inputs)
                if entangled:
                    later.append((entangled, cut))
                else:
                    yield cut
        later.sort(key=lambda one: one[0])
        yield from (cut for _, cut in later)

    def _cut(
        self, root: Any, inputs: Sequence[int], opened: Sequence[int], count: Counter[str]
    ) -> Cut:
        facts = self._view.facts
        return Cut(
            root,
            tuple(facts[one].tensor for one in inputs),
            frozenset(facts[one].tensor.op.name for one in opened),
            frozenset(kind for kind, n in count.items() if n),
        )

    def _behind(self, number: int) -> set[int]:
        """What a tensor is computed from by nodes that may be the op's: parts seldom end there."""
        if number not in self._sources:
            found: set[int] = set()
            pending = [number]
            while pending and len(found) <= self._words.size:
                one = pending.pop(0)
                if self._opens(one):
                    operands = [x for x in self._view.operands(one) if x not in found]
                    found.update(operands)
                    pending += operands
            self._sources[number] = found
        return self._sources[number]

    def _may_be(self, root: int) -> bool:
        """Whether all that the op needs is within reach."""
        seen: dict[int, tuple[str, ...]] = {}  # kinds by the places of nodes
        pending = [root]
        while pending and len(seen) <= self._words.size:
            one = pending.pop()
            facts = self._view.facts[one]
            if facts.place not in seen and self._opens(one):
                seen[facts.place] = facts.kinds
                pending += self._view.operands(one)
        return bool(seen) and self._words.may_be_in(k for one in seen.values() for k in one)

    def _opens(self, number: int) -> bool:
        """Whether a tensor is computed by a node that may be one of the op's."""
        if number not in self._opened:
            facts = self._view.facts[number]
            self._opened[number] = (
                facts.may_be_inside
                and not facts.is_known
                and all(kind in self._words.most for kind in facts.kinds)
            )
        return self._opened[number]

    def _may_be_input(self, number: int, inputs: Sequence[int]) -> bool:
        """Whether a tensor may be an input beside others."""
        facts = self._view.facts
        if not facts[number].may_be_input:
            return False
        dtype = facts[number].tensor.dtype
        used = sum(facts[one].tensor.dtype == dtype for one in inputs)
        return self._room.get(dtype, 0) > used

    def _needs(self, pending: Sequence[int], inputs: Sequence[int]) -> int:
        """How many inputs there are at least, where these are decided and those are not."""
        facts = self._view.facts
        return len(inputs) + sum(not self._opens(x) and not facts[x].is_known for x in pending)

    def _from(  # noqa: PLR0913, PLR0917 - the state of the search
        self,
        root: int,
        pending: tuple[int, ...],
        inputs: tuple[int, ...],
        opened: tuple[int, ...],
        count: Counter[str],
        most: int,
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Counter[str]]]:
        """Inputs, a tensor of each node inside, and the kinds of these."""
        self._steps -= 1
        if self._steps <= 0 or len(opened) > self._size or self._needs(pending, inputs) > most:
            return
        if not pending:
            if inputs and self._words.may_be_in(kind for kind, n in count.items() if n):
                yield inputs, opened, count
            return
        facts = self._view.facts
        number = min(pending, key=lambda one: facts[one].place)
        own = facts[number]
        rest = tuple(one for one in pending if one != number)
        if own.is_known:
            yield from self._from(root, rest, inputs, opened, count, most)
            if not own.may_be_given:
                return
        elif any(facts[one].place == own.place for one in opened):  # by another of its outputs
            yield from self._from(root, rest, inputs, opened, count, most)
            return
        elif self._opens(number):
            grown = count
            if own.kinds:
                grown = count.copy()
                grown.update(own.kinds)
            if all(grown[kind] <= self._words.most[kind] for kind in own.kinds):
                operands = self._view.operands(number)
                added = tuple(one for one in operands if one not in rest and one not in inputs)
                within = (*opened, number)
                yield from self._from(root, rest + added, inputs, within, grown, most)
        if number != root and len(inputs) < most and self._may_be_input(number, inputs):
            yield from self._from(root, rest, (*inputs, number), opened, count, most)
