"""Runs ways until all that is compiled for them is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import composite

_RUNS = 20  # what is at rest, and which expansion is worth optimizing, shows within so many


def warm(ways: Mapping[str, Callable[[], Any]]) -> Mapping[str, Callable[[], Any]]:
    """The ways, traced, with what is compiled for them, also for what is found to be at rest."""
    asked = -1
    while asked != (asked := composite.stats()["requests"]):
        for run in ways.values():
            for _ in range(_RUNS):
                run()
        composite.wait()
    return ways
