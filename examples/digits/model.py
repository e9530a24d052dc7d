"""The data, the layer and the classifier: a Keras model whose layers are composite ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from examples.digits.ops import fused_fully_connected

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Digits:
    """Handwritten digits: `x_*` float32 [n, 64] in 0..1, `y_*` int32 [n]."""

    x_train: Array
    x_test: Array
    y_train: Array
    y_test: Array

    @classmethod
    def load(cls) -> Digits:
        """Scikit-learn's bundled set: 1797 images of 8 x 8, a quarter of them kept for the test."""
        images, labels = load_digits(return_X_y=True)
        pixels = (images / 16).astype(np.float32)
        return cls(
            *train_test_split(
                pixels, labels.astype(np.int32), test_size=0.25, random_state=0, stratify=labels
            )
        )


class FusedDense(keras.layers.Layer):
    """A dense layer that is one FusedFullyConnected node: [batch, inputs] -> [batch, units]."""

    def __init__(self, units: int, act: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.act = act

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Make the filter, one row a unit as the op has it, and the bias."""
        self.filter_ = self.add_weight(
            shape=(self.units, input_shape[-1]), initializer="glorot_uniform", name="filter"
        )
        self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")

    def call(self, inputs: Any) -> Any:
        """The op itself; its shape function and its gradient are derived from its body."""
        return fused_fully_connected(inputs, self.filter_, self.bias, act=self.act)


def classifier(*, xla: bool = False) -> keras.Model:
    """64 pixels -> 256 -> 128 -> 10 logits; with `xla`, XLA compiles its training steps."""
    model = keras.Sequential(
        [
            keras.Input((64,)),
            FusedDense(256, "RELU"),
            FusedDense(128, "RELU"),
            FusedDense(10),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=xla,
    )
    return model


def train(digits: Digits, epochs: int = 30, *, xla: bool = False) -> tuple[keras.Model, float]:
    """Train a classifier; returns it with its accuracy on the images it has not seen."""
    keras.utils.set_random_seed(0)
    model = classifier(xla=xla)
    model.fit(digits.x_train, digits.y_train, batch_size=64, epochs=epochs, verbose=0)
    _, accuracy = model.evaluate(digits.x_test, digits.y_test, verbose=0)
    return model, float(accuracy)
