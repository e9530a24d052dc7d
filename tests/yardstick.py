"""How slow Python is here and now: what bounds on processor time of Python code are scaled by.

A virtual machine may run the same code at half the speed an hour later. A bound in seconds that
allows for this would let a real loss through on a good day, so bounds are stated for the speed at
which `_round_trip` takes `_SECONDS`, and are stretched where it takes longer.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import time
from collections.abc import Callable

_SECONDS = 0.035
_SOURCE = inspect.getsource(argparse)


def slowness() -> float:
    """By what factor a bound is to be stretched at this moment: at least 1."""
    return max(1.0, min(_round_trip() for _ in range(3)) / _SECONDS)


def best_of(runs: int, function: Callable[[], object]) -> float:
    """Processor seconds of the best run, each at the speed that the bounds are stated for."""
    times = []
    for _ in range(runs):
        before = slowness()
        start = time.process_time()
        function()
        taken = time.process_time() - start
        times.append(taken / max(before, slowness()))
    return min(times)


def _round_trip() -> float:
    """Seconds from the text of a long module to its tree and back: small objects and calls."""
    start = time.process_time()
    ast.unparse(ast.parse(_SOURCE))
    return time.process_time() - start
