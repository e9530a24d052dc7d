"""Functions of a batch and of weights, drawn with their sizes. No row reads another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

Array = np.ndarray[Any, Any]


class Body(NamedTuple):
    """A function of ``[n, *row]`` and of weights, which gives ``[n, ...]``."""

    function: Callable[..., Any]
    row: tuple[int, ...]
    weights: tuple[Array, ...] = ()


def _weights(rng: np.random.Generator, *shape: int) -> Array:
    scale = np.sqrt(max(1, int(np.prod(shape[:-1]))))
    return (rng.standard_normal(shape) / scale).astype(np.float32)


def _size(rng: np.random.Generator, most: int) -> int:
    """A size up to ``most``, small ones and those around whole vectors as often as others."""
    near = [n for n in (1, 3, 8, 15, 16, 17, 31, 32, 33, 64, 257, 512, 513, 600) if n <= most]
    return int(rng.choice(near)) if rng.random() < 0.6 else int(rng.integers(1, most + 1))


def dense(rng: np.random.Generator) -> Body:
    """A dense layer with an epilogue."""
    depth, columns = _size(rng, 700), _size(rng, 150)
    weights = _weights(rng, depth, columns), _weights(rng, columns)
    return Body(lambda x, w, b: tf.nn.gelu(x @ w + b) * 1.5, (depth,), weights)


def transposed(rng: np.random.Generator) -> Body:
    """A product with a matrix that is stored transposed, and a bias that is computed."""
    depth, columns = _size(rng, 700), _size(rng, 150)
    weights = _weights(rng, columns, depth), _weights(rng, columns)

    def function(x: Any, w: Any, b: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, w, transpose_b=True) + tf.exp(b))

    return Body(function, (depth,), weights)


def softmax(rng: np.random.Generator) -> Body:
    """A softmax."""
    return Body(lambda x: tf.nn.softmax(x * 1.3), (_size(rng, 600),))


def layer_norm(rng: np.random.Generator) -> Body:
    """A layer norm."""
    width = _size(rng, 600)

    def function(x: Any, scale: Any, offset: Any) -> Any:
        mean = tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale + offset

    return Body(function, (width,), (_weights(rng, width), _weights(rng, width)))


def attention(rng: np.random.Generator) -> Body:
    """Attention of two heads with its projections."""
    steps, width = _size(rng, 70), 2 * _size(rng, 12)

    def heads(x: Any, w: Any) -> Any:
        return tf.transpose(tf.reshape(x @ w, [tf.shape(x)[0], -1, 2, width // 2]), [0, 2, 1, 3])

    def function(x: Any, q: Any, k: Any, v: Any) -> Any:
        scores = tf.matmul(heads(x, q), heads(x, k), transpose_b=True) / 3.0
        mixed = tf.transpose(tf.nn.softmax(scores) @ heads(x, v), [0, 2, 1, 3])
        return x + tf.reshape(mixed, tf.shape(x))

    return Body(function, (steps, width), tuple(_weights(rng, width, width) for _ in range(3)))


def pooled(rng: np.random.Generator) -> Body:
    """Means over steps, and a norm over all but the batch."""

    def function(x: Any) -> Any:
        mean = tf.reduce_mean(tf.tanh(x), 1)
        return mean / tf.sqrt(tf.reduce_sum(x * x, [1, 2]))[:, None]

    return Body(function, (_size(rng, 70), _size(rng, 40)))


def convolution(rng: np.random.Generator) -> Body:
    """A convolution over images."""
    side, channels, filters = 3 + _size(rng, 8), _size(rng, 33), _size(rng, 40)
    weights = _weights(rng, 3, 3, channels, filters), _weights(rng, filters)

    def function(x: Any, w: Any, b: Any) -> Any:
        return tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME") + b)

    return Body(function, (side, side, channels), weights)


def by_channel(rng: np.random.Generator) -> Body:
    """A convolution channel by channel, pooled."""
    side, channels = 3 + _size(rng, 8), _size(rng, 40)

    def function(x: Any, w: Any) -> Any:
        made = tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")
        return tf.nn.avg_pool2d(made, 2, 2, "SAME")

    return Body(function, (side, side, channels), (_weights(rng, 3, 3, channels, 1),))


def functions(rng: np.random.Generator) -> Body:
    """Elementary functions, sums with products among them, and a running sum."""

    def function(x: Any) -> Any:
        y = tf.math.erf(x) * tf.sigmoid(x) + tf.math.log1p(tf.abs(x)) - x * tf.tanh(x)
        return tf.cumsum(y, 1) + tf.sin(x * 4e4) * tf.nn.selu(x)

    return Body(function, (_size(rng, 300),))


def lstm(rng: np.random.Generator) -> Body:
    """The loop of an LSTM."""
    steps, width, units = 1 + _size(rng, 8), _size(rng, 20), _size(rng, 24)
    weights = (
        _weights(rng, width, 4 * units),
        _weights(rng, units, 4 * units),
        _weights(rng, 4 * units),
    )

    def function(x: Any, w: Any, u: Any, b: Any) -> Any:
        h = c = tf.zeros([tf.shape(x)[0], units])
        for t in tf.range(steps):
            i, f, g, o = tf.split(x[:, t] @ w + h @ u + b, 4, 1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
        return h

    return Body(function, (steps, width), weights)


def gradient(rng: np.random.Generator) -> Body:
    """The gradient of a dense layer with respect to its input."""
    depth, columns = _size(rng, 300), _size(rng, 150)
    weights = _weights(rng, depth, columns), _weights(rng, columns)

    def function(x: Any, w: Any, b: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.gelu(x @ w + b)
        return tape.gradient(y, x)

    return Body(function, (depth,), weights)


BODIES: Mapping[str, Callable[[np.random.Generator], Body]] = {
    one.__name__: one
    for one in (
        dense,
        transposed,
        softmax,
        layer_norm,
        attention,
        pooled,
        convolution,
        by_channel,
        functions,
        lstm,
        gradient,
    )
}
