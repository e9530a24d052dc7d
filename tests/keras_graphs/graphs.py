"""Random Keras models: layers of many kinds, shared ones, loops, branches, composites.

A model follows from its seed. Tensors are of the batch, a length and a width, or of the batch and
a width; images have two lengths. Sizes are small and odd as often as even.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tests.keras_graphs import graph_ops

BATCH = 3
_ACTIVATIONS = ("relu", "gelu", "tanh", "sigmoid", "silu", "elu", "softplus", "softmax", "mish")


class Repeated(tf.keras.layers.Layer):
    """A loop, and a branch that the values of what it is given choose."""

    def __init__(self, trips: int, **kwargs: Any) -> None:
        """`trips` of the loop."""
        super().__init__(**kwargs)
        self.trips = trips

    def call(self, x: Any) -> Any:
        """[...] -> [...]."""

        def again(trip: Any, y: Any) -> Any:
            return trip + 1, tf.tanh(y) * 1.5 + 0.1 * x

        _, y = tf.while_loop(lambda trip, _: trip < self.trips, again, [0, x])
        # No sum, which a norm makes 0 but for rounding.
        return tf.cond(tf.reduce_max(x) > 0.3, lambda: tf.nn.relu(y) * 0.5, lambda: y - 1.0)


class Called(tf.keras.layers.Layer):
    """A composite: one with a softmax, or one that has to know a size."""

    def __init__(self, which: int, **kwargs: Any) -> None:
        """`which` of them."""
        super().__init__(**kwargs)
        self.which = which

    def call(self, x: Any) -> Any:
        """[...] -> [...]."""
        return (graph_ops.gated, graph_ops.over_width)[self.which](x)


class Drawn:
    """A model and the inputs of one call."""

    def __init__(self, seed: int) -> None:
        """Draws it."""
        self._random = random.Random(seed)
        self._shared: list[Any] = []
        tf.keras.utils.set_random_seed(seed % 2**32)
        tf.keras.backend.clear_session()
        inputs = [self._input() for _ in range(self._random.randint(1, 2))]
        values = list(inputs)
        for _ in range(self._random.randint(4, 14)):
            values.append(self._layer(values))
        outputs = [
            values[-1],
            *self._random.sample(values[len(inputs) :], self._random.randint(0, 2)),
        ]
        self.model = tf.keras.Model(inputs, outputs)
        numbers = np.random.default_rng(seed)
        self.inputs = [
            tf.constant(numbers.standard_normal((BATCH, *x.shape[1:])), tf.float32) for x in inputs
        ]

    def _pick(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def _input(self) -> Any:
        width = self._random.randint(2, 12)
        lengths = [self._random.randint(4, 9) for _ in range(self._random.randint(0, 2))]
        return tf.keras.Input((*lengths, width))

    def _layer(self, values: list[Any]) -> Any:
        x = self._random.choice(values[-4:])
        same = [v for v in values if v.shape == x.shape and v is not x]
        makers: list[Callable[[Any], Any]] = [self._dense, self._plain, self._norm]
        if same:
            makers.append(lambda x: self._merged(x, self._random.choice(same)))
        if len(x.shape) == 3:
            makers += [self._sequence, self._sequence]
        if len(x.shape) == 4:
            makers += [self._image, self._image]
        return self._random.choice(makers)(x)

    def _dense(self, x: Any) -> Any:
        fitting = [layer for layer in self._shared if layer.input_spec.axes == {-1: x.shape[-1]}]
        if fitting and self._random.random() < 0.5:
            return self._random.choice(fitting)(x)
        units = self._random.randint(1, 20)
        layer = tf.keras.layers.Dense(
            units, activation=self._pick(None, *_ACTIVATIONS), use_bias=self._pick(True, False)
        )
        y = layer(x)
        self._shared.append(layer)
        return y

    def _plain(self, x: Any) -> Any:
        layers = tf.keras.layers
        return self._pick(
            layers.Activation(self._pick(*_ACTIVATIONS)),
            layers.Dropout(0.3),
            layers.LeakyReLU(),
            layers.Rescaling(0.5, 0.1),
            layers.Flatten() if len(x.shape) > 2 else layers.Reshape((x.shape[-1], 1)),
            layers.Permute(tuple(reversed(range(1, len(x.shape))))),
            layers.PReLU(),
            layers.Softmax(),
            Repeated(self._random.randint(0, 3)),
            Called(self._random.randint(0, 1)),
        )(x)

    def _norm(self, x: Any) -> Any:
        layers = tf.keras.layers
        return self._pick(
            layers.LayerNormalization(),
            layers.BatchNormalization(),
            layers.UnitNormalization(),
            layers.RMSNormalization(),
            layers.GroupNormalization(1),
        )(x)

    def _merged(self, x: Any, y: Any) -> Any:
        layers = tf.keras.layers
        merge = self._pick(
            layers.Add, layers.Multiply, layers.Maximum, layers.Subtract, layers.Concatenate
        )
        return merge()([x, y])

    def _sequence(self, x: Any) -> Any:
        layers = tf.keras.layers
        units = self._random.randint(1, 9)
        return self._pick(
            layers.LSTM(units, return_sequences=self._pick(True, False)),
            layers.GRU(units, return_sequences=True),
            layers.Conv1D(units, 3, padding=self._pick("same", "valid")),
            layers.Conv1D(units, 3, padding="causal", dilation_rate=2),
            layers.GlobalAveragePooling1D(),
            layers.MaxPooling1D(2),
            layers.AveragePooling1D(2, padding="same"),
            layers.GlobalMaxPooling1D(),
            layers.UpSampling1D(2),
            layers.ZeroPadding1D(1),
            layers.Conv1DTranspose(units, 2, strides=2),
            layers.SimpleRNN(units, return_sequences=self._pick(True, False)),
            layers.Bidirectional(layers.LSTM(units, return_sequences=True)),
            lambda x: layers.MultiHeadAttention(2, units)(x, x),
            lambda x: layers.Dot(axes=-1)([x, x]),
        )(x)

    def _image(self, x: Any) -> Any:
        layers = tf.keras.layers
        filters, padding = self._random.randint(1, 9), self._pick("same", "valid")
        return self._pick(
            layers.Conv2D(filters, 3, padding=padding, strides=self._pick(1, 2)),
            layers.Conv2D(filters, 2, padding="same", dilation_rate=2),
            layers.Conv2D(2 * x.shape[-1], 3, padding="same", groups=x.shape[-1]),
            layers.DepthwiseConv2D(2, padding=padding),
            layers.SeparableConv2D(filters, 2, padding=padding),
            layers.AveragePooling2D(2),
            layers.MaxPooling2D(2, padding="same"),
            layers.GlobalAveragePooling2D(),
            layers.UpSampling2D(2),
            layers.GlobalMaxPooling2D(),
            layers.UpSampling2D(2, interpolation="bilinear"),
            layers.Conv2DTranspose(filters, self._pick(2, 3), strides=2, padding=padding),
            layers.ZeroPadding2D(1),
            layers.Cropping2D(1),
            self._volume,
        )(x)

    def _volume(self, x: Any) -> Any:
        """An image whose channels are a side of a volume."""
        layers = tf.keras.layers
        filters, padding = self._random.randint(1, 5), self._pick("same", "valid")
        volume = layers.Reshape((*x.shape[1:], 1))(x)
        volume = self._pick(
            layers.Conv3D(filters, 2, padding=padding, strides=self._pick(1, 2)),
            layers.Conv3DTranspose(filters, 2, strides=self._pick(1, 2), padding=padding),
            layers.MaxPooling3D(2, padding=padding),
            layers.AveragePooling3D(2, padding=padding),
        )(volume)
        rows, columns, width, count = volume.shape[1:]
        return layers.Reshape((rows, columns, width * count))(volume)
