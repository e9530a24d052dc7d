"""Which nodes have kernels where the sizes of some are not known to fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid

pytestmark = pytest.mark.slow


def test_a_node_whose_sizes_are_not_known_to_agree_is_tensorflows() -> None:
    """The model of numbers and words: how many counts there are, TensorFlow cannot tell."""
    layers = tf.keras.layers
    words, numbers = tf.keras.Input((1,), dtype="string"), tf.keras.Input((3,))
    counts = layers.CategoryEncoding(num_tokens=4, output_mode="count")(
        layers.Discretization(bin_boundaries=[0.0, 0.5, 1.0])(numbers)
    )
    embedded = layers.Embedding(8, 16)(layers.StringLookup(vocabulary=["a", "b"])(words))
    h = layers.Concatenate()([layers.Flatten()(embedded), counts])
    outputs = layers.Dense(4, "softmax")(layers.Dense(16, "gelu")(h))
    model = tf.keras.Model([words, numbers], outputs)

    module = hybrid.compile(model)
    report = module.report
    assert report is not None
    assert any("are not known to agree" in why for why in report.refused.values())
    ops = {part.where: part.ops for part in report.parts}
    assert ops["TensorFlow"]["ConcatV2"] == 1
    assert ops["kernel"]["MatMul"] == 2
    x = tf.constant(np.random.default_rng(0).standard_normal((3, 3)), tf.float32)
    for rows in (3, 1):
        given = [tf.constant([["a"], ["?"], ["b"]])[:rows], x[:rows]]
        np.testing.assert_allclose(module(given), model(given), rtol=1e-5, atol=1e-6)


def test_a_region_that_is_refused_again_is_tensorflows() -> None:
    """With the first node outside, the second is in the way, and then nothing is left."""

    def added(x: Any) -> Any:
        some, others = (tf.boolean_mask(x, x[:, k] > -9.0) for k in (0, 1))
        return tf.tanh(tf.tanh(some) + others) * others

    x = np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32)
    module = hybrid.compile(added, tf.TensorSpec([None, 2], tf.float32))
    np.testing.assert_allclose(module(x), added(x), rtol=1e-5, atol=1e-6)
