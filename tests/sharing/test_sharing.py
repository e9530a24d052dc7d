"""Programs whose objects share memory hold what they hold without us; `make soak` runs more."""

from __future__ import annotations

import pytest

from tests.sharing.run import Counts, Runner
from tests.unmeasured import kernels_serve


@pytest.mark.slow
def test_all_that_a_program_holds_is_what_tensorflow_makes_of_it() -> None:
    counts = Counts()
    with kernels_serve():
        runner = Runner()
        for seed in (4, 6, 8, 11):
            runner.run(seed, counts)
    assert counts.differ == []
    assert counts.steps == 120
    # How often depends on when a background thread sees that inputs are stable.
    assert counts.used["packed_constants"] > 0
    assert counts.used["in_place_updates"] > 0
