"""Shapes of outputs in all forms, and what of them is known while tracing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import tf_op

X = tf.constant([1.0, 2.0, 3.0, 4.0])
ROWS = tf.reshape(tf.range(12, dtype=tf.float32), [3, 4])


def forms() -> dict[str, Any]:
    return {
        "none": None,
        "static": [4],
        "tensor": tf.constant([4]),
        "vector of int64": np.array([4]),
        "mixed": [tf.constant(4)],
        "same": tf_op.same_as(1),
        "rule": lambda a, b: [a[0]],
        "rule with a tensor": lambda a, b: [tf.constant(4, tf.int64)],
        "rule with the same": lambda a, b: tf_op.same_as(0),
        "shape": tf.TensorShape([4]),
    }


@pytest.mark.parametrize("form", forms())
def test_every_form_eagerly_and_traced(kernels: tf_op.Module, form: str) -> None:
    add = kernels.func("vector_add", output_shape=forms()[form])
    np.testing.assert_array_equal(add(X, X), 2 * X)
    traced = tf.function(add, input_signature=[tf.TensorSpec([4], tf.float32)] * 2)
    assert traced.get_concrete_function().structured_outputs.shape == [4]
    np.testing.assert_array_equal(traced(X, X), 2 * X)


def test_what_is_unknown_is_read_in_the_call(kernels: tf_op.Module) -> None:
    sums = kernels.func("row_sums", output_shape=lambda s: [s[0]])

    def of_shape(*dims: int | None) -> Any:
        return tf.function(sums, input_signature=[tf.TensorSpec(dims, tf.float32)])

    expected = tf.reduce_sum(ROWS, 1)
    for dims, known in (((3, None), [3]), ((None, 4), [None]), ((3, 4), [3])):
        traced = of_shape(*dims)
        assert traced.get_concrete_function().structured_outputs.shape.as_list() == known
        np.testing.assert_array_equal(traced(ROWS), expected)
    unranked = tf.function(sums, input_signature=[tf.TensorSpec(None, tf.float32)])
    np.testing.assert_array_equal(unranked(ROWS), expected)


def test_shapes_of_the_call_mix_sizes_and_tensors(kernels: tf_op.Module) -> None:
    rank8 = kernels.func("rank8")
    x = tf.zeros([1, 2, 3, 4, 1, 2, 1, 2])

    @tf.function
    def traced(x: Any, n: Any) -> Any:
        return rank8(x, output_shape=[1, n, 3, n + 2, 1, 2, 1, n])

    np.testing.assert_array_equal(traced(x, tf.constant(2)), x + 1)
    np.testing.assert_array_equal(traced(x, tf.constant(2, tf.int8)), x + 1)
    shape = traced.get_concrete_function(
        tf.TensorSpec(None, tf.float32), tf.TensorSpec([], tf.int64)
    ).structured_outputs.shape
    assert shape.as_list() == [1, None, 3, None, 1, 2, 1, None]


def test_each_output_has_its_shape(kernels: tf_op.Module) -> None:
    mixed = [[3], tf.constant([3]), [tf.constant(3)], tf_op.same_as(7), lambda *s: [s[0][0]], None]
    many = kernels.func("many", output_shape=[*mixed, *[[3]] * 10], output_dtype=["float32"] * 16)
    outputs = many(*[tf.fill([3], float(i)) for i in range(64)])
    assert [y.shape for y in outputs] == [[3]] * 16
    np.testing.assert_array_equal(outputs[3], [3.0 + 19 + 35 + 51] * 3)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([-1], "no shape"),
        ([None], "not known"),
        ("four", "no shape"),
        ([[1, 2], [3]], "no shape"),
        ([tf.constant(4), -2], "not a size or a scalar tensor"),
        ([tf.constant([4])], "not a scalar of integers"),
        ([tf.constant(4.0)], "not a scalar of integers"),
        (tf.constant(4), "not a vector of integers"),
        (tf.constant([4.0]), "not a vector of integers"),
        (lambda s: [-1], "no shape"),
    ],
)
def test_what_is_no_shape_is_refused(kernels: tf_op.Module, shape: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernels.func("addone", output_shape=shape)(X)


def test_a_list_of_dtypes_wants_a_list_of_shapes(kernels: tf_op.Module) -> None:
    with pytest.raises(ValueError, match="2 output dtypes"):
        kernels.func("addone", output_shape=[[4]], output_dtype=["float32", "float32"])
    with pytest.raises(ValueError, match="numbered from 0"):
        tf_op.same_as(-1)


def test_shapes_that_a_call_cannot_have_are_statuses(kernels: tf_op.Module) -> None:
    addone = kernels["addone"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="output 0 is none"):
        addone(X, output_shape=tf.constant([-3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="nothing says what shape"):
        addone(X, output_shape=tf_op.same_as(5))
    traced = tf.function(
        lambda x, s: addone(x, output_shape=s),
        input_signature=[tf.TensorSpec([4], tf.float32), tf.TensorSpec(None, tf.int64)],
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="rank"):
        traced(X, tf.constant(4, tf.int64))


def test_sizes_of_eager_calls_are_no_attributes(kernels: tf_op.Module) -> None:
    """TensorFlow keeps an op for each value of an attribute."""
    sums = kernels.func("row_sums", output_shape=lambda s: [s[0]])
    seen: list[Any] = []

    def gradient(op: Any, dy: Any) -> Any:
        seen.extend(op.attrs[::2])
        return tf.repeat(dy[:, None], 4, 1)

    sums.gradient(gradient)
    with tf.GradientTape() as tape:
        tape.watch(ROWS)
        y = sums(ROWS)
    np.testing.assert_array_equal(tape.gradient(y, ROWS), tf.ones([3, 4]))
    assert "shape_of" in seen and "shapes" not in seen


def test_shapes_of_what_is_returned_are_held_to_what_is_said(program: tf_op.Module) -> None:
    x, w = tf.ones([2, 4]), tf.ones([4, 5])
    for shape in (lambda x, w: [x[0], w[1]], tf.constant([2, 5]), [None, 5], tf.TensorShape(None)):
        layer = program.func("main", output_shape=shape)
        np.testing.assert_array_equal(layer(x, w), tf.fill([2, 5], 4.0))
    for shape in (lambda x, w: [x[0], 6], tf.constant([2, 6]), [None, 6], tf_op.same_as(0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"has shape \[2,5\], not "):
            program.func("main", output_shape=shape)(x, w)
