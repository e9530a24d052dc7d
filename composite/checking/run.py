"""Runs samples through the ways and keeps the report.

Not for: what a sample or a way is (samples.py, ways.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from composite.checking import drawing
from composite.checking.compare import Difference
from composite.checking.empty_products import unfused
from composite.checking.oracle import Case
from composite.checking.report import Report, Row
from composite.checking.sample import Sample
from composite.checking.samples import Drawn
from composite.checking.skipped import Skipped
from composite.checking.ways import WAYS
from composite.ops.op import DecoratedOp
from composite.progress import activity


class Failure(NamedTuple):
    """A sample that one way runs otherwise than Python, and what differs."""

    way: str
    sample: Sample
    what: str


class Run:
    """One check of one op by some of the ways."""

    def __init__(self, op: DecoratedOp, ways: Sequence[str]) -> None:
        self.op = op
        self.report = Report(op.op_name, [Row(way) for way in ways])
        self.failure: Failure | None = None
        self._count: int | None = None  # of the samples

    def given(self, samples: Sequence[Callable[[], Sample]]) -> None:
        """Runs samples, which are made one by one, until one differs."""
        self._count = len(samples)
        for number, sample in enumerate(samples):
            try:
                case = Case(self.op, sample())
            except (TypeError, ValueError):
                if not number:
                    raise
                continue  # a variation that the declaration excludes
            if not self._agrees(case):
                return

    def drawn(self, attrs: Mapping[str, Any], count: int, seed: int) -> None:
        """Draws samples until one differs; that one is then made as small as it can be."""
        self._count = count
        strategy = Drawn(self.op, attrs, seed).strategy()
        # `failure` has the last one that was run, which is the smallest.
        if not drawing.until(lambda x: not self._agrees(Case(self.op, x)), strategy, count, seed):
            assert self.failure is not None
            self.failure = self.failure._replace(
                what=self.failure.what + " (not each time that this call runs)"
            )

    def _agrees(self, case: Case) -> bool:
        """Runs one sample; after a difference only in the way that showed it."""
        if self.failure is None:
            self.report.calls += 1
            if case.expected.error is not None:
                self.report.raised += 1
                self.report.error = self.report.error or case.expected.told
        for row in self.report.rows:
            if self.failure is not None and row.way != self.failure.way:
                continue
            activity.part(case.sample.label, self.report.calls - 1, self._count, row.way)
            try:
                with unfused(case):
                    close = WAYS[row.way](case)
            except Skipped as reason:
                row.skip(str(reason))
            except Difference as difference:
                self.failure = Failure(row.way, case.sample, str(difference))
                return False
            else:
                row.add(close)
        return True
