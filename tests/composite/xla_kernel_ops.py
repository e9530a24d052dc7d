"""Composites that have kernels to be called from XLA, and some that have none."""

from __future__ import annotations

import tensorflow as tf

from composite import Composite


@Composite("XlaDense", inputs=["x: float", "w: float", "b: float"], outputs=["y: float"])
def dense(x, w, b):
    """A product with an epilogue."""
    return tf.tanh(tf.matmul(x, w) + b)


@Composite("XlaNormalized", inputs=["x: float"], outputs=["y: float"])
def normalized(x):
    """Reductions of rows."""
    return tf.nn.softmax(x - tf.reduce_mean(x, -1, keepdims=True))


@Composite("XlaScaled", inputs=["x: float"], outputs=["y: float"])
def scaled(x):
    """Elementwise."""
    return x * 2.0 + x


@Composite(
    "XlaLookedAt", inputs=["x: float"], outputs=["mean: float", "best: int64", "above: bool"]
)
def looked_at(x):
    """Outputs of several dtypes and ranks."""
    mean = tf.reduce_mean(x, 1, keepdims=True)
    return tf.squeeze(mean, 1), tf.argmax(x, 1), x > mean


@Composite("XlaSummed", inputs=["x: float", "columns: int32"], outputs=["y: float"])
def summed(x, columns):
    """An input whose value is a size."""
    return tf.reduce_sum(tf.reshape(x, [-1, columns]), 1)


@Composite("XlaCounted", inputs=["x: int32"], outputs=["y: int32"])
def counted(x):
    """Of integers: its kernel is exact."""
    return tf.reduce_sum(x, 1)


@Composite("XlaChosen", inputs=["x: float", "rows: int32"], outputs=["y: float"])
def chosen(x, rows):
    """Indices that may be out of range."""
    return tf.reduce_sum(tf.gather(x, rows), 1)


@Composite("XlaDropped", inputs=["x: float", "seed: int32"], outputs=["y: float"])
def dropped(x, seed):
    """Random numbers beside a sum."""
    kept = tf.random.stateless_uniform(tf.shape(x), seed) > 0.5
    return tf.reduce_sum(tf.where(kept, x, 0.0), 1)


@Composite("XlaNoKernel", inputs=["x: float"], outputs=["y: float"])
def without_kernel(x):
    """An op that XLA compiles and kernels do not have."""
    return tf.linalg.cholesky(tf.matmul(x, x, transpose_a=True) + tf.eye(x.shape[1]))


@Composite("XlaKept", inputs=["x: float", "w: float"], outputs=["y: float"])
def kept(x, w):
    """Its gradient keeps the product."""
    return tf.nn.gelu(tf.matmul(x, w))
