"""Ten small models with composites, for the three ways to save a model.

Each is built twice: over the ops, and over their bodies as TensorFlow's own ops. A model maps
float32 [rows, columns] to a float32 tensor; weights and inputs are the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from composite import quant
from examples.convnet.model import ConvNet, Layers
from examples.convnet.ops import fused_conv2d, fused_max_pool2d
from examples.digits.ops import fused_fully_connected
from examples.gallery.attention import attention
from examples.gallery.group_norm import group_norm
from examples.gallery.hard_swish import hard_swish
from examples.gallery.layer_norm import layer_norm
from examples.gallery.layer_norm_lstm import layer_norm_lstm_cell
from examples.gallery.mish import mish
from examples.gallery.rms_norm import rms_norm
from examples.gallery.rotary_embedding import rotary_embedding
from examples.gallery.separable_conv import separable_conv2d
from examples.gallery.swiglu import swiglu
from examples.gallery.top_k_gate import top_k_gate
from examples.lstm.layer import LSTM
from examples.quantized.ops import int8_dense

Use = Callable[[Any], Callable[..., Any]]  # an op as a model calls it: itself, or its body
Weights = Callable[..., Any]  # a variable of this shape


@dataclass(frozen=True)
class SavedWork:
    """A model and its input.

    `build` gives the model, a Keras model or a function of the input. `tolerance` is how far two
    ways may be apart, as a share of the largest number.
    """

    rows: int
    columns: int
    build: Callable[[Use, Weights], Any]
    tolerance: float = 1e-4

    def model(self, use: Use) -> Any:
        """What `composite.save` takes, its weights drawn."""
        random = np.random.default_rng(0)
        keras.utils.set_random_seed(0)

        def weights(*shape: int) -> Any:
            drawn = random.standard_normal(shape) / (shape[-2] ** 0.5 if len(shape) > 1 else 1)
            return tf.Variable(drawn.astype(np.float32))

        built = self.build(use, weights)
        return built if isinstance(built, keras.Model) else _Served(built, self.rows, self.columns)

    def input(self) -> Any:
        """An input, as an array."""
        random = np.random.default_rng(1)
        return random.standard_normal((self.rows, self.columns)).astype(np.float32)


class _Served(tf.Module):
    """A function of a matrix with a signature; its variables are those that the function has."""

    def __init__(self, function: Callable[[Any], Any], rows: int, columns: int) -> None:
        super().__init__()
        spec = tf.TensorSpec([rows, columns], name="x")
        self.serve = tf.function(function, input_signature=[spec], autograph=False)
        self.held = self.serve.get_concrete_function().variables


def _dense_stack(use: Use, weights: Weights) -> Any:
    layers = [(weights(256, 256), weights(256)) for _ in range(4)]

    def run(x: Any) -> Any:
        for w, b in layers:
            x = use(fused_fully_connected)(x, w, b, act="TANH")
        return x

    return run


def _convolutional(use: Use, weights: Weights) -> Any:
    del weights  # the network draws its own
    conv, pool, dense = map(use, (fused_conv2d, fused_max_pool2d, fused_fully_connected))
    network = ConvNet(
        Layers(
            conv=lambda x, w, b, act: conv(x, w, b, act=act),
            pool=lambda x: pool(x, filter_w=2, filter_h=2, stride_w=2, stride_h=2),
            dense=lambda x, w, b, act: dense(x, w, b, act=act),
        )
    )
    logits = type(network).logits.python_function
    return lambda x: logits(network, x)


def _encoder(use: Use, weights: Weights) -> Any:
    ones, zeros = tf.Variable(tf.ones(128)), tf.Variable(tf.zeros(128))
    q, k, v, o = (weights(128, 128) for _ in range(4))
    gate, up, down = weights(128, 256), weights(128, 256), weights(256, 128)

    def run(x: Any) -> Any:
        normal = use(layer_norm)(x, ones, zeros)
        heads = [tf.reshape(normal @ w, [4, 32, 4, 32]) for w in (q, k, v)]
        x += tf.reshape(use(attention)(*heads, []), [128, 128]) @ o
        return x + use(swiglu)(use(layer_norm)(x, ones, zeros), gate, up, down)

    return run


def _decoder(use: Use, weights: Weights) -> Any:
    ones = tf.Variable(tf.ones(128))
    q, k, v, o = (weights(128, 128) for _ in range(4))
    positions = tf.range(64)

    def run(x: Any) -> Any:
        normal = use(rms_norm)(x, ones)
        query, key, value = (tf.reshape(normal @ w, [2, 64, 4, 32]) for w in (q, k, v))
        query, key = (use(rotary_embedding)(one, positions) for one in (query, key))
        seen = use(attention)(query, key, value, [], causal=True)
        return use(rms_norm)(x + tf.reshape(seen, [128, 128]) @ o, ones)

    return run


def _recurrent(use: Use, weights: Weights) -> Any:
    kernel, recurrent, bias = weights(64, 512), weights(128, 512), weights(512)
    gammas, gamma, beta = weights(2, 512), weights(128), weights(128)

    def run(x: Any) -> Any:
        h = c = tf.zeros([32, 128])
        for step in tf.unstack(tf.reshape(x, [32, 8, 64]), axis=1):
            h, c = use(layer_norm_lstm_cell)(
                step, h, c, kernel, recurrent, gammas, bias, gamma, beta
            )
        return h

    return run


def _separable(use: Use, weights: Weights) -> Any:
    stem, depthwise = weights(3, 3, 3, 32), weights(3, 3, 32, 1)
    pointwise, bias = weights(1, 1, 32, 64), weights(64)
    gamma, beta = weights(64), weights(64)

    def run(x: Any) -> Any:
        x = tf.nn.conv2d(tf.reshape(x, [8, 32, 32, 3]), stem, 2, "SAME")
        x = use(separable_conv2d)(use(hard_swish)(x), depthwise, pointwise, bias)
        return tf.reduce_mean(use(group_norm)(x, gamma, beta, groups=8), [1, 2])

    return run


def _experts(use: Use, weights: Weights) -> Any:
    gate, first, second = weights(64, 8), weights(8, 64, 128), weights(8, 128, 64)

    def run(x: Any) -> Any:
        shares = use(top_k_gate)(x @ gate, k=2)
        hidden = use(mish)(tf.einsum("tn,enh->eth", x, first))
        return tf.einsum("te,eth,ehn->tn", shares, hidden, second)

    return run


def _integers(use: Use, weights: Weights) -> Any:
    drawn = [weights(256, 256) for _ in range(2)]
    scales = [quant.parameters(-tf.reduce_max(abs(w), 0), 0.0, symmetric=True)[0] for w in drawn]
    layers = [
        (tf.Variable(quant.quantize(w, s, axis=1, narrow=True)), tf.Variable(s))
        for w, s in zip(drawn, scales, strict=True)
    ]
    steps = {"x_scale": 1 / 32, "x_zero": 0, "y_scale": 1 / 32, "y_zero": 0}

    def run(x: Any) -> Any:
        q = quant.quantize(x, 1 / 32)
        for w, scale in layers:
            bias = tf.zeros([256], tf.int32)
            q = use(int8_dense)(q, w, scale, bias, **steps, activation="NONE")
        return quant.dequantize(q, 1 / 32)

    return run


def _keras_layers(use: Use, weights: Weights) -> Any:
    del weights

    def layer(op: Any, **variables: tuple[int, ...]) -> Any:
        made = op.as_layer(variables)
        made.op = use(op)
        return made

    return keras.Sequential(
        [
            keras.Input((128,), 128),
            keras.layers.Dense(256, activation=use(mish)),
            layer(layer_norm, gamma=(256,), beta=(256,)),
            keras.layers.Dense(256, activation=use(hard_swish)),
            layer(rms_norm, gamma=(256,)),
            keras.layers.Dense(10),
        ]
    )


def _keras_recurrent(use: Use, weights: Weights) -> Any:
    del weights
    # The op has no place in Keras' own layer: without composites, that is the model.
    of_composites = use(layer_norm) is layer_norm
    layer = LSTM if of_composites else keras.layers.LSTM
    inputs = keras.Input((20 * 32,), 16)
    x = layer(64)(keras.layers.Reshape((20, 32))(inputs))
    return keras.Model(inputs, keras.layers.Dense(10)(x))


SAVED: dict[str, SavedWork] = {
    "dense stack": SavedWork(64, 256, _dense_stack),
    "convolutional network": SavedWork(64, 64, _convolutional),
    "encoder block": SavedWork(128, 128, _encoder),
    "rotary decoder block": SavedWork(128, 128, _decoder),
    "layer-norm LSTM": SavedWork(32, 8 * 64, _recurrent),
    "separable convolutions": SavedWork(8, 32 * 32 * 3, _separable),
    "mixture of experts": SavedWork(128, 64, _experts),
    "int8 layers": SavedWork(64, 256, _integers, tolerance=0.01),  # a step of 128
    "Keras layers": SavedWork(128, 128, _keras_layers),
    "Keras LSTM": SavedWork(16, 20 * 32, _keras_recurrent),
}
