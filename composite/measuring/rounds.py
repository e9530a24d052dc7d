"""Rounds of timed runs, from which follow the times of a kernel and its expansion.

Not for: what is run (measure.py), and what follows from times (decisions.py).
"""

from __future__ import annotations

import functools
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from composite.measuring.decisions import Times


class Round(NamedTuple):
    """Seconds of a function of kernels, of the same of expansions, and of one without nodes."""

    kernel: float
    expansion: float
    nothing: float
    preempted: bool = False  # whether a thread of this process was


LEAST = 1e-8  # seconds of a node; shorter ones are lost in the noise of the function
# Budgets of timed runs in seconds: each next one is spent if the kernel does not clearly win.
BUDGETS = (0.05, 0.15, 0.25)
_CLOCK = 1e-7  # the resolution of the clock in seconds
_MOST = 60
_FEWEST = 5  # whatever their length


def taken(
    functions: Sequence[Callable[..., Any]],
    inputs: Sequence[Any],
    budget: float,
    fewest: int = _FEWEST,
) -> list[Round]:
    """Seconds of each function. The functions take turns, so that a busy moment affects all.

    Rounds in which a thread was preempted are left out if at least `fewest` others remain, since
    preemption costs a function more time the more threads it uses. `budget`: seconds.
    """
    found: list[Round] = []
    end = time.perf_counter() + budget
    for number in range(_MOST):
        if number >= fewest and time.perf_counter() > end:
            break
        before = _preemptions()
        kernel, expansion, nothing = (seconds(function, inputs) for function in functions)
        found.append(Round(kernel, expansion, nothing, _preemptions() != before))
    undisturbed = [one for one in found if not one.preempted]
    return undisturbed if len(undisturbed) >= fewest else found


def seconds(function: Callable[..., Any], inputs: Sequence[Any]) -> float:
    """The time of one run."""
    start = time.perf_counter()
    function(*inputs)
    return time.perf_counter() - start


def _preemptions() -> int:
    """How often the system has preempted threads of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def settled(take: Callable[[float], list[Round]], copies: int) -> list[Round]:
    """Rounds until the kernel clearly wins or the budgets are spent.

    A kernel that loses may have shared its threads with a load that will end, such as the calls
    that requested it. An expansion on fewer threads is affected less.
    """
    rounds: list[Round] = []
    for budget in BUDGETS:
        rounds += take(budget)
        _, _, above = statistics.quantiles(_ratios(rounds, copies), n=4)
        if above < 1.0:
            break
    return rounds


def times(rounds: Sequence[Round], copies: int) -> Times:
    """The times of one of this many nodes."""
    base, noise = _without(rounds)
    low, ratio, high = statistics.quantiles(_ratios(rounds, copies), n=4)
    median = statistics.median(one.expansion for one in rounds)
    expansion_us = of_one(median, base, copies, noise) * 1e6
    # Derived from the ratio, so that times and verdict agree.
    kernel_us = max(ratio * expansion_us, of_one(base, base, copies, noise) * 1e6)
    disturbed = sum(one.preempted for one in rounds) > len(rounds) // 2
    return Times(kernel_us, expansion_us, ratio, low, high, disturbed)


def _ratios(rounds: Sequence[Round], copies: int) -> list[float]:
    base, noise = _without(rounds)
    without = functools.partial(of_one, empty=base, copies=copies, noise=noise)
    return [without(one.kernel) / without(one.expansion) for one in rounds]


def _without(rounds: Sequence[Round]) -> tuple[float, float]:
    """Seconds of the function without nodes, and how much longer half of its runs take."""
    empty = [one.nothing for one in rounds]
    return min(empty), statistics.median(empty) - min(empty)


def of_one(chain: float, empty: float, copies: int, noise: float = 0.0) -> float:
    """Seconds of one of this many nodes: the function took `chain`, the one without nodes `empty`.

    At least the smallest time that the clock and the `noise` of such runs can resolve.
    """
    return max(chain - empty, noise, copies * LEAST, _CLOCK) / copies
