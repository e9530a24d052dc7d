"""Which expansions have one result, whatever the order in which a kernel computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.reference.exact import is_exact

Function = Callable[[Any], Any]
FLOATS = tf.TensorSpec([4, 6], tf.float32)
INTEGERS = tf.TensorSpec([4, 6], tf.int32)


def library_of(function: Function, spec: tf.TensorSpec) -> FunctionDefLibrary:
    traced = tf.function(function, autograph=False).get_concrete_function(spec)
    called = traced.graph.as_graph_def().library.function
    return FunctionDefLibrary(function=[traced.function_def, *called])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.transpose(x)[1:, None],
        lambda x: tf.reverse(tf.split(x, 2, axis=1)[0], [0]),
        lambda x: tf.pad(x, [[1, 0], [0, 2]], constant_values=0.1),
        lambda x: tf.where(tf.constant([[True], [False], [True], [True]]), x, tf.zeros_like(x)),
        lambda x: tf.one_hot([1, 2], 3, on_value=x[0, 0], off_value=x[0, 1]),
        tf.function(tf.transpose),
    ],
    ids=["transpose", "reverse", "pad", "where", "one_hot", "call"],
)
def test_what_moves_floats_is_exact(function: Function) -> None:
    assert is_exact(library_of(function, FLOATS))


@pytest.mark.parametrize(
    "function",
    [
        tf.abs,
        lambda x: tf.reduce_sum(x, axis=0),
        lambda x: tf.cast(x, tf.bfloat16),
        lambda x: tf.raw_ops.MirrorPadGrad(input=x, paddings=[[1, 0], [0, 0]], mode="REFLECT"),
        lambda x: tf.scatter_nd([[0], [0], [1], [1]], x, [2, 6]),
        tf.function(tf.exp),
        lambda x: tf.while_loop(lambda _: False, lambda y: (y,), [x], maximum_iterations=3)[0],
    ],
    ids=["abs", "sum", "cast", "mirror", "scatter", "call", "loop"],
)
def test_what_computes_with_floats_is_not(function: Function) -> None:
    assert not is_exact(library_of(function, FLOATS))


def test_arithmetic_of_integers_is_exact() -> None:
    assert is_exact(library_of(lambda x: tf.reduce_sum(x * x, axis=0), INTEGERS))
    assert not is_exact(library_of(lambda x: tf.cast(x, tf.float32) * 0.1, INTEGERS))
