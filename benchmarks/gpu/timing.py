"""How long a GPU takes: the best of several times, each of enough repetitions to be measured.

The repetitions are one graph, so that the time of a short kernel is the GPU's and not the host's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

_SECONDS = 2e-2
_TIMES = 7
_MOST = 1000


class Clock(Protocol):
    """Something that times what is launched."""

    def milliseconds(self, run: Callable[[], None]) -> float:
        """How long it takes."""

    def together(self, run: Callable[[], None], count: int) -> Callable[[], None]:
        """What does so many runs, without the host in between."""


def best(clock: Clock, run: Callable[[], None]) -> float:
    """Seconds that a run takes, at best."""
    run()  # loads the code
    once = max(clock.milliseconds(run) / 1e3, 1e-7)
    count = max(1, min(_MOST, int(_SECONDS / once)))
    repeated = clock.together(run, count)
    return min(clock.milliseconds(repeated) / 1e3 / count for _ in range(_TIMES))
