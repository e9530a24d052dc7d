"""Draws mistakes, has each judged, and counts what was noticed by which check."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.mutation.judge import Judge, Outcome
from tests.mutation.kernels import SUBJECTS, Subject
from tests.mutation.kinds import KINDS
from tests.mutation.rebuilding import Places


class Mistake(NamedTuple):
    """A place of a kind in a kernel."""

    subject: str
    kind: str
    number: int


def places(subject: Subject, kind: str) -> int:
    """How many places of a kind a kernel has."""
    found, functions = Places(), subject.named.values()
    for function in functions:
        if KINDS[kind].of_floats:
            KINDS[kind].in_floats(function, subject.written.target, found)
        else:
            KINDS[kind].altered(function, found)
    return found.count


def drawn(
    count: int, seed: int, subjects: Sequence[str] = (), kinds: Sequence[str] = ()
) -> list[Mistake]:
    """Mistakes, as many of each kind, in as many kernels as there are; those of a kernel together.

    All kinds and all kernels, unless some are named.
    """
    draw = random.Random(seed)
    asked, there = list(kinds or KINDS), list(subjects or SUBJECTS)
    found: set[Mistake] = set()
    for place, kind in enumerate(asked):
        wanted = count // len(asked) + (place < count % len(asked))
        known = {name: n for name in there if (n := places(SUBJECTS[name], kind))}
        order = draw.sample(list(known), len(known))
        own: set[Mistake] = set()
        for name in itertools.cycle(order):
            if len(own) == min(wanted, sum(known.values())):
                break
            own.add(Mistake(name, kind, draw.randrange(known[name])))
        found |= own
    return sorted(found, key=lambda m: (there.index(m.subject), asked.index(m.kind), m.number))


@dataclass
class Counts:
    """What came of mistakes of each kind."""

    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def add(self, mistake: Mistake, outcome: Outcome) -> None:
        """Count one."""
        self.outcomes.setdefault(mistake.kind, []).append(outcome)
        if outcome.changes and not outcome.is_caught:
            self.missed.append(f"{tuple(mistake)}: {outcome.what}; {outcome.changes}")

    def __str__(self) -> str:
        """A table in Markdown."""
        heads = ("applied", "other bits", "wrong", *_CHECKS, "by numeric alone", "missed")
        lines = [f"| mistake | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
        every = [one for outcomes in self.outcomes.values() for one in outcomes]
        rows = {kind: self.outcomes[kind] for kind in KINDS if kind in self.outcomes}
        for kind, outcomes in (rows | {"all": every}).items():
            lines.append(f"| {kind} | {' | '.join(map(str, _row(outcomes)))} |")
        return "\n".join(lines)


_CHECKS = ("proof", "stopped", "exact", "numeric")


def _row(outcomes: Sequence[Outcome]) -> list[int]:
    changing = [one for one in outcomes if one.changes]
    caught = [{c for c in _CHECKS if getattr(one, c)} for one in changing]
    return [
        len(outcomes),
        sum(bool(one.rounding) for one in outcomes),
        len(changing),
        *(sum(check in by for by in caught) for check in _CHECKS),
        sum(by == {"numeric"} for by in caught),
        sum(not by for by in caught),
    ]


def run(mistakes: Sequence[Mistake]) -> Iterator[tuple[Mistake, Outcome]]:
    """Judge mistakes, kernel by kernel."""
    for name, own in itertools.groupby(mistakes, key=lambda m: m.subject):
        judge = Judge(SUBJECTS[name])
        for mistake in own:
            yield mistake, judge.outcome(KINDS[mistake.kind], mistake.number)
