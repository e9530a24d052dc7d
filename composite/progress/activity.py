"""A call that takes long, and the events by which it says how far it is.

Code that several such calls run reports to the one that it runs for, whichever that is: `step` and
`part` find it by the context of the thread. Outside of any they do nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from composite.progress import listening
from composite.progress.event import Listener, ProgressEvent, ignored


class Activity:
    """A call that takes long; for the thread that makes it."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._begin = time.monotonic()
        self._counted: tuple[float, int] | None = None  # since when, and how many were done then
        self._event = ProgressEvent("")
        self._failure: Exception | None = None

    def step(self, step: str, seconds: float | None = None) -> None:
        """Another thing is done with the part in hand. It takes so many `seconds`, if it is known.

        Never raises what the listener does: who is told has no part in what is made.
        """
        self._tell(self._event._replace(step=step), seconds)

    def part(self, name: str, done: int, total: int | None, step: str | None = None) -> None:
        """Another part is in hand, of `total`, as far as is known, of which so many are done.

        Raises what the listener raised, now or before.
        """
        step = self._event.step if step is None else step
        self._tell(self._event._replace(step=step, name=name, done=done, total=total), None)
        self.raise_failure()

    def raise_failure(self) -> None:
        """Raises what the listener raised, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _tell(self, event: ProgressEvent, seconds: float | None) -> None:
        if event[:4] == self._event[:4] and seconds is None:
            return
        now = time.monotonic()
        expected = seconds
        if event.total is not None:
            since, before = self._counted = self._counted or (now, event.done)
            if seconds is None and before < event.done < event.total:
                each = (now - since) / (event.done - before)
                expected = each * (event.total - event.done)
        self._event = event._replace(seconds=now - self._begin, expected=expected)
        try:
            self._listener(self._event)
        except Exception as error:  # noqa: BLE001 - raised by `part`, where nobody mistakes it
            self._failure, self._listener = error, ignored


_current: ContextVar[Activity | None] = ContextVar("composite_activity", default=None)


@contextmanager
def told(
    what: str, listener: Listener | None = None, *, is_awaited: bool = True
) -> Iterator[Activity]:
    """A call that takes long, `what` for people, whose events go to the listener.

    Without one they go to the terminal, if somebody waits for the call, or to the log; or, where
    the call is made by another one that takes long, to that one's.
    """
    outer = _current.get()
    if outer is not None and listener is None:
        yield outer
        return
    with (
        listening.chosen(what, listener, is_awaited=is_awaited) as tell,
        at(Activity(tell)) as activity,
    ):
        yield activity
        activity.raise_failure()


@contextmanager
def at(activity: Activity) -> Iterator[Activity]:
    """Has `step` and `part` in this thread report to an activity."""
    token = _current.set(activity)
    try:
        yield activity
    finally:
        _current.reset(token)


def step(step: str, seconds: float | None = None) -> None:
    """Reports to the activity that this thread is at, if any; see Activity."""
    activity = _current.get()
    if activity is not None:
        activity.step(step, seconds)


def part(name: str, done: int, total: int | None, step: str | None = None) -> None:
    """Reports to the activity that this thread is at, if any; see Activity."""
    activity = _current.get()
    if activity is not None:
        activity.part(name, done, total, step)
