"""Huber loss: Huber 1964, https://doi.org/10.1214/aoms/1177703732."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite(
    "HuberLoss",
    inputs=["predictions: T", "targets: T"],
    attrs=["delta: float = 1.0"],
    derived_attrs=FLOATS,
    outputs=["loss: T"],
)
def huber_loss(predictions, targets, delta):
    """Mean of a loss that is quadratic for errors up to delta, and linear beyond.

    Args:
        predictions: [..., n].
        targets: [..., n].
        delta: where the two meet.

    Returns:
        [...], the mean over the last axis.
    """
    error = predictions - targets
    size = tf.abs(error)
    loss = tf.where(size <= delta, 0.5 * tf.square(error), delta * (size - 0.5 * delta))
    return tf.reduce_mean(loss, -1)
