"""A model beside itself: the row says what ran."""

from __future__ import annotations

import tensorflow as tf

from benchmarks.models import compared


def test_a_model_without_regions_runs_the_original() -> None:
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Flatten()])
    row = compared("flat", model, 2, seconds=0.01)
    assert (row.unit, row.at_least) == ("x", 0.97)
    assert "runs the original: no part of it can be a region" in row.detail
    assert row.data["best"] in row.detail
