"""A training step under tf.function: layers of ours, forward and backward, and plain ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

import composite
from benchmarks.rows import Row, emit
from benchmarks.timing import QUICK, Timings, interleave
from examples.digits.ops import fused_fully_connected

Layer = Callable[..., Any]

OURS, PLAIN, EXPANDED = "kernels", "TensorFlow", "expansions"

# widths, batch
MODELS = {
    "digits, 64-256-128-10, batch 64": ((64, 256, 128, 10), 64),
    "dense, 3 x 512, batch 32": ((512, 512, 512, 512), 32),
    "dense, 3 x 512, batch 64": ((512, 512, 512, 512), 64),
    "dense, 3 x 512, batch 256": ((512, 512, 512, 512), 256),
}


def rows() -> Iterator[Row]:
    """How many times as long TensorFlow's step takes, for each model."""
    for name, (widths, batch) in itertools.islice(MODELS.items(), 2 if QUICK else None):
        timings = time_steps(widths, batch)
        times = ", ".join(f"{w} {timings.microseconds(w).median:.4g}" for w in timings.seconds)
        yield Row.of(
            f"training step of {name}: {PLAIN} / {OURS}",
            timings.ratio(PLAIN, OURS),
            "x",
            at_least=1.0,
            detail=f"us: {times}",
        )


def time_steps(widths: tuple[int, ...], batch: int, seconds: float = 6.0) -> Timings:
    """Forward, loss, gradients and gradient descent, a step of each way in turns."""
    ways = {}
    for name, layer in ((OURS, fused_fully_connected), (PLAIN, plain), (EXPANDED, expanded)):
        ways[name] = _step(layer, widths, batch)
        for _ in range(3):
            ways[name]()
        composite.wait()
    return interleave(ways, seconds=seconds)


def plain(x: Any, w: Any, b: Any, act: str = "") -> Any:
    """The layer as TensorFlow's own ops."""
    y = tf.nn.bias_add(tf.matmul(x, w, transpose_b=True), b)
    return tf.nn.relu(y) if act == "RELU" else y


def expanded(x: Any, w: Any, b: Any, act: str = "") -> Any:
    """The op without its kernels."""
    with composite.options(backend="tf"):
        return fused_fully_connected(x, w, b, act=act)


def _step(layer: Layer, widths: tuple[int, ...], batch: int) -> Callable[[], Any]:
    random = tf.random.Generator.from_seed(1)
    x = random.normal([batch, widths[0]])
    labels = random.uniform([batch], 0, widths[-1], tf.int32)
    weights = [
        (tf.Variable(random.normal([out, fan]) / fan**0.5), tf.Variable(tf.zeros([out])))
        for fan, out in itertools.pairwise(widths)
    ]
    flat = [v for pair in weights for v in pair]

    @tf.function
    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            y = x
            for w, b in weights[:-1]:
                y = layer(y, w, b, act="RELU")
            logits = layer(y, *weights[-1])
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = tf.reduce_mean(each)
        for variable, gradient in zip(flat, tape.gradient(loss, flat), strict=True):
            variable.assign_sub(1e-3 * gradient)
        return loss

    return lambda: step(x, labels)


if __name__ == "__main__":
    emit(rows())
