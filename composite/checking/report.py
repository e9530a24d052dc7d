"""What `composite.check` found: a row for each way, or the difference that it ended with."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from composite.checking.compare import Closeness


class CheckError(AssertionError):
    """An op differs from its Python function, or each call raised; the message says where and what.

    Attributes:
        report: the Report up to this point; `report.difference` is the difference.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(report.failure)
        self.report = report


@dataclasses.dataclass(frozen=True)
class DifferenceFound:
    """One call that an op runs otherwise than its Python function.

    Attributes:
        op_name, place: the op, and where it is defined.
        way: how it was run.
        call: attributes, dtypes and shapes.
        what: what differs: the worst element, its index, what it is and what it should be.
        folder: a reproduction: run `python <folder>/reproduce.py`.
    """

    op_name: str
    place: str
    way: str
    call: str
    what: str
    folder: Path | None

    def __str__(self) -> str:
        lines = [
            f"{self.op_name} ({self.place}) differs from its Python function, way {self.way!r}:",
            f"  {self.what}",
            f"  in the call {self.op_name}({self.call})",
        ]
        if self.folder is not None:
            lines.append(f"  to run it again: python {self.folder / 'reproduce.py'}")
        return "\n".join(lines)


@dataclasses.dataclass
class Row:
    """One way of running the op.

    Attributes:
        way: its name.
        samples: how many calls were compared in this way.
        error: the worst error of those that agree, as a part of |y| against float64; 0 for equal
            bits.
        bound: the error that was allowed there.
        notes: why calls were not compared, and how many.
        differs: whether this is the way that does not agree.
    """

    way: str
    samples: int = 0
    error: float = 0.0
    bound: float = 0.0
    notes: dict[str, int] = dataclasses.field(default_factory=dict)
    differs: bool = False

    def add(self, close: Closeness) -> None:
        """Counts a call that agreed."""
        self.samples += 1
        if close.error > self.error or not self.bound:
            self.error, self.bound = close.error, close.bound

    def skip(self, reason: str) -> None:
        """Counts a call that was not compared."""
        self.notes[reason] = self.notes.get(reason, 0) + 1

    @property
    def note(self) -> str:
        """The commonest reasons, in a line."""
        told = sorted(self.notes.items(), key=lambda item: (-item[1], item[0]))
        parts = [f"{reason} ({count})" for reason, count in told[:2]]
        if len(told) > 2:
            parts.append(f"and {len(told) - 2} other reasons")
        return "; ".join(["DIFFERS"] * self.differs + parts)


@dataclasses.dataclass
class Report:
    """The result of a check, with a row for each way; `str()` is a table.

    Attributes:
        op_name: the op.
        rows: in the order in which the ways are tried.
        calls: how many were tried.
        raised: in how many of them the Python function raised an error, as the op must then do too.
        error: the first of these errors; "" if there was none.
        difference: what does not agree; None if everything does.
    """

    op_name: str
    rows: list[Row]
    calls: int = 0
    raised: int = 0
    error: str = ""
    difference: DifferenceFound | None = None

    @property
    def ok(self) -> bool:
        """Whether results were compared, and no difference was found."""
        return not self.failure

    @property
    def failure(self) -> str:
        """What is wrong, in a few lines; "" if nothing is."""
        if self.difference is not None:
            return str(self.difference)
        if 0 < self.calls == self.raised:
            calls = f"each of {self.calls} calls" if self.calls > 1 else "the only call"
            return (
                f"{self.op_name}: no result was compared, since the Python function raises in "
                f"{calls}: {self.error}; give the inputs of a call that it takes"
            )
        return ""

    def row(self, way: str) -> Row:
        """The row of a way; KeyError if it was not asked for."""
        for row in self.rows:
            if row.way == way:
                return row
        raise KeyError(way)

    def __str__(self) -> str:
        head = ("way", "samples", "worst error", "bound", "note")
        lines = [head]
        for row in self.rows:
            error = f"{row.error:.1e}" if row.error else "equal" if row.samples else "-"
            bound = f"{row.bound:.1e}" if row.error else "-"
            lines.append((row.way, str(row.samples), error, bound, row.note))
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        texts = [
            "  ".join([cell.ljust(width) for cell, width in zip(line, widths, strict=False)])
            + ("  " + line[4]).rstrip()
            for line in lines
        ]
        differs = self.difference is not None
        title = f"{self.op_name}: {'a way differs' if differs else 'every way agrees'}"
        if self.raised:
            title += f"; in {self.raised} calls an error, everywhere"
        return "\n".join([title, *(text.rstrip() for text in texts)])
