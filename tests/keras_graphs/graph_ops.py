"""Composites that random Keras models call."""

from __future__ import annotations

import tensorflow as tf

from composite import Composite


@Composite("GraphGated", inputs=["x: float"], outputs=["y: float"])
def gated(x):
    """Rows that are weighed by their softmax."""
    return tf.nn.softmax(x * 0.5) * x + tf.tanh(x)


@Composite("GraphOverWidth", inputs=["x: float"], outputs=["y: float"])
def over_width(x):
    """Rows over the root of their length."""
    return x * float(x.shape[-1]) ** -0.5 + tf.reduce_mean(x, -1, keepdims=True)
