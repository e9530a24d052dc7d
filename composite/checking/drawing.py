"""Draws samples by hypothesis until one fails, which is then made as small as it can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from composite.checking.sample import Sample


def until(fails: Callable[[Sample], bool], strategy: Any, count: int, seed: int) -> bool:
    """Draws up to `count` samples; the last one that `fails` said yes to is the smallest found.

    Returns whether the failure comes each time that its sample is run. ImportError: hypothesis is
    not installed.
    """
    try:
        import hypothesis
    except ImportError as error:
        raise ImportError(
            "composite draws inputs with hypothesis, which is not installed: "
            "pip install hypothesis, or give the inputs of a call"
        ) from error

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
    )
    @hypothesis.given(strategy)
    def passes(sample: Sample) -> None:
        if fails(sample):
            raise _Fails

    try:
        passes()
    except _Fails:
        return True
    except hypothesis.errors.Flaky:
        return False
    return True


class _Fails(Exception):  # noqa: N818 - for hypothesis
    """A drawn sample fails."""
