"""Ops that only a benchmark needs."""

import tensorflow as tf

from composite import Composite

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


@Composite("BenchSoftmax", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def row_softmax(x):
    """Softmax over the last axis."""
    e = tf.exp(x - tf.reduce_max(x, -1, keepdims=True))
    return e / tf.reduce_sum(e, -1, keepdims=True)


@Composite(
    "BenchLayerNorm",
    inputs=["x: T", "gamma: T", "beta: T"],
    attrs=["epsilon: float = 1e-5"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def layer_norm(x, gamma, beta, epsilon):
    """Layer normalization over the last axis."""
    centred = x - tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(centred * centred, -1, keepdims=True)
    return centred * tf.math.rsqrt(variance + epsilon) * gamma + beta


@Composite(
    "BenchRmsNorm",
    inputs=["x: T", "gamma: T"],
    attrs=["epsilon: float = 1e-6"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def rms_norm(x, gamma, epsilon):
    """Normalization by the root mean square of the last axis."""
    return x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + epsilon) * gamma


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
    "BenchConvRelu",
    inputs=["x: T", "filter_: T", "bias: T"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def conv_relu(x, filter_, bias):
    """A convolution of the same size, NHWC, with bias and ReLU."""
    y = tf.nn.conv2d(x, filter_, strides=1, padding="SAME")
    return tf.nn.relu(tf.nn.bias_add(y, bias))


@Composite(
    "BenchAttention", inputs=["q: T", "k: T", "v: T"], derived_attrs=FLOATS, outputs=["y: T"]
)
def attention_head(q, k, v):
    """softmax(q @ kᵀ / sqrt(width)) @ v, for each head."""
    scores = tf.matmul(q, k, transpose_b=True) * (q.shape[-1] ** -0.5)
    return tf.matmul(tf.nn.softmax(scores), v)
