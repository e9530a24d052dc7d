"""A model beside itself: the row says what ran."""

from __future__ import annotations

import pytest
import tensorflow as tf

from benchmarks.models import compared
from composite.acceleration import comparing


def test_a_model_without_regions_runs_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "_times", lambda ways, given: [3e-5] * len(ways))
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Flatten()])
    row = compared("flat", model, 2, seconds=0.01)
    assert (row.unit, row.at_least) == ("x", 0.97)
    assert "runs the original: no part of it can be a region" in row.detail
    assert "direct: original 30 us, regions 30 us, XLA 30 us" in row.detail
    assert row.data["best"] in row.detail
