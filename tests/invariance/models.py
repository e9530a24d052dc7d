"""Small Keras models, run in regions under numerics="invariant"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

import composite

_ROWS = 64


def encoder() -> tf.keras.Model:
    """A transformer's encoder."""
    given = x = tf.keras.Input((12, 32))
    for _ in range(2):
        h = tf.keras.layers.LayerNormalization()(x)
        x = x + tf.keras.layers.MultiHeadAttention(4, 8)(h, h)
        h = tf.keras.layers.LayerNormalization()(x)
        x = x + tf.keras.layers.Dense(32)(tf.keras.layers.Dense(64, "gelu")(h))
    x = tf.keras.layers.GlobalAveragePooling1D()(x)
    return tf.keras.Model(given, tf.keras.layers.Dense(10, "softmax")(x))


def lstm() -> tf.keras.Model:
    """An LSTM and a dense layer."""
    given = tf.keras.Input((9, 16))
    return tf.keras.Model(given, tf.keras.layers.Dense(5)(tf.keras.layers.LSTM(24)(given)))


def gru() -> tf.keras.Model:
    """A GRU and a dense layer."""
    given = tf.keras.Input((9, 16))
    return tf.keras.Model(given, tf.keras.layers.Dense(5)(tf.keras.layers.GRU(24)(given)))


def images() -> tf.keras.Model:
    """Convolutions, pools and a norm."""
    given = tf.keras.Input((12, 12, 3))
    x = tf.keras.layers.Conv2D(16, 3, activation="relu", padding="same")(given)
    x = tf.keras.layers.BatchNormalization()(tf.keras.layers.MaxPool2D()(x))
    x = tf.keras.layers.GlobalAveragePooling2D()(tf.keras.layers.Conv2D(20, 3)(x))
    return tf.keras.Model(given, tf.keras.layers.Dense(7, "softmax")(x))


MODELS: Mapping[str, Callable[[], tf.keras.Model]] = {
    one.__name__: one for one in (encoder, lstm, gru, images)
}


def differences(model: tf.keras.Model, rng: np.random.Generator) -> list[str]:
    """Which batches give a row other bits than the whole, in words."""
    x = tf.constant(rng.standard_normal((_ROWS, *model.input_shape[1:])), tf.float32)
    found = []
    with composite.options(numerics="invariant", regions=True):
        of_any = tf.function(lambda x: model(x, training=False), reduce_retracing=True)
        whole = of_any(x).numpy()
        for count in (1, 2, int(rng.integers(3, _ROWS)), _ROWS - 1):
            first = int(rng.integers(0, _ROWS - count + 1))
            part = x[first : first + count]
            of_this: Any = tf.function(lambda x: model(x, training=False))
            for which, function in (("any", of_any), ("this", of_this)):
                if function(part).numpy().tobytes() != whole[first : first + count].tobytes():
                    found.append(f"{count} rows from {first}, function of {which} size")
    return found
