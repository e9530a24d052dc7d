"""A transformer of one block over these ops, or over their Python functions, and its training.

It reads sequences whose second half repeats the first, and learns to say the next token of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from composite import CompositeOp
from examples.blocks import ops

Way = Callable[[Any], Callable[..., Any]]

TOKENS, HALF, WIDTH, HEADS = 16, 8, 32, 2
RATE = 0.1


def composites(op: CompositeOp) -> Callable[..., Any]:
    """The op itself: one node a call."""
    return op


def plain(op: Any) -> Callable[..., Any]:
    """The op's Python function, with the defaults of the attributes: TensorFlow's own ops."""
    defaults = {attr.name: attr.default for attr in op.schema.attrs}
    return lambda *inputs, **attrs: op.python_function(*inputs, **(defaults | attrs))


class Transformer(tf.Module):
    """Embeddings, one block of causal attention and an MLP, logits of the next token."""

    def __init__(self, way: Way, seed: int = 0) -> None:
        super().__init__()
        self._way = way
        glorot = keras.initializers.GlorotUniform(seed)  # the seed alone decides each draw

        def weights(*shape: int) -> tf.Variable:
            return tf.Variable(glorot(shape))

        def constant(value: float, size: int) -> tf.Variable:
            return tf.Variable(tf.fill([size], value))

        self.embedding = weights(TOKENS, WIDTH)
        self.positions = weights(2 * HALF - 1, WIDTH)
        self.norm = constant(1.0, WIDTH), constant(0.0, WIDTH)
        self.projections = [weights(WIDTH, WIDTH) for _ in range(4)]  # query, key, value, output
        self.bias = constant(0.0, WIDTH)
        self.scales = constant(1.0, WIDTH), constant(1.0, WIDTH)
        self.mlp = (
            weights(WIDTH, 2 * WIDTH),
            constant(0.0, 2 * WIDTH),
            weights(2 * WIDTH, WIDTH),
            constant(0.0, WIDTH),
        )

    def logits(self, tokens: Any, seed: Any, rate: float = 0.0) -> Any:
        """[batch, length] of tokens -> [batch, length, TOKENS]; `rate` of the elements dropped."""
        x = tf.gather(self.embedding, tokens) + self.positions[: tokens.shape[1]]
        x = self._attend(x, seed, rate)
        rows = tf.reshape(self._way(ops.fused_rms_norm)(x, self.scales[0]), [-1, WIDTH])
        x += tf.reshape(self._way(ops.fused_gelu_mlp)(rows, *self.mlp), tf.shape(x))
        x = self._way(ops.fused_rms_norm)(x, self.scales[1])
        return tf.matmul(x, self.embedding, transpose_b=True)

    def _attend(self, x: Any, seed: Any, rate: float) -> Any:
        normal = self._way(ops.fused_layer_norm)(x, *self.norm)
        *inner, output = self.projections
        query, key, value = (_heads(tf.matmul(normal, weights)) for weights in inner)
        length = x.shape[1]
        causal = tf.linalg.band_part(tf.ones([length, length], tf.bool), -1, 0)
        seen = _merged(self._way(ops.fused_attention)(query, key, value, causal))
        end = self._way(ops.fused_bias_dropout_residual)
        return end(tf.matmul(seen, output), self.bias, x, seed, rate=rate)

    def loss(self, tokens: Any, seed: Any) -> Any:
        """The mean cross entropy of the tokens that the first half decides."""
        logits = self.logits(tokens[:, :-1], seed, RATE)[:, HALF - 1 :]
        losses = self._way(ops.fused_sparse_cross_entropy)(logits, tokens[:, HALF:])
        return tf.reduce_mean(losses)


def _heads(x: Any) -> Any:
    """[batch, length, WIDTH] -> [batch, HEADS, length, WIDTH / HEADS]."""
    return tf.transpose(tf.reshape(x, [-1, x.shape[1], HEADS, WIDTH // HEADS]), [0, 2, 1, 3])


def _merged(x: Any) -> Any:
    return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [-1, x.shape[2], WIDTH])


def sequences(count: int, seed: int) -> npt.NDArray[np.int32]:
    """[count, 2 * HALF] tokens; the second half of each repeats its first."""
    half = np.random.default_rng(seed).integers(0, TOKENS, (count, HALF), np.int32)
    return np.concatenate([half, half], axis=1)


def train(model: Transformer, steps: int, batch: int = 64) -> list[float]:
    """Adam on new sequences in each step; returns the losses."""
    optimizer = keras.optimizers.Adam(1e-2)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(tokens: Any, seed: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = model.loss(tokens, seed)
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return [
        float(step(tf.constant(sequences(batch, i)), tf.constant([0, i]))) for i in range(steps)
    ]


def accuracy(model: Transformer, count: int = 500) -> float:
    """The share of tokens of second halves that the model says right, in sequences new to it."""
    tokens = sequences(count, seed=10**6)
    said = tf.argmax(model.logits(tf.constant(tokens[:, :-1]), [0, 0]), -1).numpy()
    return float(np.mean(said[:, HALF - 1 :] == tokens[:, HALF:]))
