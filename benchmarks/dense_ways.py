"""A dense layer with ReLU done every way: by the op on either path, and by TensorFlow without it.

Two questions: what one call from Python costs, and what a node costs in a stack of layers, which
goes there and back, [m, k] -> [m, n] -> [m, k] -> ... The second has no call overhead in it; XLA
compiles the stack as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import composite
from benchmarks.timing import Timings, interleave
from examples.digits.ops import fused_fully_connected

Layer = Callable[..., Any]
Shape = tuple[int, int, int]

OURS = "kernel"
EXPANSION = "expansion"
PLAIN = ("TF eager", "tf.function", "XLA")

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"": lambda o: o, "RELU": tf.nn.relu}


def op_layer(x: Any, filter_: Any, bias: Any, act: str = "RELU") -> Any:
    """The composite op."""
    return fused_fully_connected(x, filter_, bias, act=act)


def plain_layer(x: Any, filter_: Any, bias: Any, act: str = "RELU") -> Any:
    """The same layer as a user writes it without us."""
    product = tf.linalg.matmul(x, filter_, transpose_b=True)
    return _ACTIVATIONS[act](tf.nn.bias_add(product, bias))


def operands(shape: Shape) -> tuple[Any, ...]:
    """For (m, k, n): input [m, k], filter and bias there [n, k], [n], and back [k, n], [k].

    He's scaling keeps the values of a deep ReLU stack in range: denormals would be timed instead.
    """
    m, k, n = shape
    rng = np.random.default_rng(0)

    def normal(*dims: int, scale: float = 1.0) -> Any:
        return tf.constant((rng.standard_normal(dims) * scale).astype(np.float32))

    there, back = np.sqrt(2 / k), np.sqrt(2 / n)
    return (
        normal(m, k),
        normal(n, k, scale=there),
        normal(n, scale=0.1),
        normal(k, n, scale=back),
        normal(k, scale=0.1),
    )


def stack(layer: Layer, act: str, depth: int) -> Callable[..., Any]:
    """A function of `operands` that applies the layer `depth` times, an even number."""

    def run(x: Any, there: Any, bias_there: Any, back: Any, bias_back: Any) -> Any:
        for _ in range(depth // 2):
            x = layer(layer(x, there, bias_there, act), back, bias_back, act)
        return x

    return run


def graph(run: Callable[..., Any], args: tuple[Any, ...], **options: Any) -> Callable[[], Any]:
    """A function as one traced tf.function, called without the checks for another trace."""
    concrete = tf.function(run, **options).get_concrete_function(*args)
    return lambda: concrete(*args)


def time_dense(shape: Shape, *, act: str = "RELU", depth: int = 32, seconds: float = 3) -> Timings:
    """Cost of a node in a stack, for both paths of the op and for TensorFlow's ways without it.

    Raises what `backend="tvm"` raises when no kernel covers the shape.
    """
    args = operands(shape)
    ours, plain = stack(op_layer, act, depth), stack(plain_layer, act, depth)
    with composite.options(backend="tvm"):
        stack(op_layer, act, 2)(*args)  # compiles the kernels, or says why there is none
        kernel = graph(ours, args)
    with composite.options(backend="tf"):
        expansion = graph(ours, args)
    ways = {OURS: kernel, EXPANSION: expansion, **_plain_ways(plain, args)}
    return interleave(ways, seconds=seconds, calls=depth)


def time_call(shape: Shape, *, act: str = "RELU", seconds: float = 3) -> Timings:
    """Cost of one call from Python: of the op's eager call, and of TensorFlow's ways without it."""
    x, filter_, bias, *_ = operands(shape)

    def plain(x: Any, filter_: Any, bias: Any) -> Any:
        return plain_layer(x, filter_, bias, act)

    def ours() -> Any:
        return op_layer(x, filter_, bias, act)

    with composite.options(backend="tvm"):  # for the whole thread: none of the other ways is ours
        ours()
        ways = {OURS: ours, **_plain_ways(plain, (x, filter_, bias))}
        return interleave(ways, seconds=seconds)


def _plain_ways(plain: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Callable[[], Any]]:
    ways = (lambda: plain(*args), graph(plain, args), graph(plain, args, jit_compile=True))
    return dict(zip(PLAIN, ways, strict=True))
