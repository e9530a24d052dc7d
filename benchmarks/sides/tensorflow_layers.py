"""A program in TensorFlow: the layers as a user writes them, and a stack of them as a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from benchmarks.sides import tensorflow_recurrent
from benchmarks.sides.side import Way
from benchmarks.works.layers import LAYER_NORM_EPSILON, RMS_NORM_EPSILON
from benchmarks.works.work import Program

Layer = Callable[..., Any]


def _layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, LAYER_NORM_EPSILON)


def _rms_norm(x: Any, gamma: Any) -> Any:
    mean = tf.reduce_mean(tf.square(x), -1, keepdims=True)
    return x * tf.math.rsqrt(mean + RMS_NORM_EPSILON) * gamma


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = tf.matmul(q, k, transpose_b=True) * q.shape[-1] ** -0.5
    return tf.matmul(tf.nn.softmax(scores), v)


PLAIN: dict[str, Layer] = {
    "dense": lambda x, w, b: tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w, transpose_b=True), b)),
    "matmul": tf.matmul,
    "softmax": tf.nn.softmax,
    "layer norm": _layer_norm,
    "RMS norm": _rms_norm,
    "gated": lambda x, g, b: tf.tanh(x * g + b) * tf.sigmoid(x) + x,
    "GELU": lambda x: tf.nn.gelu(x, approximate=True),
    "conv 3x3": lambda x, w, b: tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b)),
    "attention": _attention,
    "LSTM": tensorflow_recurrent.lstm,
    "GRU": tensorflow_recurrent.gru,
}


def eager(program: Program, layer: Layer) -> Way:
    """The layers called from Python, one by one."""
    x = tf.constant(program.x)
    weights = [tf.constant(weight) for weight in program.weights]
    return _way(lambda: _stack(program, layer, x, weights))


def function(program: Program, layer: Layer, *, jit_compile: bool | None = None) -> Way:
    """The layers as one tf.function, called as an op.

    Constants are Const nodes of its graph: what it captures would be inputs in disguise.
    """
    x = tf.constant(program.x)
    inputs = [] if program.constant else [tf.constant(weight) for weight in program.weights]

    def run(x: Any, *inputs: Any) -> Any:
        weights = inputs or [tf.constant(weight) for weight in program.weights]
        return _stack(program, layer, x, weights)

    compiled = tf.function(run, jit_compile=jit_compile, autograph=False)
    return _way(as_op(compiled, [x, *inputs]))


def as_op(function: Any, arguments: list[Any]) -> Callable[[], Any]:
    """A tf.function of one result as the op that calls it, without tf.function's own Python.

    That takes longer than a stack of small layers. The nodes of the function run one by one, on the
    thread of the caller: so not for functions in which several may run at once.
    """

    def outer(*arguments: Any) -> Any:  # the node that calls `function` is what XLA is told by
        return function(*arguments)

    concrete = tf.function(outer, autograph=False).get_concrete_function(*arguments)
    name, dtypes = concrete.name.decode(), [output.dtype for output in concrete.outputs]

    def call() -> Any:  # `concrete` must live as long
        assert concrete is not None
        (result,) = tf.raw_ops.PartitionedCall(args=arguments, Tout=dtypes, f=name)
        return result

    return call


def _stack(program: Program, layer: Layer, x: Any, weights: Any) -> Any:
    for step in program.steps:
        x = layer(x, *(weights[i] for i in step))
    return x


def _way(run: Callable[[], Any]) -> Way:
    return Way(run, lambda: run().numpy())
