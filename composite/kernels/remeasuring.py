"""Measures kernels again that lost while other work disturbed their first measurement.

A load that ends would otherwise leave the expansion in use for good: in this process, and, through
the cache, in later ones. Idle threads of the worker measure again, after some time and a few times
in a process; a result that nothing disturbed is final.

Not for: XLA, which keeps what it has compiled.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable
from typing import NamedTuple

from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.binding.log import logger
from composite.kernels import verdicts
from composite.kernels.cache import Cache
from composite.measuring.decisions import Decision

_WAITS = (10.0, 60.0, 300.0)  # seconds before the first measurement, the second, and so on


class _Planned(NamedTuple):
    """A kernel to measure, and when."""

    due: float  # on the monotonic clock
    tries: int  # before this one
    cache: Cache
    key: str
    made: KernelRecord
    request: KernelRequest

    @classmethod
    def after(
        cls, tries: int, cache: Cache, key: str, made: KernelRecord, request: KernelRequest
    ) -> _Planned:
        return cls(time.monotonic() + _WAITS[tries], tries, cache, key, made, request)


_wanted: collections.deque[_Planned] = collections.deque()


def plan(
    decision: Decision, cache: Cache, key: str, made: KernelRecord, request: KernelRequest
) -> None:
    """Has an installed kernel measured again later if its verdict is doubtful."""
    if decision.doubtful and not request.is_for_xla:
        _wanted.append(_Planned.after(0, cache, key, made, request))


def run_due(stopping: Callable[[], bool]) -> None:
    """Measures the kernel that has waited longest, if its time has come. Never raises."""
    try:
        planned = _wanted.popleft()
    except IndexError:
        return
    if time.monotonic() < planned.due:
        _wanted.append(planned)
        return
    try:
        doubtful = _measured_again(planned, stopping)
    except Exception as error:  # noqa: BLE001 - the thread serves every op of the process
        logger.info("%s: the kernel is not measured again: %s", planned.request.op, error)
        return
    if doubtful and planned.tries + 1 < len(_WAITS):
        _wanted.append(_Planned.after(planned.tries + 1, *planned[2:]))


def _measured_again(planned: _Planned, stopping: Callable[[], bool]) -> bool:
    """Measures a kernel, unless another process has; returns whether the result is doubtful."""
    _, _, cache, key, made, request = planned
    decision = verdicts.stored(cache, key, request)
    if decision is None or decision.doubtful:
        *_, decision = verdicts.measured(made, request)
        if stopping():
            return False
        verdicts.store(cache, key, made, request, decision)
    verdicts.install(made, decision)
    return decision.doubtful
