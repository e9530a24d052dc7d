"""Recurrent layers, in NumPy: what they compute, and their weights in the forms of other libraries.

A layer takes x [batch, time, features], starts from zeros, and hands out its state after each step,
[batch, time, units]. Its weights are those of Keras: kernel [features, gates * units], recurrent
kernel [units, gates * units], and the bias; the gates of an LSTM are i, f, c, o, those of a GRU z,
r, h, and its bias has a row for each of the kernels, [2, 3 * units] (`reset_after=True`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from benchmarks.works.layers import Array, Shape

WEIGHTS = 3
"""How many weights a layer has: kernel, recurrent kernel, bias."""


def lstm(x: Array, kernel: Array, recurrent: Array, bias: Array) -> Array:
    """Long short-term memory."""
    h = c = np.zeros((x.shape[0], recurrent.shape[0]), x.dtype)
    states = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ kernel + h @ recurrent + bias, 4, axis=-1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.stack(states, axis=1)


def gru(x: Array, kernel: Array, recurrent: Array, bias: Array) -> Array:
    """Gated recurrent unit, whose reset gate follows the product."""
    h = np.zeros((x.shape[0], recurrent.shape[0]), x.dtype)
    states = []
    for t in range(x.shape[1]):
        xz, xr, xh = np.split(x[:, t] @ kernel + bias[0], 3, axis=-1)
        hz, hr, hh = np.split(h @ recurrent + bias[1], 3, axis=-1)
        z = _sigmoid(xz + hz)
        h = z * h + (1 - z) * np.tanh(xh + _sigmoid(xr + hr) * hh)
        states.append(h)
    return np.stack(states, axis=1)


def weights(shape: Shape, gates: int, biases: int) -> list[tuple[Shape, float, float]]:
    """(shape, scale, mean) of the weights of a layer of (batch, time, features, units)."""
    features, units = shape[2:]
    bias = (gates * units,) if biases == 1 else (biases, gates * units)
    return [
        ((features, gates * units), float(features**-0.5), 0.0),
        ((units, gates * units), float(units**-0.5), 0.0),
        (bias, 0.1, 0.0),
    ]


def flops(shape: Shape, gates: int) -> int:
    """Operations of the products; what is done with them is less than a hundredth of that."""
    batch, time, features, units = shape
    return 2 * batch * time * gates * units * (features + units)


def gates_as_rows(layers: Sequence[Array], order: Sequence[int]) -> list[Array]:
    """The weights of layers as ONNX and PyTorch want them, in another order of the gates.

    Of each three, the kernels become [gates * units, features or units], and the bias has a row for
    each of them, the second of which is zeros where the layer has one bias.
    """
    converted = []
    for number, weight in enumerate(layers):
        is_bias = number % WEIGHTS == WEIGHTS - 1
        whole = np.stack([weight, np.zeros_like(weight)]) if weight.ndim == 1 else weight
        gates = np.split(whole, len(order), axis=-1)
        ordered = np.concatenate([gates[i] for i in order], axis=-1)
        converted.append(ordered if is_bias else np.ascontiguousarray(ordered.T))
    return converted


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))
