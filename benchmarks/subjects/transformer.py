"""A small Keras transformer: a step of `fit`, and inference, with ops of ours in its layers.

Both models have the same layers and weights. Layer normalization, the core of attention and the
two dense layers with a GELU between them are Keras's own in one, and one composite op each in the
other. In float32 and in mixed bfloat16, with and without XLA; ours with and without regions, which
take the other layers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from benchmarks.rows import Row, emit
from benchmarks.timing import QUICK, Timings, interleave
from benchmarks.warm import in_regions, warm
from examples.blocks.ops import fused_gelu_mlp
from examples.gallery.attention import attention
from examples.gallery.layer_norm import layer_norm

OURS, REGIONS, KERAS, XLA = "ours", "ours in regions", "Keras", "Keras with XLA"
POLICIES = {"f32": "float32", "mixed bf16": "mixed_bfloat16"}
# How many times as long as ours in regions the best of Keras, XLA included, is to take for a step.
BOUNDS = {"f32": 1.2, "mixed bf16": 1.1}
LAYERS, TOKENS = 2, 256


class Size(NamedTuple):
    """What is read, and how wide the model is."""

    batch: int
    length: int
    width: int
    heads: int


SIZES = (Size(32, 64, 128, 4), Size(8, 64, 512, 8))


class OurNorm(keras.layers.LayerNormalization):
    """Layer normalization as one LayerNorm node."""

    def call(self, inputs: Any) -> Any:
        """[..., width] -> [..., width]."""
        gamma, beta = (keras.ops.cast(w, inputs.dtype) for w in (self.gamma, self.beta))
        return layer_norm(inputs, gamma, beta, epsilon=self.epsilon)


class Attention(keras.layers.Layer):
    """Causal self attention; `core` maps query, key, value [batch, length, heads, n] to another."""

    def __init__(self, size: Size, core: Callable[..., Any]) -> None:
        super().__init__()
        self._size, self._core = size, core
        self._inner = [keras.layers.Dense(size.width) for _ in range(3)]
        self._output = keras.layers.Dense(size.width)

    def call(self, x: Any) -> Any:
        """[batch, length, width] -> [batch, length, width]."""
        _, length, width, heads = self._size
        split = (-1, length, heads, width // heads)
        query, key, value = (keras.ops.reshape(layer(x), split) for layer in self._inner)
        seen = self._core(query, key, value)
        return self._output(keras.ops.reshape(seen, (-1, length, width)))


class Mlp(keras.layers.Layer):
    """Two dense layers with a GELU between them, four times as wide."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.wide = keras.layers.Dense(4 * width, "gelu")
        self.narrow = keras.layers.Dense(width)

    def build(self, shape: Any) -> None:
        """Makes the weights of both, which a layer of ours does not call."""
        self.wide.build(shape)
        self.narrow.build((*shape[:-1], self.wide.units))

    def call(self, x: Any) -> Any:
        """[batch, length, width] -> [batch, length, width]."""
        return self.narrow(self.wide(x))


class OurMlp(Mlp):
    """Both as one FusedGeluMlp node."""

    def call(self, x: Any) -> Any:
        """[batch, length, width] -> [batch, length, width]."""
        layers = (self.wide, self.narrow)
        weights = [keras.ops.convert_to_tensor(w) for one in layers for w in (one.kernel, one.bias)]
        rows = fused_gelu_mlp(tf.reshape(x, [-1, x.shape[-1]]), *weights)
        return tf.reshape(rows, tf.shape(x))


class Embedding(keras.layers.Layer):
    """Of tokens and of their positions."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self._tokens = keras.layers.Embedding(TOKENS, size.width)
        self._positions = self.add_weight(shape=(size.length, size.width))

    def call(self, tokens: Any) -> Any:
        """[batch, length] -> [batch, length, width]."""
        return self._tokens(tokens) + keras.ops.convert_to_tensor(self._positions)


def keras_core(query: Any, key: Any, value: Any) -> Any:
    """Keras's own attention."""
    return keras.ops.dot_product_attention(query, key, value, is_causal=True)


def our_core(query: Any, key: Any, value: Any) -> Any:
    """One ScaledDotProductAttention node."""
    return attention(query, key, value, [], causal=True)


def transformer(size: Size, policy: str, *, ours: bool) -> keras.Model:
    """The model, from tokens [batch, length] to logits of the next, under a policy of dtypes."""
    norm = OurNorm if ours else keras.layers.LayerNormalization
    mlp, core = (OurMlp, our_core) if ours else (Mlp, keras_core)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        keras.utils.set_random_seed(1)
        tokens = keras.Input((size.length,), dtype="int32")
        x = Embedding(size)(tokens)
        for _ in range(LAYERS):
            x = x + Attention(size, core)(norm(epsilon=1e-5)(x))
            x = x + mlp(size.width)(norm(epsilon=1e-5)(x))
        logits = keras.layers.Dense(TOKENS, dtype="float32")(norm(epsilon=1e-5)(x))
        return keras.Model(tokens, logits)
    finally:
        keras.config.set_dtype_policy(before)


def _fit_step(model: keras.Model, size: Size, *, xla: bool) -> Callable[[], Any]:
    """One step as `fit` makes it."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-4), loss, jit_compile=xla)
    tokens = _tokens(size)
    data = tf.data.Dataset.from_tensors((tokens, np.roll(tokens, -1, 1))).repeat()
    batches = iter(data)
    model.make_train_function()
    return lambda: model.train_function(batches)


def _inference(model: keras.Model, size: Size, *, xla: bool) -> Callable[[], Any]:
    tokens = tf.constant(_tokens(size))
    function = tf.function(lambda x: model(x, training=False), jit_compile=xla)
    return lambda: function(tokens)


def _tokens(size: Size) -> Any:
    return np.random.default_rng(0).integers(0, TOKENS, (size.batch, size.length), np.int32)


def time_models(size: Size, policy: str, made: Callable[..., Any], seconds: float) -> Timings:
    """Ours, Keras, and Keras with XLA, in turns; `made` makes a step of a model."""

    def step(*, ours: bool, xla: bool = False) -> Callable[[], Any]:
        return made(transformer(size, policy, ours=ours), size, xla=xla)

    ways = {
        OURS: step(ours=True),
        REGIONS: in_regions(step(ours=True)),
        KERAS: step(ours=False),
        XLA: step(ours=False, xla=True),
    }
    return interleave(warm(ways), seconds=seconds)


def rows() -> Iterator[Row]:
    """Keras, with and without XLA, over ours, for each size, policy, and step or inference."""
    for size, (label, policy) in itertools.product(SIZES[: 1 if QUICK else None], POLICIES.items()):
        for what, made in (("fit step", _fit_step), ("inference", _inference)):
            timings = time_models(size, policy, made, seconds=10)
            best = timings.fastest([KERAS, XLA])
            times = ", ".join(f"{w} {timings.microseconds(w).median:.4g}" for w in timings.seconds)
            for other, mine in itertools.product((KERAS, XLA), (OURS, REGIONS)):
                is_bound = (other, mine, what) == (best, REGIONS, "fit step")
                yield Row.of(
                    f"transformer, width {size.width}, {label}, {what}: {other} / {mine}",
                    timings.ratio(other, mine),
                    "x",
                    at_least=BOUNDS[label] if is_bound else None,
                    detail=f"us: {times}",
                )


if __name__ == "__main__":
    emit(rows())
