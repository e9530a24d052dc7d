"""Rounds of timed runs, and what they say of a kernel: how long it takes, and its expansion.

Not for: what is run (measure.py), and what follows from times (decisions.py).
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from composite.kernels.decisions import Times

Round = tuple[float, float, float]
"""Seconds of a function of kernels, of the same of expansions, and of one without nodes."""

LEAST = 1e-8  # seconds of a node: less cannot be told from the function without it
# Seconds of timed runs, roughly: the next of them while a kernel does not clearly win.
BUDGETS = (0.05, 0.15, 0.25)
_CLOCK = 1e-7  # seconds that the clock can tell apart
_MOST = 60
_FEWEST = 5  # however long one takes


def taken(
    functions: Sequence[Callable[..., Any]],
    inputs: Sequence[Any],
    budget: float,
    fewest: int = _FEWEST,
) -> list[Round]:
    """Seconds of each function, run in turns, so that a busy moment of the machine hits all.

    Only rounds in which no thread was preempted, if there are at least `fewest` of them: preemption
    costs a function more time, the more threads it uses. `budget`: seconds.
    """
    found, undisturbed = [], []
    end = time.perf_counter() + budget
    for number in range(_MOST):
        if number >= fewest and time.perf_counter() > end:
            break
        before = _preemptions()
        kernel, expansion, nothing = (seconds(function, inputs) for function in functions)
        found.append((kernel, expansion, nothing))
        if _preemptions() == before:
            undisturbed.append(found[-1])
    return undisturbed if len(undisturbed) >= fewest else found


def seconds(function: Callable[..., Any], inputs: Sequence[Any]) -> float:
    """How long one run takes."""
    start = time.perf_counter()
    function(*inputs)
    return time.perf_counter() - start


def _preemptions() -> int:
    """How often the system has preempted threads of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def settled(take: Callable[[float], list[Round]], copies: int) -> list[Round]:
    """Rounds until a kernel clearly wins, or no more are worth their time.

    One that loses may have shared its threads with a load that ends, such as the calls that asked
    for it; an expansion on fewer threads loses less by that.
    """
    rounds: list[Round] = []
    for budget in BUDGETS:
        rounds += take(budget)
        _, _, above = statistics.quantiles(_ratios(rounds, copies), n=4)
        if above < 1.0:
            break
    return rounds


def times(rounds: Sequence[Round], copies: int) -> Times:
    """The times of one of so many nodes."""
    base, noise = _without(rounds)
    low, ratio, high = statistics.quantiles(_ratios(rounds, copies), n=4)
    median = statistics.median(expansion for _, expansion, _ in rounds)
    expansion_us = of_one(median, base, copies, noise) * 1e6
    # From the ratio, so that times and verdict agree.
    kernel_us = max(ratio * expansion_us, of_one(base, base, copies, noise) * 1e6)
    return Times(kernel_us, expansion_us, ratio, low, high)


def _ratios(rounds: Sequence[Round], copies: int) -> list[float]:
    base, noise = _without(rounds)
    return [of_one(a, base, copies, noise) / of_one(b, base, copies, noise) for a, b, _ in rounds]


def _without(rounds: Sequence[Round]) -> tuple[float, float]:
    """Seconds of the function without nodes, and by how much half of its runs take longer."""
    empty = [nothing for _, _, nothing in rounds]
    return min(empty), statistics.median(empty) - min(empty)


def of_one(chain: float, empty: float, copies: int, noise: float = 0.0) -> float:
    """Seconds of one of so many nodes, whose function took `chain`, and one without them `empty`.

    No less than what can be told apart: by the clock, and beside the `noise` of such runs.
    """
    return max(chain - empty, noise, copies * LEAST, _CLOCK) / copies
