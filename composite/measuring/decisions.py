"""Decides from measured times at which sizes of its class a kernel runs.

The size of a call is the product of its class's symbols, such as the rows of a batch. A result is
close if the times are within a margin of each other, or if a quarter of the rounds say the
opposite. A close result does not change the verdict: it keeps that of an earlier measurement, or
takes that of the neighbouring size nearer to the requested call. So noise neither splits a class
into pieces nor reverses verdicts from process to process.

Not for: how times are taken (`measure`), how calls are dispatched (decision_table.h).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from composite.binding import json_text

MARGIN = 0.05


class Times(NamedTuple):
    """Microseconds per node, with the median and the quartiles of the ratios of paired runs."""

    kernel_us: float
    expansion_us: float
    ratio: float  # kernel / expansion
    low: float
    high: float
    disturbed: bool = False  # whether threads were preempted in most of the runs

    @property
    def close(self) -> bool:
        """Whether the times differ by no more than the margin or the noise."""
        return 1 / (1 + MARGIN) <= self.ratio <= 1 + MARGIN or self.low <= 1.0 <= self.high


class Point(NamedTuple):
    """The times and the verdict at one size."""

    size: int
    times: Times
    kernel_wins: bool


class Decision(NamedTuple):
    """The verdict on a kernel."""

    asked: int  # the size of the call that requested the kernel
    points: tuple[Point, ...]  # in ascending order of size, `asked` among them

    @property
    def kernel_wins(self) -> bool:
        """Whether the kernel is no slower at any of the sizes."""
        return any(point.kernel_wins for point in self.points)

    @property
    def doubtful(self) -> bool:
        """Whether the kernel lost at one of the sizes while other work took processors from it.

        Preemption costs a function more time the more threads it uses, so a win stands.
        """
        return any(one.times.disturbed and not one.kernel_wins for one in self.points)

    @property
    def times(self) -> Times:
        """The times at the size of the requested call."""
        return next(point.times for point in self.points if point.size == self.asked)


def decide(measured: Mapping[int, Times], asked: int, before: Decision | None = None) -> Decision:
    """The decision for times by size; `before` is an earlier decision on the same kernel."""
    stood = {point.size: point for point in before.points} if before is not None else {}
    points: dict[int, Point] = {}

    def settle(size: int, neighbour: bool) -> bool:
        times, old = measured[size], stood.get(size)
        wins = times.ratio <= 1.0
        if times.close:
            wins = old.kernel_wins if old is not None else neighbour
        points[size] = Point(size, times, wins)
        return wins

    at_asked = settle(asked, neighbour=measured[asked].ratio <= 1.0)
    for outward in (
        sorted(size for size in measured if size > asked),
        sorted((size for size in measured if size < asked), reverse=True),
    ):
        wins = at_asked
        for size in outward:
            wins = settle(size, neighbour=wins)
    return Decision(asked, tuple(points[size] for size in sorted(points)))


def to_json(decision: Decision) -> str:
    """The decision as text for the cache."""
    points = [[p.size, *p.times, p.kernel_wins] for p in decision.points]
    return json.dumps({"asked": decision.asked, "points": points})


def from_json(text: str | bytes) -> Decision | None:
    """Reads the text of `to_json`; None if its layout is different, as an older version's."""
    try:
        content: dict[str, Any] = json_text.parsed(text)
        points = tuple(map(_point, content["points"]))
        asked = int(content["asked"])
    except (ValueError, KeyError, TypeError):
        return None
    sizes = [point.size for point in points]
    return Decision(asked, points) if asked in sizes and sizes == sorted(set(sizes)) else None


def _point(content: Sequence[Any]) -> Point:
    size, kernel_us, expansion_us, ratio, low, high, disturbed, wins = content
    times = Times(
        float(kernel_us), float(expansion_us), float(ratio), float(low), float(high),
        disturbed is True,
    )  # fmt: skip
    return Point(int(size), times, wins is True)
