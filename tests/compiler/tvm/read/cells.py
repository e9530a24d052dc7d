"""Cells of recurrent layers as TensorFlow loops, and what tests of loops ask of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.loop import Loop
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of

raw = tf.raw_ops


def numbers(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.uniform(-0.5, 0.5, shape).astype(dtype) for shape in shapes]


def rows(count: Any, like: Any) -> Any:
    """A list that each trip of a loop sets an element of."""
    return raw.TensorListReserve(
        element_shape=tf.shape(like), num_elements=count, element_dtype=like.dtype
    )


def put(array: Any, t: Any, row: Any) -> Any:
    return raw.TensorListSetItem(input_handle=array, index=t, item=row)


def stacked(array: Any, like: Any) -> Any:
    return raw.TensorListStack(
        input_handle=array,
        element_shape=tf.shape(like),
        element_dtype=like.dtype,
        num_elements=-1,
    )


def over(steps: Any, body: Callable[..., Any], *carried: Any) -> Any:
    """Run the body for t = 0, 1, ... with what it carries."""
    results = tf.while_loop(
        lambda t, *_: t < steps, lambda t, *now: (t + 1, *body(t, *now)), [0, *carried]
    )
    return results[1:]


def simple_rnn(x: Any, k: Any, r: Any, b: Any) -> Any:
    h = tf.zeros([tf.shape(x)[0], tf.shape(r)[0]], x.dtype)
    steps = tf.shape(x)[1]

    def step(t: Any, h: Any, ys: Any) -> Any:
        h = tf.tanh(x[:, t] @ k + h @ r + b)
        return h, put(ys, t, h)

    h, ys = over(steps, step, h, rows(steps, h))
    return tf.transpose(stacked(ys, h), [1, 0, 2]), h


def lstm(x: Any, k: Any, r: Any, b: Any) -> Any:
    h = tf.zeros([tf.shape(x)[0], r.shape[0]], x.dtype)
    steps = tf.shape(x)[1]

    def step(t: Any, h: Any, c: Any, ys: Any) -> Any:
        i, f, g, o = tf.split(x[:, t] @ k + h @ r + b, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return h, c, put(ys, t, h)

    h, c, ys = over(steps, step, h, h, rows(steps, h))
    return stacked(ys, h), h, c


def gru(x: Any, k: Any, r: Any, b: Any, mask: Any) -> Any:
    """With the reset behind the product, backwards, and a mask."""
    h = tf.zeros([tf.shape(x)[0], r.shape[0]], x.dtype)
    steps = tf.shape(x)[1]

    def step(t: Any, h: Any, ys: Any) -> Any:
        at = steps - 1 - t
        z, n, a = tf.split(x[:, at] @ k + b, 3, axis=1)
        hz, hn, ha = tf.split(h @ r, 3, axis=1)
        z = tf.sigmoid(z + hz)
        a = tf.tanh(a + tf.sigmoid(n + hn) * ha)
        new = tf.where(mask[:, at][:, None], z * h + (1.0 - z) * a, h)
        return new, put(ys, at, new)

    h, ys = over(steps, step, h, rows(steps, h))
    return stacked(ys, h), h


def gru_before(x: Any, k: Any, r: Any, q: Any) -> Any:
    """With the reset in front of a second product: two stages a trip."""
    h = tf.zeros([tf.shape(x)[0], q.shape[0]], x.dtype)

    def step(t: Any, h: Any) -> Any:
        z, n = tf.split(x[:, t] @ k + h @ r, 2, axis=1)
        z = tf.sigmoid(z)
        return (z * h + (1.0 - z) * tf.tanh((tf.sigmoid(n) * h) @ q),)

    return over(tf.shape(x)[1], step, h)


def cells(*sizes: int) -> list[np.ndarray]:
    """An input, weights and a bias, of batch, steps, inputs, units and gates."""
    b, t, i, h, gates = sizes
    return numbers((b, t, i), (i, gates * h), (h, gates * h), (gates * h,))


def loop_of(function: Callable[..., Any], arrays: Any, shapes: Any = None) -> tuple[Function, Loop]:
    shapes = shapes or [a.shape for a in arrays]
    specs = [
        tf.TensorSpec([d if isinstance(d, int) else None for d in s], a.dtype)
        for a, s in zip(arrays, shapes, strict=True)
    ]
    read = read_function(library_of(function, specs), shapes)
    (loop,) = {t.node for t in topological(read.outputs) if isinstance(t.node, Loop)}
    return read, loop


def products(tensors: Any) -> list[Tensor]:
    return [t for t in topological(tuple(tensors)) if isinstance(t.node, MatMul)]
