"""Ways as they are measured: with all that is compiled for them, and in regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import composite

_RUNS = 20  # what is at rest, and which expansion is worth optimizing, shows within so many


def in_regions(run: Callable[[], Any]) -> Callable[[], Any]:
    """The way, whose graph is cut into regions.

    The first call of a graph decides; a function that makes variables has another graph from its
    second call on.
    """
    with composite.options(regions=True):
        run()
        run()
    return run


def warm(ways: Mapping[str, Callable[[], Any]]) -> Mapping[str, Callable[[], Any]]:
    """The ways, traced, with what is compiled for them, also for what is found to be at rest."""
    asked = -1
    while asked != (asked := composite.stats()["requests"]):
        for run in ways.values():
            for _ in range(_RUNS):
                run()
        composite.wait()
    return ways
