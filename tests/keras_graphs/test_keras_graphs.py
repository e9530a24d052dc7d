"""Random Keras models compute the same with regions; `make soak` runs more, with kernels."""

from __future__ import annotations

import pytest

from tests.keras_graphs.graphs import Drawn
from tests.keras_graphs.run import Counts, run


def test_a_model_follows_from_its_seed() -> None:
    one, two = Drawn(7), Drawn(7)
    assert one.model.to_json() == two.model.to_json()
    assert one.model.to_json() != Drawn(8).model.to_json()


@pytest.mark.slow
def test_regions_compute_the_same() -> None:
    counts = Counts()
    for seed in (2, 3, 5):
        run(seed, counts, with_kernels=False)
    assert counts.differ == []
    assert counts.models == 3
    assert counts.regions >= 3
