"""What `composite.lint` found: findings, how many calls have kernels, and both as text.

Not for: how it is found out (findings of calls: lint.py; of declarations: cautions.py).
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable, Sequence

_WIDTH = 80
_LONGEST_NOTE = 240
_MOST_NAMED = 4  # calls that a finding names


@dataclasses.dataclass(frozen=True)
class Finding:
    """A fact about an op, and what to do about it.

    Attributes:
        op: the op's name in Python.
        place: the author's line, "ops.py:12:5".
        reason: what keeps calls from a kernel, or what costs them time.
        remedy: what to write instead.
        refuses: whether calls have no kernel for this reason; otherwise it is a warning.
        directions: "forward", "gradient" or both; none for a warning about the declaration.
        calls: the calls that it concerns, by their dtypes and attributes; none where it is all.
    """

    op: str
    place: str
    reason: str
    remedy: str
    refuses: bool = True
    directions: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = " and ".join(self.directions)
        head = ", ".join(filter(None, (self.op, where, "" if self.refuses else "warning")))
        calls = list(self.calls[:_MOST_NAMED])
        if len(self.calls) > _MOST_NAMED:
            calls.append(f"and {len(self.calls) - _MOST_NAMED} more")
        place, *callers = self.place.split(", called at ")
        lines = [f"{place}: {head}", *_indented(self.reason)]
        lines += _indented(f"called at {', at '.join(callers)}") if callers else []
        lines += _indented(f"in: {'; '.join(calls)}") if calls else []
        return "\n".join([*lines, *_indented(f"instead: {self.remedy}")])


def _indented(text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False
    )


@dataclasses.dataclass
class Coverage:
    """How many calls of an op have kernels.

    Attributes:
        op: the op's name in Python.
        calls: how many were looked at.
        forward: how many of them have a kernel.
        gradients: how many have a derived gradient.
        backward: how many of these have kernels for it.
        notes: what was not looked at, and why.
    """

    op: str
    calls: int = 0
    forward: int = 0
    gradients: int = 0
    backward: int = 0
    notes: list[str] = dataclasses.field(default_factory=list)

    def note(self, text: str) -> None:
        """Adds a note, once, and no longer than a few lines."""
        text = textwrap.shorten(text, _LONGEST_NOTE, placeholder=" ...")
        if text not in self.notes:
            self.notes.append(text)


@dataclasses.dataclass(frozen=True)
class LintReport:
    """The result of a lint; `str()` is a text of at most 80 columns.

    Attributes:
        findings: by op, those that refuse a kernel before warnings.
        coverage: an entry for each op.
    """

    findings: Sequence[Finding]
    coverage: Sequence[Coverage]

    @property
    def ok(self) -> bool:
        """Whether calls of every op were looked at, and all of them have kernels."""
        refused = any(finding.refuses for finding in self.findings)
        return not refused and all(one.calls for one in self.coverage)

    def __str__(self) -> str:
        parts = [f"{finding}\n" for finding in self.findings]
        return "\n".join([*parts, *_table(self.coverage), "", self._total()])

    def _total(self) -> str:
        refusals = sum(finding.refuses for finding in self.findings)
        warnings = len(self.findings) - refusals
        reasons = (
            f"{refusals} {'reason' if refusals == 1 else 'reasons'} for calls without a kernel"
        )
        told = f"{warnings or 'no'} {'warning' if warnings == 1 else 'warnings'}"
        return f"{reasons if refusals else 'no call without a kernel was found'}, {told}"


def _table(coverage: Iterable[Coverage]) -> list[str]:
    rows = [("op", "forward", "gradient")]
    rows += [
        (one.op, _of(one.forward, one.calls), _of(one.backward, one.gradients)) for one in coverage
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    lines = [
        f"{op:{widths[0]}}  {forward:{widths[1]}}  {gradient}" for op, forward, gradient in rows
    ]
    for one in coverage:
        lines += [line for note in one.notes for line in _noted(f"{one.op}: {note}")]
    return lines


def _of(some: int, count: int) -> str:
    return f"{some} of {count} calls" if count else "-"


def _noted(text: str) -> list[str]:
    return textwrap.wrap(f"note: {text}", _WIDTH, subsequent_indent="      ")
