"""Choices that read choices: which of them keeps a NaN is not LLVM's to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf


def rest(x: Any) -> Any:
    """The larger of x and 0, where a NaN becomes 0."""
    return tf.where(x > 0.0, x, tf.zeros_like(x))


def kept(x: Any) -> Any:
    """The larger of x and 0, where a NaN stays."""
    return tf.where(x < 0.0, tf.zeros_like(x), x)


BODIES: dict[str, Callable[[Any], Any]] = {
    "relu, rest": lambda x: rest(tf.nn.relu(x)),
    "rest, relu": lambda x: tf.nn.relu(rest(x)),
    "relu6, rest": lambda x: rest(tf.nn.relu6(x)),
    "maximum, rest": lambda x: rest(tf.maximum(x, 0.0)),
    "kept, rest": lambda x: rest(kept(x)),
    "rest, kept": lambda x: kept(rest(x)),
    "least": lambda x: tf.where(kept(x) < 2.0, kept(x), 2.0 * tf.ones_like(x)),
    "leaky": lambda x: rest(tf.nn.leaky_relu(tf.nn.relu(x))),
    "in rows": lambda x: rest(kept(x - tf.reduce_min(x * 0.0, -1, keepdims=True))),
    "behind a product": lambda x: rest(tf.nn.relu(tf.matmul(x, tf.eye(8)))),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_nan_is_kept_where_the_op_keeps_it(name: str, compiler: Any) -> None:
    x = np.array([1.0, -1.0, np.nan, 0.0, 5.0, -0.0, 2.0, 3.0] * 9, np.float32).reshape(9, 8)
    compiler.compare(BODIES[name], x)
