"""Inputs and outputs of every form and dtype, eager and in functions of unknown shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.composite.ops import argument_ops

pytestmark = pytest.mark.many_cases

X = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
WORDS = tf.constant([["one", "two"]])

# What TensorFlow 2.21 can make, reshape and return; of variant and resource there are others tests.
DTYPES = [
    *("half", "bfloat16", "float32", "double", "complex64", "complex128", "bool", "string"),
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("qint8", "quint8", "qint16", "quint16", "qint32", "int4", "uint4"),
    *("float8_e5m2", "float8_e4m3fn"),
]


@pytest.fixture(autouse=True)
def _no_kernels() -> Iterator[None]:
    with composite.options(backend="tf"):
        yield


def same(results: Any, expected: Any) -> None:
    tf.nest.assert_same_structure(results, expected)
    for one, wanted in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
        assert one.dtype == tf.convert_to_tensor(wanted).dtype
        np.testing.assert_array_equal(one, wanted)


def check(op: Any, *arguments: Any, **attrs: Any) -> None:
    """Compare an op with its function: eager, in a function, and there without any shape."""
    expected = op.python_function(*arguments, *attrs.values())
    same(op(*arguments, **attrs), expected)
    same(tf.function(lambda: op(*arguments, **attrs))(), expected)
    specs = tf.nest.map_structure(lambda x: tf.TensorSpec(None, x.dtype), arguments)
    unknown = tf.function(lambda *given: op(*given, **attrs), input_signature=specs)
    same(unknown(*arguments), expected)


@pytest.mark.parametrize(
    ("xs", "ys", "z"),
    [
        ([X, X + 1.0], [X], X * 2.0),
        ([X, X, X], [], X),
        ([WORDS, WORDS], [X, X, X], WORDS),
        ([tf.constant(1), tf.constant([2])], [tf.constant(0.5)], tf.constant(3)),
    ],
)
def test_lists_of_one_type(xs: Any, ys: Any, z: Any) -> None:
    check(argument_ops.lists, xs, ys, z)


def test_lists_that_the_declaration_does_not_allow() -> None:
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="minimum|at least|less"):
        argument_ops.lists([X], [], X)
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
        argument_ops.lists([X, WORDS], [], X)


@pytest.mark.parametrize(
    ("xs", "ys"),
    [
        ([X], []),
        ([X, WORDS, tf.constant(2)], [tf.constant([True]), tf.constant(1j), X]),
        ([WORDS], [tf.constant(2, tf.uint64)]),
    ],
)
def test_lists_of_several_types(xs: Any, ys: Any) -> None:
    check(argument_ops.type_lists, xs, ys)


def test_no_inputs() -> None:
    for shape, dtype in (([2, 3], tf.int64), ([], tf.float32), ((1, 2), tf.complex64)):
        expected = argument_ops.no_inputs.python_function(shape, dtype)
        same(argument_ops.no_inputs(shape=shape, dtype=dtype), expected)
        traced = tf.function(lambda s=shape, d=dtype: argument_ops.no_inputs(shape=s, dtype=d))
        same(traced(), expected)
    same(argument_ops.no_inputs(shape=[2]), tf.ones([2]))


def test_resources_and_no_outputs() -> None:
    variable = tf.Variable(X)
    assert argument_ops.no_outputs(variable.handle, X) is None
    np.testing.assert_array_equal(variable, X * 2)

    @tf.function
    def step(x: Any) -> Any:
        argument_ops.no_outputs(variable.handle, x)
        return argument_ops.read(variable.handle, dtype=tf.float32)

    value, shape = step(X)
    np.testing.assert_array_equal(value, X * 3)
    assert shape.numpy().tolist() == [2, 3]
    check(argument_ops.read, variable.handle, dtype=tf.float32)
    with composite.options(backend="auto"):
        explained = composite.explain(argument_ops.read, variable.handle, dtype=tf.float32)
    assert explained.path == "expansion" and explained.reason == "no kernel takes its dtypes"
    assert explained.gradient.startswith("keeps nothing")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: str) -> None:
    if dtype == "string":
        x = WORDS
    else:
        x = tf.constant(np.array([[0, 1, 1]]).astype(tf.as_dtype(dtype).as_numpy_dtype))
        x = tf.bitcast(x, dtype) if x.dtype != dtype else x
    check(argument_ops.any_type, x)


def test_variants() -> None:
    for op in (argument_ops.variant, tf.function(argument_ops.variant.__call__)):
        handle = op([X, X + 1.0])
        assert handle.dtype == tf.variant
        stacked = tf.raw_ops.TensorListStack(
            input_handle=handle, element_shape=[2, 3], element_dtype=tf.float32
        )
        np.testing.assert_array_equal(stacked, [X, X + 1.0])


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_lists_that_an_attribute_gives_the_length_of(parts: int) -> None:
    x = tf.reshape(tf.range(12.0), [2, 6])
    check(argument_ops.many_outputs, x, tf.constant(1), parts=parts)
