"""Loops over a list of tensors that collect another, as recurrent layers are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

TRIPS, WIDTH = 5, 4
FLOATS = tf.TensorSpec([TRIPS, WIDTH], tf.float32)
Step = Callable[[Any, Any], Any]


def numbers(*shape: int, seed: int = 0) -> Any:
    return tf.constant(np.random.default_rng(seed).standard_normal(shape), tf.float32)


def scan(
    x: Any, step: Step, *, trips: Any = TRIPS, through: Callable[[Any], Any] = tf.identity
) -> Any:
    """All of h = step(x[i], h), which starts as zeros. The list of x goes `through` a function."""
    rows = through(tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[WIDTH]))
    collected = tf.raw_ops.TensorListReserve(
        element_shape=[WIDTH], num_elements=trips, element_dtype=tf.float32
    )

    def trip(i: Any, h: Any, collected: Any) -> Any:
        row = tf.raw_ops.TensorListGetItem(
            input_handle=rows, index=i, element_shape=[WIDTH], element_dtype=tf.float32
        )
        h = step(row, h)
        return i + 1, h, tf.raw_ops.TensorListSetItem(input_handle=collected, index=i, item=h)

    zeros = tf.zeros([WIDTH])
    _, _, collected = tf.while_loop(lambda i, *_: i < trips, trip, (0, zeros, collected))
    return tf.raw_ops.TensorListStack(
        input_handle=collected, element_shape=[WIDTH], element_dtype=tf.float32
    )


def gate(row: Any, h: Any) -> Any:
    """A step that computes."""
    return tf.tanh(row + h) * 0.5


def times(weight: Any) -> Step:
    """A step that has a product with what a variable, or a tensor, holds."""
    return lambda row, h: tf.tanh(tf.linalg.matvec(weight, h) + row)


def scanned(x: Any, weight: Any) -> Any:
    """What a scan of times(weight) gives, in NumPy's float64."""
    h, rows = np.zeros(WIDTH), []
    for row in np.asarray(x, np.float64):
        h = np.tanh(np.asarray(weight, np.float64) @ h + row)
        rows.append(h)
    return np.stack(rows)
