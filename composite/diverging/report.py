"""What `composite.diverge` found."""

from __future__ import annotations

import dataclasses
import io
import linecache
import os
import sys
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from composite.diverging.deviation import Array, Deviation

if TYPE_CHECKING:
    from rich.console import Console

    from composite.reference.evaluate import Step


@dataclasses.dataclass(frozen=True)
class Divergence:
    """The first value that differs by more than its bound.

    Attributes:
        place: the author's line, "ops.py:12:5"; "" where it is not known.
        line: its text; "" where the file cannot be read.
        op: the TensorFlow op that computed the value.
        node: its name, and the names of the nodes around it; behind a loop's, the iteration.
        dtype, shape: of the value, as the second way computed it.
        at: the index of the element that is furthest beyond what is allowed.
        first, second: what the element is in the one way, and in the other.
        error: how far these are apart, as a part of the largest value of the row.
        bound: what is allowed, in the same unit.
        inherited: how far the operands of the op were apart, each in its own unit: where this is
            much less than `error`, the op made the difference, by cancelling for one.
    """

    place: str
    line: str
    op: str
    node: str
    dtype: str
    shape: tuple[int, ...]
    at: tuple[int, ...]
    first: Any
    second: Any
    error: float
    bound: float
    inherited: float

    @classmethod
    def of(
        cls, step: Step, place: str, value: Array, deviation: Deviation, inherited: float
    ) -> Divergence:
        """Of a node that has run, at a place in the author's source."""
        return cls(
            place=place,
            line=_line(place),
            op=step.node.op,
            node="/".join((*step.path, step.node.name)),
            dtype=tf.as_dtype(value.dtype).name,
            shape=value.shape,
            at=deviation.at,
            first=_plain(deviation.first),
            second=_plain(deviation.second),
            error=deviation.error,
            bound=deviation.bound,
            inherited=inherited,
        )

    @property
    def element(self) -> str:
        """The value's type and the element, "float32[4, 3] at [0, 2]"."""
        return f"{self.dtype}{list(self.shape)} at {list(self.at)}"


@dataclasses.dataclass(frozen=True)
class Found:
    """The outcome of a comparison.

    Attributes:
        divergence: what differs first; None where nothing does.
        compared: how many values were.
        notes: what could not be compared, and why.
    """

    divergence: Divergence | None
    compared: int
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class DivergeReport:
    """Two ways to run an op or a function, and where they part; `str()` is a table.

    Attributes:
        name: the op, or the function.
        ways: the two ways.
        call: the call that was run; of several, the one that differs, or the last.
        calls: how many calls were run.
        divergence: the first value that differs by more than its bound; None if none does.
        compared: how many values were compared, in all calls.
        granularity: which values these are.
        notes: what could not be compared, and why.
    """

    name: str
    ways: tuple[str, str]
    call: str
    calls: int
    divergence: Divergence | None
    compared: int
    granularity: str
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether values were compared, and none differs by more than its bound."""
        return self.divergence is None and self.compared > 0

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        between = f"{self.ways[0]} and {self.ways[1]}"
        if self.divergence is not None:
            where = self.divergence.place or f"node {self.divergence.node}"
            return f"{between} part at {where}"
        if not self.compared:
            return f"{between}: nothing was compared"
        return f"{between} agree in {self.compared} values"

    def to_dict(self) -> dict[str, Any]:
        """The report as what JSON can hold."""
        return {"ok": self.ok, "verdict": self.verdict, **dataclasses.asdict(self)}

    def print_to(self, console: Console) -> None:
        """Prints the report."""
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=escape(f"{self.name}: {self.verdict}"), show_header=False)
        for name, value in self._rows():
            table.add_row(name, escape(value))
        console.print(table)

    def _rows(self) -> list[tuple[str, str]]:
        rows = []
        if (one := self.divergence) is not None:
            rows += [
                ("line", one.line),
                ("value", f"{one.op}: {one.element}"),
                (self.ways[0], str(one.first)),
                (self.ways[1], str(one.second)),
                ("apart", f"{one.error:.2g} of the row's largest; {one.bound:.2g} is allowed"),
                ("operands apart", f"{one.inherited:.2g}"),
                ("node", one.node),
            ]
        rows += [("call", self.call), ("calls", str(self.calls)), ("compared", self.granularity)]
        return rows + [("note", note) for note in self.notes]

    def __str__(self) -> str:
        from rich.console import Console

        text = io.StringIO()
        self.print_to(Console(file=text, width=100))
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def _line(place: str) -> str:
    file, _, rest = place.partition(":")
    number = rest.partition(":")[0]
    if not number.isdigit():
        return ""
    # A place is relative to the root of its module.
    found = (linecache.getline(os.path.join(root, file), int(number)) for root in ("", *sys.path))
    return next((line.strip() for line in found if line), "")


def _plain(value: Any) -> Any:
    """An element as a number or a text of Python."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    item = value.item() if hasattr(value, "item") else value
    return item if isinstance(item, bool | int | float | str) else str(item)
