"""A measured figure with the bound it is held to, and how a subject hands its figures on.

Each subject runs in a process of its own and prints its rows as JSON lines: caches, thread pools
and resident memory of one subject do not colour the next.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.timing import Spread

_MARK = "row "


@dataclass(frozen=True)
class Row:
    """One figure: a ratio ("x"), a time or a size, with quartiles where it has a spread.

    `data` is what a report makes more of than a line of a table; it can be written as JSON.
    """

    what: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    detail: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        what: str,
        spread: Spread,
        unit: str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        detail: str = "",
        data: dict[str, Any] | None = None,
    ) -> Row:
        """A row with a spread."""
        figures = (spread.median, unit, spread.low, spread.high, at_least, at_most)
        return cls(what, *figures, detail, data or {})

    @property
    def holds(self) -> bool | None:
        """Whether the figure keeps its bound; None where it has none."""
        if self.at_least is not None:
            return self.value >= self.at_least
        if self.at_most is not None:
            return self.value <= self.at_most
        return None


def emit(rows: Iterable[Row]) -> None:
    """Print rows for the collecting process, each as soon as it is there."""
    for row in rows:
        print(_MARK + json.dumps(asdict(row)), flush=True)


def collect(lines: Iterable[str]) -> Iterator[Row]:
    """The rows among the lines of a subject; its other lines go to stderr."""
    for line in lines:
        if line.startswith(_MARK):
            yield Row(**json.loads(line.removeprefix(_MARK)))
        else:
            sys.stderr.write(line)
