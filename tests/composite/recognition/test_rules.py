"""What is read as one form, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from composite.recognition.algebra import Algebra, Form
from composite.recognition.differences import difference
from composite.recognition.reading import Constants, Reader
from composite.recognition.rules import RULES

Function = Callable[..., Any]
X, Y = (3, 4), (5, 4)
NAMES = dict(enumerate(f"x{k}" for k in range(9)))


def form_of(algebra: Algebra, function: Function, *shapes: tuple[int, ...]) -> Form:
    specs = [tf.TensorSpec(shape) for shape in shapes]
    graph = tf.function(function, autograph=False).get_concrete_function(*specs).graph
    symbols = {
        x.name: algebra.atom("symbol", (k,), (), shapes[k])
        for k, x in enumerate(graph.inputs[: len(shapes)])
    }
    return Reader(algebra, Constants(graph), symbols, RULES).form(graph.outputs[0])


def fused_norm(x: Any, *others: Any) -> Any:
    return tf.compat.v1.nn.fused_batch_norm(x, *others, is_training=False, epsilon=0.01)[0]


def plain_norm(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    factor = scale / tf.sqrt(variance + 0.01)
    return x * factor + (offset - mean * factor)


def stable_softmax(x: Any) -> Any:
    weights = tf.exp(2 * x - tf.reduce_max(2 * x, 1, keepdims=True))
    return weights / tf.reduce_sum(weights, 1, keepdims=True)


EQUAL: list[tuple[Function, Function, list[tuple[int, ...]]]] = [
    (tf.nn.elu, lambda x: tf.where(x > 0, x, tf.exp(x) - 1), [X]),
    (lambda x: tf.nn.leaky_relu(x, 0.25), lambda x: tf.maximum(0.25 * x, x), [X]),
    (tf.nn.softsign, lambda x: x / (tf.abs(-x) + 1), [X]),
    (tf.math.erfc, lambda x: 1 + tf.math.erf(-x), [X]),
    (tf.nn.relu6, lambda x: tf.minimum(6.0, tf.maximum(0.0, x)), [X]),
    (lambda x: tf.clip_by_value(x, -1, 1), lambda x: tf.maximum(tf.minimum(x, 1), -1), [X]),
    (tf.sigmoid, lambda x: tf.exp(x) / (1 + tf.exp(x)), [X]),
    (tf.nn.softplus, lambda x: tf.math.log(1 + tf.math.expm1(x) + 1), [X]),
    (lambda x: tf.nn.softmax(2 * x), stable_softmax, [X]),
    (lambda x: tf.abs(x) ** 2, tf.square, [X]),
    (lambda x: tf.sqrt(x) * tf.math.rsqrt(x**3), tf.math.reciprocal, [X]),
    (lambda x, y: (x - y) * (x + y), lambda x, y: x * x - y * y, [X, X]),
    (lambda x: tf.logical_not(x < 1), lambda x: x >= 1, [X]),
    (lambda x: tf.logical_or(x > 1, x < 0), lambda x: tf.logical_or(x < 0, x > 1), [X]),
    (lambda x: tf.sin(-x) * tf.cos(-x), lambda x: -tf.cos(x) * tf.sin(x), [X]),
    (lambda x: tf.math.reduce_variance(x, 0), lambda x: tf.nn.moments(x, [0])[1], [X]),
    (
        lambda x: tf.reduce_mean(tf.reduce_sum(x, 0)),
        lambda x: tf.reduce_sum(tf.reduce_mean(x, 1, keepdims=True)),
        [X],
    ),
    (lambda x: tf.reduce_max(x, 1)[:, None], lambda x: tf.reduce_max(x, -1, keepdims=True), [X]),
    (fused_norm, plain_norm, [(2, 3, 3, 4), *[(4,)] * 4]),
    (lambda x: tf.unstack(x, axis=1)[1], lambda x: x[:, 1], [X]),
    (lambda x: tf.split(x, [1, 3], 1)[1], lambda x: x[:, 1:], [X]),
    (lambda x: tf.slice(x, [1, 0], [2, 4]), lambda x: x[-2:], [X]),
    (lambda x: tf.tanh(tf.transpose(x)), lambda x: tf.transpose(tf.tanh(x)), [X]),
    (lambda x: tf.reshape(tf.exp(tf.reshape(x, [12])), [3, 4]), tf.exp, [X]),
    (lambda x: x + tf.tile(tf.zeros([1, 4]), [3, 1]), tf.identity, [X]),
    (
        lambda x, y: tf.stack([x, y], 1),
        lambda x, y: tf.concat([x[:, None], y[:, None]], 1),
        [X, X],
    ),
    (
        lambda x, y: tf.einsum("ab,cb->ca", x, y),
        lambda x, y: tf.transpose(tf.matmul(x, tf.transpose(y))),
        [X, Y],
    ),
    (
        lambda x, y: tf.einsum("ab,cb->ac", 2 * x, y),
        lambda x, y: tf.matmul(x, y, transpose_b=True) * 2,
        [X, Y],
    ),
    (
        lambda x, y: tf.einsum("ia,jb->ijab", x, y),
        lambda x, y: y[None, :, None] * x[:, None, :, None],
        [X, Y],
    ),
    (
        lambda x, y: tf.einsum("ab,cd->ac", x, y),
        lambda x, y: tf.reduce_sum(x, 1)[:, None] * tf.reduce_sum(y, 1),
        [X, Y],
    ),
]


@pytest.mark.parametrize("index", range(len(EQUAL)))
def test_spellings_of_one_form(index: int) -> None:
    one, other, shapes = EQUAL[index]
    algebra = Algebra(2e-6)
    found, wanted = (form_of(algebra, f, *shapes) for f in (one, other))
    assert found is wanted, difference(found, wanted, NAMES)


DIFFERENT: list[tuple[Function, Function, str]] = [
    (lambda x: 2.001 * x, lambda x: 2 * x, "the factor of x0 is 2.001, not 2"),
    (lambda x: x * x + 1, lambda x: x * x + 2, "the constant is 1, not 2"),
    (lambda x: tf.exp(x + 0.5), lambda x: x + tf.exp(x + 0.5), "x0 is missing"),
    (lambda x: tf.tanh(x + 1), tf.tanh, "1 is added"),
    (lambda x: x[:, :2], lambda x: x[:, 1:3], "slice(x0) stands there, not slice(x0)"),
    (tf.transpose, lambda x: tf.reshape(x, [4, 3]), "x0 stands there, not x0"),
    (lambda x: tf.reduce_mean(x, 0), tf.reduce_mean, "stands there"),
    (lambda x: tf.maximum(x, 1), lambda x: tf.minimum(x, 1), "max(x0, 1) stands there"),
    (
        lambda x: tf.cast(tf.cast(x, tf.half), tf.float32),
        lambda x: x,
        "Cast(Cast(x0)) stands there, not x0",
    ),
]


@pytest.mark.parametrize("index", range(len(DIFFERENT)))
def test_what_is_not_one_form(index: int) -> None:
    one, other, reason = DIFFERENT[index]
    algebra = Algebra(2e-6)
    found, wanted = (form_of(algebra, f, X) for f in (one, other))
    assert found is not wanted
    assert reason in difference(found, wanted, NAMES)
