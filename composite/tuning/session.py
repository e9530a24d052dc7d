"""One tuning: the loop over candidates, its budget, and the comparison that decides.

What was measured before is taken in first. Then each candidate goes through the same steps:
proposed, made, checked, measured beside the default. At the end the best few are measured again,
longer: the fastest of many was also the luckiest. Only one that is still faster by a margin takes
the default's place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import NamedTuple, Protocol

from composite.binding.log import logger
from composite.compiler import tvm as backend
from composite.compiler_process.tasks import Loops
from composite.kernels.tuned import Measured, Record, Trial, Winner
from composite.progress import activity
from composite.tuning.search import Search
from composite.tuning.space import Built, Rejected, Space

MARGIN = 0.02  # of its time that a candidate must save
_TRIAL = 0.15  # seconds of measuring
_FINAL = 1.0
_ELSEWHERE = 0.1  # at each other size of a class
_FINALISTS = 3


class Measurer(Protocol):
    """Compares kernels with the default one, here or on other machines."""

    machine: str
    workers: int  # how many at a time

    def submit(self, candidate: Built, seconds: float) -> Future[Measured]:
        """Compares, for about so many seconds."""

    def elsewhere(self, candidate: Built, seconds: float) -> Sequence[Measured]:
        """Compares at the other sizes of the class."""

    def close(self) -> None:
        """Lets go of what is held."""


class Budget:
    """Trials, and seconds with all that is done in them; None for no end."""

    def __init__(self, trials: int, seconds: float | None, start: float) -> None:
        self.trials = trials
        self._end = None if seconds is None else start + seconds
        self._longest = 0.0

    def spent(self, seconds: float) -> None:
        """One trial took so long."""
        self._longest = max(self._longest, seconds)

    def allows(self, done: int) -> bool:
        """Whether there is room for one more trial, and for what has to follow."""
        after = self._longest + _FINALISTS * _FINAL
        return done < self.trials and self.left() > self._longest + after

    def left(self) -> float:
        """Seconds."""
        return float("inf") if self._end is None else self._end - time.monotonic()


class Row(NamedTuple):
    """A trial, for whoever looks at the table of them."""

    choices: dict[str, int | str]  # where they are not the default's
    us: float | None
    ratio: float | None  # of the default's time
    error: str
    is_new: bool  # measured now, and not found in the database


class Session:
    """Tunes one kernel; what is found goes into `record`, trial by trial."""

    def __init__(
        self, space: Space, record: Record, measurer: Callable[[Built], Measurer], budget: Budget
    ) -> None:
        self._space = space
        self._record = record
        self._budget = budget
        self._default = space.build(space.default)
        self._measurer = measurer(self._default)
        self._built: dict[str, Built] = {}
        self.machine = self._measurer.machine
        self.rows: list[Row] = []
        self.measured = 0
        first = [
            trial.choices
            for machine, winner in sorted(record.winners.items())
            if machine != self.machine and (trial := record.trials.get(winner.code)) is not None
        ]
        self._search = Search(space.point, budget.trials, first=first)
        # What the expansion gives is known by now: other kernels are checked more quickly.
        budget.spent(space.seconds * 1.5 + _TRIAL)
        self._recall()

    def run(self, save: Callable[[], None]) -> Winner:
        """The kernel to use. `save()` is called now and then."""
        try:
            self._run_trials(save)
            activity.step("compare")
            return self._decide()
        finally:
            self._measurer.close()

    def _run_trials(self, save: Callable[[], None]) -> None:
        self._report()
        running: dict[Future[Measured], tuple[Loops, float]] = {}
        proposals = True
        while proposals or running:
            while proposals and len(running) < self._measurer.workers:
                if not self._budget.allows(len(self.rows) + len(running)):
                    proposals = False
                    break
                start = time.monotonic()
                point = self._search.propose()
                if point is None:
                    proposals = False
                    break
                future = self._start(point)
                if future is not None:
                    running[future] = (point, start)
                self._report()
            if running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    point, start = running.pop(future)
                    self._finish(point, future)
                    self._budget.spent(time.monotonic() - start)
                self._report()
                save()

    def _recall(self) -> None:
        """Takes in what is known: trials of loops that are still the same, beside this default."""
        for code, trial in self._record.trials.items():
            measured = trial.machines.get(self.machine)
            if not trial.error and (measured is None or measured.against != self._default.code):
                continue
            if not self._budget.allows(len(self.rows)):
                break
            point = self._space.point(trial.choices)
            if point is None or point.digest != code or code == self._default.code:
                continue
            self._search.know(point, measured.ratio if measured is not None else None)
            self._add_row(point, measured, trial.error, is_new=False)

    def _start(self, point: Loops) -> Future[Measured] | None:
        """Begins to measure a candidate; None if it cannot be made."""
        start = time.monotonic()
        try:
            built = self._built[point.digest] = self._space.build(point)
        except Rejected as error:
            logger.info("%s: %s: %s", self._record.op, point.choices, error)
            self._record.trials[point.digest] = Trial(point.choices, error=str(error))
            self._note(point, None, str(error))
            self._budget.spent(time.monotonic() - start)
            return None
        return self._measurer.submit(built, _TRIAL)

    def _finish(self, point: Loops, future: Future[Measured]) -> None:
        trial = self._record.trials.setdefault(point.digest, Trial(point.choices))
        try:
            measured = future.result()
        except Exception as error:  # noqa: BLE001 - a machine that fails ends no search
            logger.warning("%s: a measurement failed: %s", self._record.op, error)
            self._note(point, None, f"not measured: {error}")
            return
        trial.machines[self.machine] = measured
        self._note(point, measured, "")

    def _note(self, point: Loops, measured: Measured | None, error: str) -> None:
        self._search.tell(point, measured.ratio if measured is not None else None)
        self.measured += 1
        self._add_row(point, measured, error, is_new=True)

    def _add_row(
        self, point: Loops, measured: Measured | None, error: str, *, is_new: bool
    ) -> None:
        us, ratio = (measured.us, measured.ratio) if measured is not None else (None, None)
        self.rows.append(Row(self.changed(point.choices), us, ratio, error, is_new))

    def changed(self, choices: backend.Chosen) -> dict[str, int | str]:
        """What differs from the default's choices."""
        default = self._space.default.choices
        return {name: value for name, value in choices.items() if default.get(name) != value}

    def _report(self) -> None:
        """Tells how many trials are done, and what is known."""
        ratios = [row.ratio for row in self.rows if row.ratio is not None]
        best = f"best {min([1.0, *ratios]):.2f} of the default's time"
        activity.part(best, len(self.rows), self._budget.trials)

    def _decide(self) -> Winner:
        """The winner: an earlier one where nothing new was found, or one of the finalists."""
        known = self._record.winners.get(self.machine)
        is_current = known is not None and known.measured.against == self._default.code
        if known is not None and is_current and not self.measured:
            return known
        best: tuple[float, Built, Measured] | None = None
        for point in self._search.best(_FINALISTS):
            if self._budget.left() < _FINAL:
                break
            found = self._final(point)
            if found is not None and (best is None or found[1].ratio < best[0]):
                best = (found[1].ratio, *found)
        trials = len(self.rows)
        if best is not None:
            return Winner(best[1].code, best[2], trials)
        return Winner(self._default.code, self._of_default(), trials)

    def _final(self, point: Loops) -> tuple[Built, Measured] | None:
        """A candidate's second comparison; None if it is not faster for sure, at some size."""
        built = self._built.get(point.digest) or self._space.build(point)
        measured = self._measurer.submit(built, _FINAL).result()
        if measured.ratio > 1 - MARGIN or measured.high >= 1.0:
            return None
        others = self._measurer.elsewhere(built, _ELSEWHERE)
        if any(one.ratio > 1 + MARGIN and one.low > 1.0 for one in others):
            return None
        return built, measured

    def _of_default(self) -> Measured:
        """What is known of the default's time."""
        measured = [
            t.machines[self.machine]
            for t in self._record.trials.values()
            if self.machine in t.machines
        ]
        if not measured:
            measured = [self._measurer.submit(self._default, _TRIAL).result()]
        us = min(m.default_us for m in measured)
        return Measured(us, us, 1.0, 1.0, 1.0, len(measured), self._default.code)
