"""What the threads of this process that make kernels are at, and how many they have made.

For whoever waits for them: each reports to an activity of its own, which is remembered here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from composite.progress.activity import Activity, at
from composite.progress.event import ProgressEvent

_ELSEWHERE = ProgressEvent("wait", "kernels of other processes")
_READY = ProgressEvent("ready")


class _Makings:
    """The kernels that are being made, in the order in which they were begun."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.events: dict[int, ProgressEvent] = {}  # by the thread
        self.served = 0

    def in_child(self) -> None:
        """Called in a process that was just forked, which has none of the threads."""
        self.lock = threading.Lock()
        self.events.clear()


_makings = _Makings()
os.register_at_fork(after_in_child=_makings.in_child)


@contextmanager
def kernel(name: str) -> Iterator[None]:
    """This thread makes a kernel."""
    thread = threading.get_ident()

    def tell(event: ProgressEvent) -> None:
        with _makings.lock:
            _makings.events[thread] = event

    activity = Activity(tell)
    activity.part(name, 0, None, "look up")
    try:
        with at(activity):
            yield
    finally:
        with _makings.lock:
            del _makings.events[thread]


def count() -> None:
    """One more request was served."""
    with _makings.lock:
        _makings.served += 1


class Watch:
    """What is made from now on, for one that waits."""

    def __init__(self) -> None:
        self._before = _makings.served
        self._has_waited = False

    def report(self, activity: Activity, pending: int) -> None:
        """Tells of the kernel in hand; so many are not there yet. Raises as `Activity.part`.

        Where there was none to wait for, it tells nothing.
        """
        self._has_waited |= pending > 0
        if not self._has_waited:
            return
        with _makings.lock:
            done = _makings.served - self._before
            event = next(iter(_makings.events.values()), _ELSEWHERE) if pending else _READY
        activity.part(event.name, done, done + pending, event.step)
