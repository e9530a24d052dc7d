"""A training step under tf.function: layers of ours, forward and backward, and plain ones.

Of dense layers beside TensorFlow's ops, ours with and without regions, which take what is behind
the gradients; of a recurrent layer beside Keras, with and without XLA.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

import composite
from benchmarks.rows import Row, emit
from benchmarks.timing import QUICK, Timings, interleave
from benchmarks.warm import in_regions, warm
from examples.digits.ops import fused_fully_connected
from examples.lstm import layer as lstm

Layer = Callable[..., Any]

OURS, PLAIN, EXPANDED, REGIONS = "kernels", "TensorFlow", "expansions", "kernels in regions"
KERAS, XLA = "Keras", "Keras with XLA"

# widths, batch
MODELS = {
    "digits, 64-256-128-10, batch 64": ((64, 256, 128, 10), 64),
    "dense, 3 x 512, batch 32": ((512, 512, 512, 512), 32),
    "dense, 3 x 512, batch 64": ((512, 512, 512, 512), 64),
    "dense, 3 x 512, batch 256": ((512, 512, 512, 512), 256),
}

# batch, steps, inputs, units
RECURRENT = {
    "LSTM, batch 64, 8 steps of 8, 64 units": (64, 8, 8, 64),
    "LSTM, batch 32, 28 steps of 28, 128 units": (32, 28, 28, 128),
    "LSTM, batch 32, 50 steps of 64, 256 units": (32, 50, 64, 256),
}


def rows() -> Iterator[Row]:
    """How many times as long the step of others takes, for each model."""
    yield from _dense_rows()
    for name, sizes in itertools.islice(RECURRENT.items(), 1 if QUICK else None):
        timings = time_recurrent_steps(*sizes)
        for other, bound in ((KERAS, 1.5), (XLA, 1.0)):
            yield Row.of(
                f"training step of {name}: {other} / {OURS}",
                timings.ratio(other, OURS),
                "x",
                at_least=bound,
                detail=_times(timings),
            )


def _times(timings: Timings) -> str:
    return "us: " + ", ".join(f"{w} {timings.microseconds(w).median:.4g}" for w in timings.seconds)


def _dense_rows() -> Iterator[Row]:
    for name, (widths, batch) in itertools.islice(MODELS.items(), 2 if QUICK else None):
        timings = time_steps(widths, batch)
        for mine in (OURS, REGIONS):
            yield Row.of(
                f"training step of {name}: {PLAIN} / {mine}",
                timings.ratio(PLAIN, mine),
                "x",
                at_least=1.0,
                detail=_times(timings),
            )


def time_steps(widths: tuple[int, ...], batch: int, seconds: float = 6.0) -> Timings:
    """Forward, loss, gradients and gradient descent, a step of each way in turns."""
    layers = ((OURS, fused_fully_connected), (PLAIN, plain), (EXPANDED, expanded))
    ways = {name: _dense_step(layer, widths, batch) for name, layer in layers}
    ways[REGIONS] = in_regions(_dense_step(fused_fully_connected, widths, batch))
    return interleave(warm(ways), seconds=seconds)


def time_recurrent_steps(
    batch: int, steps: int, inputs: int, units: int, seconds: float = 12.0
) -> Timings:
    """The same of a recurrent layer and a dense one that reads all its outputs."""
    sizes = (batch, steps, inputs)
    made = (
        (OURS, lstm.LSTM, False),
        (KERAS, keras.layers.LSTM, False),
        (XLA, keras.layers.LSTM, True),
    )
    ways = {
        name: _recurrent_step(one(units, return_sequences=True, use_cudnn=False), sizes, xla)
        for name, one, xla in made
    }
    return interleave(warm(ways), seconds=seconds)


def plain(x: Any, w: Any, b: Any, act: str = "") -> Any:
    """The layer as TensorFlow's own ops."""
    y = tf.nn.bias_add(tf.matmul(x, w, transpose_b=True), b)
    return tf.nn.relu(y) if act == "RELU" else y


def expanded(x: Any, w: Any, b: Any, act: str = "") -> Any:
    """The op without its kernels."""
    with composite.options(backend="tf"):
        return fused_fully_connected(x, w, b, act=act)


def _dense_step(layer: Layer, widths: tuple[int, ...], batch: int) -> Callable[[], Any]:
    random = tf.random.Generator.from_seed(1)
    x = random.normal([batch, widths[0]])
    weights = [
        (tf.Variable(random.normal([out, fan]) / fan**0.5), tf.Variable(tf.zeros([out])))
        for fan, out in itertools.pairwise(widths)
    ]

    def model(x: Any) -> Any:
        for w, b in weights[:-1]:
            x = layer(x, w, b, act="RELU")
        return layer(x, *weights[-1])

    return _step(model, [v for pair in weights for v in pair], x, widths[-1])


def _recurrent_step(layer: Any, sizes: tuple[int, int, int], xla: bool) -> Callable[[], Any]:
    x = tf.random.Generator.from_seed(1).normal(sizes)
    classes = 10
    layers = [keras.Input(sizes[1:]), layer, keras.layers.Flatten(), keras.layers.Dense(classes)]
    model = keras.Sequential(layers)
    weights = [weight.value for weight in model.trainable_weights]
    return _step(lambda x: model(x, training=True), weights, x, classes, xla=xla)


def _step(
    model: Callable[[Any], Any], weights: list[Any], x: Any, classes: int, *, xla: bool = False
) -> Callable[[], Any]:
    """Gradient descent on the weights of a model that gives logits."""
    labels = tf.random.Generator.from_seed(2).uniform(x.shape[:1], 0, classes, tf.int32)

    @tf.function(jit_compile=xla)
    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model(x)
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = tf.reduce_mean(each)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(1e-3 * gradient)
        return loss

    return lambda: step(x, labels)


if __name__ == "__main__":
    emit(rows())
