"""Recurrent layers in TensorFlow without us: a loop over the steps, Keras's layers, its LSTM op.

Weights are as benchmarks/works/recurrent.py says, which are those of Keras.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.works.recurrent import WEIGHTS
from benchmarks.works.work import Program

States = tuple[Any, ...]


def lstm(x: Any, kernel: Any, recurrent: Any, bias: Any) -> Any:
    """Long short-term memory, a loop of the ops of a step."""

    def step(x_t: Any, h: Any, c: Any) -> States:
        gates = tf.matmul(x_t, kernel) + tf.matmul(h, recurrent) + bias
        i, f, g, o = tf.split(gates, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    zeros = tf.zeros([x.shape[0], recurrent.shape[0]])
    return _loop(step, x, (zeros, zeros))


def gru(x: Any, kernel: Any, recurrent: Any, bias: Any) -> Any:
    """Gated recurrent unit, a loop of the ops of a step."""

    def step(x_t: Any, h: Any) -> States:
        x_z, x_r, x_h = tf.split(tf.matmul(x_t, kernel) + bias[0], 3, axis=1)
        h_z, h_r, h_h = tf.split(tf.matmul(h, recurrent) + bias[1], 3, axis=1)
        z = tf.sigmoid(x_z + h_z)
        return (z * h + (1 - z) * tf.tanh(x_h + tf.sigmoid(x_r + h_r) * h_h),)

    return _loop(step, x, (tf.zeros([x.shape[0], recurrent.shape[0]]),))


def _loop(step: Callable[..., States], x: Any, initial: States) -> Any:
    """The first of the states after each step, [batch, time, units]."""
    length = x.shape[1]
    made = tf.TensorArray(tf.float32, length, element_shape=initial[0].shape)

    def body(t: Any, made: Any, *states: Any) -> States:
        states = step(x[:, t], *states)
        return (t + 1, made.write(t, states[0]), *states)

    loop = (tf.constant(0), made, *initial)
    _, made, *_ = tf.while_loop(lambda t, *_: t < length, body, loop, maximum_iterations=length)
    return tf.transpose(made.stack(), [1, 0, 2])


def keras(kind: str) -> Callable[..., Any]:
    """The layer of Keras as a function of x and its weights."""

    def layer(x: Any, kernel: Any, recurrent: Any, bias: Any) -> Any:
        made = _keras_layer(kind, x.shape[-1], recurrent.shape[0])
        # The seed of a dropout that it does not have: a variable would be captured.
        unused = [tf.zeros(v.shape, v.dtype) for v in made.non_trainable_variables]
        y, _ = made.stateless_call([kernel, recurrent, bias], unused, x)
        return y

    return layer


@functools.cache
def _keras_layer(kind: str, features: int, units: int) -> Any:
    with tf.init_scope():  # its variables are not of the graph that is traced
        layer = getattr(tf.keras.layers, kind)(units, return_sequences=True)
        layer.build((None, None, features))
    return layer


def block_lstm(x: Any, kernels: Any, bias: Any) -> Any:
    """TensorFlow's op for a whole LSTM, which is time major; `kernels` as `for_block` has them."""
    units = bias.shape[0] // 4
    state, no_peephole = tf.zeros([x.shape[0], units]), tf.zeros([units])
    made = tf.raw_ops.BlockLSTMV2(
        seq_len_max=tf.constant(x.shape[1], tf.int64),
        x=tf.transpose(x, [1, 0, 2]),
        cs_prev=state,
        h_prev=state,
        w=kernels,
        wci=no_peephole,
        wcf=no_peephole,
        wco=no_peephole,
        b=bias,
        use_peephole=False,
    )
    return tf.transpose(made.h, [1, 0, 2])


def for_block(program: Program) -> Program:
    """A program of LSTMs with the weights of `block_lstm`: the two kernels in one, and the bias."""
    weights = []
    for first in range(0, len(program.weights), WEIGHTS):
        kernel, recurrent, bias = program.weights[first : first + WEIGHTS]
        weights += [np.concatenate([kernel, recurrent]), bias]
    layers = [step[0] // WEIGHTS for step in program.steps]
    return replace(program, weights=weights, steps=[(2 * i, 2 * i + 1) for i in layers])
