"""Who is told how far a call is: a terminal, a log, or whom the caller names.

Standard error shows a bar for each such call where it is a terminal. Otherwise the log has a line
now and then, at its level "info". Where neither is so, nothing is told.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from composite.binding.log import logger
from composite.progress.event import Listener, ProgressEvent, ignored

if TYPE_CHECKING:
    from rich.progress import Progress

_EVERY = 3.0  # seconds between two lines of the log


@contextmanager
def chosen(what: str, listener: Listener | None, *, is_awaited: bool) -> Iterator[Listener]:
    """The listener, or where there is none, what is told of a call by default.

    The call is `what` for people; a terminal is theirs while nobody waits for it.
    """
    if listener is not None:
        yield listener
    elif is_awaited and _is_terminal():
        with _terminal.bar(what) as tell:
            yield tell
    elif logger.isEnabledFor(logging.INFO):
        with _Lines(what) as lines:
            yield lines.tell
    else:
        yield ignored


def _is_terminal() -> bool:
    stream = sys.stderr  # None in a process without one
    return stream is not None and not stream.closed and stream.isatty()


def line(what: str, event: ProgressEvent) -> str:
    """An event of a call, as the log has it."""
    parts = [f"{what}: {_at(event)}"]
    if event.total is not None:
        parts.append(f"{event.done} of {event.total} done")
    parts.append(f"{event.seconds:.0f} s")
    if event.expected is not None:
        parts.append(_left(event))
    return ", ".join(parts)


def later(event: ProgressEvent, seconds: float) -> ProgressEvent:
    """An event so many seconds after it came, with nothing new since."""
    expected = None if event.expected is None else max(event.expected - seconds, 0.0)
    return event._replace(seconds=event.seconds + seconds, expected=expected)


def _at(event: ProgressEvent) -> str:
    return " ".join(filter(None, (event.step, event.name)))


def _left(event: ProgressEvent) -> str:
    return "" if event.expected is None else f"about {event.expected:.0f} s left"


class _Lines:
    """Lines of the log, by a thread of their own: a call may be at one thing for long."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._last: tuple[float, ProgressEvent] | None = None
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="composite-progress", daemon=True)

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()

    def tell(self, event: ProgressEvent) -> None:
        """Has the next line tell this."""
        is_first, self._last = self._last is None, (time.monotonic(), event)
        if is_first:
            self._thread.start()

    def _run(self) -> None:
        while not self._has_ended.wait(_EVERY):
            assert self._last is not None, "the thread starts with the first"
            then, event = self._last
            logger.info("%s", line(self._what, later(event, time.monotonic() - then)))


class _Terminal:
    """Bars on standard error, of all threads' calls in one display."""

    def __init__(self) -> None:
        self.in_child()

    def in_child(self) -> None:
        """Called in a process that was just forked: no thread draws there what its parent shows."""
        self._lock = threading.Lock()
        self._display: Progress | None = None
        self._bars: set[int] = set()

    @contextmanager
    def bar(self, what: str) -> Iterator[Listener]:
        """A bar from the first event on; none where the terminal takes nothing any more."""
        with contextlib.ExitStack() as shown:
            bars: list[Listener] = []

            def tell(event: ProgressEvent) -> None:
                try:
                    if not bars:
                        bars.append(shown.enter_context(self._shown(what)))
                    bars[0](event)
                except OSError:
                    bars[:] = [ignored]

            yield tell

    @contextmanager
    def _shown(self, what: str) -> Iterator[Listener]:
        with self._lock:
            display = self._display = self._display or _display()
            task = display.add_task(what, total=None, at="", left="")
            self._bars.add(task)

        def tell(event: ProgressEvent) -> None:
            display.update(
                task, completed=event.done, total=event.total, at=_at(event), left=_left(event)
            )

        try:
            yield tell
        finally:
            with self._lock, contextlib.suppress(OSError):
                self._bars.discard(task)
                display.remove_task(task)
                if not self._bars and self._display is display:
                    self._display = None
                    display.stop()


def _display() -> Progress:
    """A display that has begun, and leaves nothing behind."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    def text(field: str) -> TextColumn:
        return TextColumn(f"{{task.{field}}}", markup=False)

    columns = (
        *(text("description"), BarColumn(20), MofNCompleteColumn(), Elapsed()),
        *(text("fields[left]"), text("fields[at]")),
    )
    # What is printed meanwhile appears above, but where standard output goes elsewhere.
    is_one = sys.stdout is not None and sys.stdout.isatty()
    made = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=is_one)
    made.start()
    return made


_terminal = _Terminal()
os.register_at_fork(after_in_child=_terminal.in_child)
