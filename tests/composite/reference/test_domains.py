"""Inputs whose sums a root reads are drawn so that these do not cancel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.kernels.samples import Samples
from composite.ops import functions
from composite.reference.domains import cast_to_places, under_roots
from tests.compiler.tvm.conftest import library_of

SHAPE = (30, 20)


def moment(v: Any, g: Any) -> Any:
    return g / (tf.sqrt(v + (g * g - v) * 0.1) + 1e-7)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (moment, {0, 1}),
        (lambda x, y: tf.math.log(tf.reshape(x, [20, 30]) - 2.0) * tf.reshape(y, [20, 30]), {0}),
        (lambda x, y: tf.sqrt(x) + tf.math.rsqrt(x * y), set()),  # nothing cancels
        (lambda x, y: tf.sqrt(tf.reduce_sum(x, 0) + 1.0) * y, set()),
    ],
)
def test_under_roots(body: Any, wanted: set[int]) -> None:
    library = library_of(body, [tf.TensorSpec(SHAPE)] * 2)
    assert under_roots(functions.body(library)) == wanted


def test_samples_have_no_moments_below_zero() -> None:
    library = library_of(moment, [tf.TensorSpec(SHAPE)] * 2)
    kinds = {s.draw.kind: s for s in Samples(lambda _: library, [[SHAPE] * 2])}
    assert (kinds["ordinary inputs"].inputs[0] >= 0).all()
    assert np.isfinite(kinds["inputs of mixed magnitudes"].expected[0]).all()
    assert (kinds["integers"].inputs[0] < 0).any()


def test_signs_stay_where_they_give_no_nan() -> None:
    library = library_of(lambda x, y: x / tf.sqrt(x * x + y * y + 1.0), [tf.TensorSpec(SHAPE)] * 2)
    for sample in Samples(lambda _: library, [[SHAPE] * 2]):
        if sample.draw.kind == "ordinary inputs":
            assert (sample.inputs[0] < 0).any()


def embedded(table: Any, ids: Any) -> Any:
    return tf.gather(table, tf.cast(tf.reshape(ids, [-1]), tf.int32)) * 2.0


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (embedded, {1}),
        (lambda x, y: tf.gather(x, tf.cast(y[:, 0] * 2.0, tf.int64)) + y, {1}),
        (lambda x, y: tf.where(x > 0.0, x, y), set()),
        (lambda x, y: tf.cast(tf.cast(x, tf.int32), tf.float32) * y, set()),
    ],
)
def test_cast_to_places(body: Any, wanted: set[int]) -> None:
    library = library_of(body, [tf.TensorSpec(SHAPE)] * 2)
    assert cast_to_places(functions.body(library)) == wanted


def test_samples_have_places_that_are_there() -> None:
    shapes = [(10, 4), (3, 5)]
    library = library_of(embedded, [tf.TensorSpec(shape) for shape in shapes])
    samples = list(Samples(lambda _: library, [shapes]))
    assert any(sample.draw.special for sample in samples)
    for sample in samples:
        assert set(np.unique(sample.inputs[1].astype(int))) <= set(range(10))
        assert np.unique(sample.inputs[0]).size > 1
    assert any(np.unique(sample.inputs[1].astype(int)).size > 1 for sample in samples)
