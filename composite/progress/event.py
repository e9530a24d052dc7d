"""How far a call is that takes long."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class ProgressEvent(NamedTuple):
    """The progress of a call of `composite.accelerate`, `wait`, `tune`, `build` or `check`.

    Attributes:
        step: what is being done, such as "trace", "compile", "check" or "measure".
        name: of what: a kernel, a call, or the best result so far.
        done: how many parts are done: kernels, trials, or calls.
        total: how many there are, as far as is known; None where it is not.
        seconds: since the call began.
        expected: seconds until its parts are done, at the speed so far; None where that is not
            known.
    """

    step: str
    name: str = ""
    done: int = 0
    total: int | None = None
    seconds: float = 0.0
    expected: float | None = None


Listener = Callable[[ProgressEvent], None]
"""Is told each event, by the thread that made the call."""


def ignored(event: ProgressEvent) -> None:
    """The listener where nobody is to be told."""
    del event
