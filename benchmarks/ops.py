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


def _states(recurrent, steps):
    """A list for the states of a recurrent layer."""
    shape = tf.stack([-1, recurrent.shape[0]])
    return tf.raw_ops.TensorListReserve(
        element_shape=shape, num_elements=steps, element_dtype=tf.float32
    )


def _batch_major(states, recurrent):
    """The states of all steps, [batch, time, units]."""
    shape = tf.stack([-1, recurrent.shape[0]])
    stacked = tf.raw_ops.TensorListStack(
        input_handle=states, element_shape=shape, element_dtype=tf.float32, num_elements=-1
    )
    return tf.transpose(stacked, [1, 0, 2])


@Composite(
    "BenchLstm",
    inputs=["x: float", "kernel: float", "recurrent: float", "bias: float"],
    outputs=["y: float"],
)
def lstm(x, kernel, recurrent, bias):
    """Long short-term memory, as benchmarks/works/recurrent.py has it."""
    h = tf.zeros([tf.shape(x)[0], tf.shape(recurrent)[0]])
    c = tf.zeros_like(h)
    steps = tf.shape(x)[1]
    states = _states(recurrent, steps)
    for t in range(steps):
        gates = tf.matmul(x[:, t], kernel) + tf.matmul(h, recurrent) + bias
        i, f, g, o = tf.split(gates, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        states = tf.raw_ops.TensorListSetItem(input_handle=states, index=t, item=h)
    return _batch_major(states, recurrent)


@Composite(
    "BenchGru",
    inputs=["x: float", "kernel: float", "recurrent: float", "bias: float"],
    outputs=["y: float"],
)
def gru(x, kernel, recurrent, bias):
    """Gated recurrent unit, as benchmarks/works/recurrent.py has it."""
    h = tf.zeros([tf.shape(x)[0], tf.shape(recurrent)[0]])
    steps = tf.shape(x)[1]
    states = _states(recurrent, steps)
    for t in range(steps):
        x_z, x_r, x_h = tf.split(tf.matmul(x[:, t], kernel) + bias[0], 3, axis=1)
        h_z, h_r, h_h = tf.split(tf.matmul(h, recurrent) + bias[1], 3, axis=1)
        z = tf.sigmoid(x_z + h_z)
        h = z * h + (1 - z) * tf.tanh(x_h + tf.sigmoid(x_r + h_r) * h_h)
        states = tf.raw_ops.TensorListSetItem(input_handle=states, index=t, item=h)
    return _batch_major(states, recurrent)
