"""How many cases hypothesis draws where each has a kernel of its own, which takes long to compile.

A third of them, and all in `make soak`.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

ALL = "COMPOSITE_TEST_DRAWS_ALL"
"""The environment variable that is set if all cases are to be drawn."""


def kernels(count: int) -> settings:
    """The settings of a test that draws `count` cases, the same in each run."""
    return settings(
        max_examples=count if os.environ.get(ALL) else -(-count // 3),
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
