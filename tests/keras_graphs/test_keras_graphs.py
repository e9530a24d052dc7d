"""Random Keras models compute the same with regions; `make soak` runs more, with kernels."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.keras_graphs.graphs import Drawn
from tests.keras_graphs.run import Counts, differences, run


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


def test_outputs_that_cancel_may_move_as_far_as_by_an_ulp_of_the_inputs() -> None:
    """Seed 3040: a layer norm of what a batch norm leaves of its input."""
    drawn = Drawn(3040)
    wanted = [np.asarray(y) for y in tf.nest.flatten(drawn.model(drawn.inputs))]
    assert differences("moved", [wanted[0] * (1 + 1.5e-4), *wanted[1:]], wanted, drawn) == []
    (told,) = differences("wrong", [wanted[0] * 1.5, *wanted[1:]], wanted, drawn)
    assert told.startswith("wrong: output 0 is ")
