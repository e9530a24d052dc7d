"""What rounds of timed runs say of a kernel: how long it takes, and its expansion.

Not for: what is run (measure.py), and what follows from times (decisions.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from composite.kernels.decisions import Times

Round = tuple[float, float, float]
"""Seconds of a function of kernels, of the same of expansions, and of one without nodes."""

LEAST = 1e-8  # seconds of a node: less cannot be told from the function without it
# Seconds of timed runs, roughly: the next of them while a kernel does not clearly win.
BUDGETS = (0.05, 0.15, 0.25)
_CLOCK = 1e-7  # seconds that the clock can tell apart


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
