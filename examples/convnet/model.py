"""The network, over the composites or over tf.nn, and a step of its training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from examples.convnet.ops import fused_conv2d, fused_max_pool2d
from examples.digits.model import Digits
from examples.digits.ops import fused_fully_connected


@dataclass(frozen=True)
class Layers:
    """What the network is made of.

    conv(x, filter, bias, act): 3 x 3, the size kept; pool(x): halves height and width;
    dense(x, filter, bias, act): one row of the filter a unit.
    """

    conv: Callable[[Any, Any, Any, str], Any]
    pool: Callable[[Any], Any]
    dense: Callable[[Any, Any, Any, str], Any]


_ACTIVATIONS = {"": tf.identity, "RELU": tf.nn.relu, "RELU6": tf.nn.relu6, "TANH": tf.tanh}

COMPOSITES = Layers(
    conv=lambda x, w, b, act: fused_conv2d(x, w, b, act=act),
    pool=lambda x: fused_max_pool2d(x, filter_w=2, filter_h=2, stride_w=2, stride_h=2),
    dense=lambda x, w, b, act: fused_fully_connected(x, w, b, act=act),
)
PLAIN = Layers(
    conv=lambda x, w, b, act: _ACTIVATIONS[act](tf.nn.conv2d(x, w, 1, "SAME") + b),
    pool=lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"),
    dense=lambda x, w, b, act: _ACTIVATIONS[act](tf.matmul(x, w, transpose_b=True) + b),
)


class ConvNet(tf.Module):
    """8 x 8 pixels -> 16 filters, halved -> 32 filters, halved -> 64 units -> 10 logits."""

    def __init__(self, layers: Layers, seed: int = 0) -> None:
        super().__init__()
        self._layers = layers
        glorot = keras.initializers.GlorotUniform(seed)  # the seed alone decides each draw
        shapes = ((3, 3, 1, 16), (3, 3, 16, 32), (64, 128), (10, 64))
        self.filters = [tf.Variable(glorot(shape)) for shape in shapes]
        self.biases = [tf.Variable(tf.zeros(n)) for n in (16, 32, 64, 10)]

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32)])
    def logits(self, pixels: Any) -> Any:
        """[batch, 64] in 0..1 -> [batch, 10]."""
        (w0, w1, w2, w3), (b0, b1, b2, b3) = self.filters, self.biases
        x = tf.reshape(pixels, [-1, 8, 8, 1])
        x = self._layers.pool(self._layers.conv(x, w0, b0, "RELU"))
        x = self._layers.pool(self._layers.conv(x, w1, b1, "RELU6"))
        x = self._layers.dense(tf.reshape(x, [-1, 128]), w2, b2, "TANH")
        return self._layers.dense(x, w3, b3, "")


def train(network: ConvNet, digits: Digits, steps: int, batch: int = 64) -> list[float]:
    """Adam on consecutive batches; returns the loss of each step."""
    optimizer = keras.optimizers.Adam(3e-3)
    optimizer.build(network.trainable_variables)

    @tf.function
    def step(pixels: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, network.logits(pixels))
            loss = tf.reduce_mean(losses)
        variables = network.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    losses = []
    for i in range(steps):
        at = i * batch % (len(digits.x_train) - batch)
        pixels, labels = digits.x_train[at : at + batch], digits.y_train[at : at + batch]
        losses.append(float(step(tf.constant(pixels), tf.constant(labels))))
    return losses


def accuracy(logits: Any, labels: Any) -> float:
    """The share of rows whose largest logit is the label's."""
    return float(tf.reduce_mean(tf.cast(tf.argmax(logits, 1) == labels, tf.float32)))
