"""Separable convolutions with pools beside them: a small Xception, as it recognizes faces.

Their check has infinities, which pools make the lowest number of, and convolutions sum that.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import composite
from tests.unmeasured import kernels_serve

CLASSES = 7


def convolved(x: Any, filters: int) -> Any:
    x = layers.Conv2D(filters, 3, use_bias=False)(x)
    return layers.ReLU()(layers.BatchNormalization()(x))


def separated(x: Any, filters: int) -> Any:
    x = layers.SeparableConv2D(filters, 3, padding="same", use_bias=False)(x)
    return layers.BatchNormalization()(x)


def block(x: Any, filters: int) -> Any:
    beside = layers.Conv2D(filters, 1, strides=2, padding="same", use_bias=False)(x)
    x = separated(layers.ReLU()(separated(x, filters)), filters)
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    return layers.add([x, layers.BatchNormalization()(beside)])


def xception() -> Any:
    image = keras.Input((32, 32, 1))
    x = convolved(convolved(image, 8), 8)
    for filters in (16, 32):
        x = block(x, filters)
    x = layers.Conv2D(CLASSES, 3, padding="same")(x)
    return keras.Model(image, layers.Softmax()(layers.GlobalAveragePooling2D()(x)))


@pytest.mark.slow
def test_each_region_has_a_kernel_at_any_batch() -> None:
    keras.utils.set_random_seed(0)
    model = xception()

    @tf.function(autograph=False)
    def call(x: Any) -> Any:
        return model(x, training=False)

    before = composite.stats()
    with kernels_serve(), composite.options(regions=True):
        for batch in (1, 2, 5):
            x = np.random.default_rng(batch).random((batch, 32, 32, 1), np.float32)
            wanted = model(x, training=False).numpy()
            call(x)
            composite.wait()
            np.testing.assert_allclose(call(x).numpy(), wanted, rtol=1e-3, atol=1e-5)
    counted = composite.stats() - before
    assert counted["answered"] == counted["requests"] >= 3
    assert counted["kernel_launches"] >= 3
