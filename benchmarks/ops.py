"""Ops that only a benchmark needs."""

import tensorflow as tf

from composite import Composite
from examples.lstm import ops as sequences

FLOATS = ["T: {float, double}"]


@Composite(
    "BenchFlattenRows",
    inputs=["x: T"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def flatten_rows(x):
    """Keep the batch, flatten the rest: the expansion reads the batch, so each size has its own."""
    return tf.raw_ops.Relu(features=tf.raw_ops.Reshape(tensor=x, shape=[x.shape[0], -1]))


@Composite("BenchMatMul", inputs=["a: T", "b: T"], derived_attrs=FLOATS, outputs=["y: T"])
def matrix_product(a, b):
    """The product of two matrices, as an op of its own."""
    return tf.matmul(a, b)


@Composite(
    "BenchGated",
    inputs=["x: T", "scale: T", "offset: T"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def gated(x, scale, offset):
    """tanh(x * scale + offset) * sigmoid(x) + x."""
    return tf.tanh(x * scale + offset) * tf.sigmoid(x) + x


@Composite("BenchGelu", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def tanh_gelu(x):
    """GELU in its form with tanh."""
    return tf.nn.gelu(x, approximate=True)


@Composite(
    "BenchAttention", inputs=["q: T", "k: T", "v: T"], derived_attrs=FLOATS, outputs=["y: T"]
)
def attention_head(q, k, v):
    """softmax(q @ kᵀ / sqrt(width)) @ v, for each head."""
    scores = tf.matmul(q, k, transpose_b=True) * (q.shape[-1] ** -0.5)
    return tf.matmul(tf.nn.softmax(scores), v)


@Composite(
    "BenchLstm",
    inputs=["x: float", "kernel: float", "recurrent: float", "bias: float"],
    outputs=["y: float"],
)
def lstm(x, kernel, recurrent, bias):
    """Long short-term memory, as benchmarks/works/recurrent.py has it."""
    zeros = tf.zeros([tf.shape(x)[0], tf.shape(recurrent)[0]])
    return sequences.lstm(x, zeros, zeros, kernel, recurrent, bias, [], return_sequences=True)[0]


@Composite(
    "BenchGru",
    inputs=["x: float", "kernel: float", "recurrent: float", "bias: float"],
    outputs=["y: float"],
)
def gru(x, kernel, recurrent, bias):
    """Gated recurrent unit, as benchmarks/works/recurrent.py has it."""
    zeros = tf.zeros([tf.shape(x)[0], tf.shape(recurrent)[0]])
    return sequences.gru(x, zeros, kernel, recurrent, bias, [], return_sequences=True)[0]
