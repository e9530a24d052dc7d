"""The layers that are measured: the weights of each, what it computes, what it costs.

NumPy only: every side, whatever its library, reads a layer from here, and its results are compared
with `reference`. Images are NHWC, filters HWIO; a side that wants another layout brings its arrays
into it before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.works import recurrent

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

LAYER_NORM_EPSILON = 1e-5
RMS_NORM_EPSILON = 1e-6


@dataclass(frozen=True)
class Layer:
    """One kind of layer; `shape` is what its works are named by.

    Attributes:
        x: shape of the input.
        y: shape of the output.
        weights: (shape, scale, mean) of each weight, drawn from a normal distribution.
        reference: the output for input and weights, float64 in, float64 out.
        flops: arithmetic operations of one call; a transcendental function counts as one.
        back: the shape of the layer that takes the output back to the input's shape; None where
            the two are equal already.
        deepest: most layers of a stack. XLA takes minutes to compile more of the small ones.
    """

    x: Callable[[Shape], Shape]
    y: Callable[[Shape], Shape]
    weights: Callable[[Shape], list[tuple[Shape, float, float]]]
    reference: Callable[..., Array]
    flops: Callable[[Shape], int]
    back: Callable[[Shape], Shape] | None = None
    deepest: int = 64

    def bytes(self, shape: Shape) -> int:
        """What one call in float32 must move: input, weights and output, each once."""
        shapes = [self.x(shape), self.y(shape), *(s for s, _, _ in self.weights(shape))]
        return 4 * sum(int(np.prod(s)) for s in shapes)


def _dense(x: Array, filter_: Array, bias: Array) -> Array:
    return np.maximum(x @ filter_.T + bias, 0)


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + LAYER_NORM_EPSILON) * gamma + beta


def _rms_norm(x: Array, gamma: Array) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + RMS_NORM_EPSILON) * gamma


def _gated(x: Array, scale: Array, offset: Array) -> Array:
    return np.tanh(x * scale + offset) / (1 + np.exp(-x)) + x


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _conv(x: Array, filter_: Array, bias: Array) -> Array:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.maximum(np.tensordot(windows, filter_, axes=([4, 5, 3], [0, 1, 2])) + bias, 0)


def _attention(q: Array, k: Array, v: Array) -> Array:
    return _softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def _same(shape: Shape) -> Shape:
    return shape


def _a_row(*means: float) -> Callable[[Shape], list[tuple[Shape, float, float]]]:
    return lambda shape: [((shape[-1],), 0.1, mean) for mean in means]


def _rowwise(reference: Callable[..., Array], flops: int, *means: float) -> Layer:
    """A layer over [rows, columns] with weights of one row each; `flops` for each element."""
    return Layer(_same, _same, _a_row(*means), reference, lambda s: flops * s[0] * s[1])


def _recurrent(reference: Callable[..., Array], gates: int, biases: int) -> Layer:
    """A layer of (batch, time, features, units); each is a loop, which compilers are slow at."""
    return Layer(
        x=lambda s: s[:3],
        y=lambda s: (*s[:2], s[3]),
        weights=lambda s: recurrent.weights(s, gates, biases),
        reference=reference,
        flops=lambda s: recurrent.flops(s, gates),
        deepest=8,
    )


# Scales keep the values of a deep stack in range: denormals would be timed instead.
LAYERS = {
    # (m, k, n): relu(x @ filterᵀ + bias), the filter one row an output: [n, k].
    "dense": Layer(
        x=lambda s: (s[0], s[1]),
        y=lambda s: (s[0], s[2]),
        weights=lambda s: [((s[2], s[1]), float(np.sqrt(2 / s[1])), 0.0), ((s[2],), 0.1, 0.0)],
        reference=_dense,
        flops=lambda s: 2 * s[0] * s[1] * s[2] + 2 * s[0] * s[2],
        back=lambda s: (s[0], s[2], s[1]),
    ),
    # (n,): x @ w, all of them n x n.
    "matmul": Layer(
        x=lambda s: (s[0], s[0]),
        y=lambda s: (s[0], s[0]),
        weights=lambda s: [((s[0], s[0]), float(np.sqrt(1 / s[0])), 0.0)],
        reference=np.matmul,
        flops=lambda s: 2 * s[0] ** 3,
    ),
    # (rows, columns): along the columns.
    "softmax": _rowwise(_softmax, 5),
    "layer norm": _rowwise(_layer_norm, 8, 1.0, 0.0),
    "RMS norm": _rowwise(_rms_norm, 4, 1.0),
    # (rows, columns): tanh(x * scale + offset) * sigmoid(x) + x, two weights of one row.
    "gated": _rowwise(_gated, 6, 1.0, 0.0),
    "GELU": _rowwise(_gelu, 8),
    # (batch, height, width, channels in, channels out): relu(conv3x3(x) + bias), same size.
    "conv 3x3": Layer(
        x=lambda s: s[:4],
        y=lambda s: (*s[:3], s[4]),
        weights=lambda s: [((3, 3, s[3], s[4]), float(np.sqrt(2 / (9 * s[3]))), 0.0),
                           ((s[4],), 0.1, 0.0)],
        reference=_conv,
        flops=lambda s: (18 * s[3] + 2) * s[0] * s[1] * s[2] * s[4],
    ),
    # (heads, length, width): softmax(q @ kᵀ / sqrt(width)) @ v; k and v are the weights.
    "attention": Layer(
        x=_same,
        y=_same,
        weights=lambda s: [(s, 1.0, 0.0), (s, 1.0, 0.0)],
        reference=_attention,
        flops=lambda s: s[0] * s[1] * s[1] * (4 * s[2] + 5),
    ),
    # (batch, time, features, units): see works/recurrent.py.
    "LSTM": _recurrent(recurrent.lstm, gates=4, biases=1),
    "GRU": _recurrent(recurrent.gru, gates=3, biases=2),
}  # fmt: skip
