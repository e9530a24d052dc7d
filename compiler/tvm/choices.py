"""Numbers that strategies choose by default, and that tuning may choose otherwise.

A strategy that needs a number asks ``context.choose(name, candidates, default)``, and gets the
default unless another candidate was given beforehand. The questions asked while a kernel is written
are the space that tuning searches. A candidate changes how fast a kernel is and in which order it
adds, never what it computes.

Not here: which candidate is best (``composite/tuning``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

Value = int | str
"""A candidate, as JSON can hold it; a bool is an int."""

Chosen = Mapping[str, Value]
"""Values by the names of knobs."""

V = TypeVar("V", int, str)


@dataclass(frozen=True)
class Knob:
    """One choice of a kernel.

    Attributes:
        name: The number of its stage, and what is chosen: ``0.gemm.tile``.
        candidates: What there is to choose from, the default among them.
        default: What is chosen without tuning.
    """

    name: str
    candidates: tuple[Value, ...]
    default: Value


@dataclass
class Choices:
    """The choices of one kernel under construction.

    Attributes:
        given: What was chosen beforehand. What nobody asks for, or is no candidate, is left out.
        asked: The knobs in the order in which they were asked for.
    """

    given: Chosen = field(default_factory=dict)
    asked: dict[str, Knob] = field(default_factory=dict)

    def choose(self, name: str, candidates: Sequence[V], default: V) -> V:
        """Return the chosen candidate; the default is always one.

        The same question again has the same answer. Another one of that name is a knob of its own,
        ``name#2``: loops of two shapes in one stage.
        """
        every: tuple[Value, ...] = tuple(dict.fromkeys([default, *candidates]))
        number = 1
        while True:
            own = name if number == 1 else f"{name}#{number}"
            knob = self.asked.setdefault(own, Knob(own, every, default))
            if (knob.candidates, knob.default) == (every, default):
                break
            number += 1
        value = self.given.get(own, default)
        return cast(V, value) if value in every else default

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """What there was to choose: knobs with at least two candidates."""
        return tuple(knob for knob in self.asked.values() if len(knob.candidates) > 1)

    @property
    def settled(self) -> dict[str, Value]:
        """What was chosen, for each knob."""
        return {
            knob.name: self.given[knob.name]
            if self.given.get(knob.name) in knob.candidates
            else knob.default
            for knob in self.knobs
        }
