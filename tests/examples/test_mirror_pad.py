"""Composed mirror padding beside TensorFlow's own: values, gradients, shapes, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import composite
from examples.mirror_pad.ops import composed_mirror_pad, composed_mirror_pad_grad

MODES = ("REFLECT", "SYMMETRIC")


@st.composite
def paddings(draw: Any, mode: str) -> tuple[tuple[int, ...], list[list[int]]]:
    """A shape of rank 0 to 5 and the widths that the mode allows for it."""
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=5)))
    widest = [n - 1 if mode == "REFLECT" else n for n in shape]
    return shape, [[draw(st.integers(0, w)), draw(st.integers(0, w))] for w in widest]


def numbers(shape: Any, dtype: tf.DType = tf.float64) -> Any:
    """Whole numbers that all differ: none can be taken for another, and sums of them are exact."""
    return tf.cast(tf.reshape(tf.range(np.prod(shape, dtype=np.int32)) + 1, shape), dtype)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.data(), st.sampled_from(MODES), st.sampled_from((tf.int32, tf.int64)))
def test_any_rank_and_width(data: Any, mode: str, index: tf.DType) -> None:
    shape, widths = data.draw(paddings(mode))
    x = numbers(shape)
    p = tf.reshape(tf.constant(widths, index), [len(shape), 2])
    with composite.options(backend="tf"), tf.GradientTape() as tape:
        tape.watch(x)
        y = composed_mirror_pad(x, p, mode=mode)
    np.testing.assert_array_equal(y, tf.raw_ops.MirrorPad(input=x, paddings=p, mode=mode))

    dy = numbers(y.shape)
    expected = tf.raw_ops.MirrorPadGrad(input=dy, paddings=p, mode=mode)
    with composite.options(backend="tf"):
        np.testing.assert_array_equal(composed_mirror_pad_grad(dy, p, mode=mode), expected)
    np.testing.assert_array_equal(tape.gradient(y, x, dy), expected)


@pytest.mark.parametrize("mode", MODES)
def test_a_rank_that_tensorflows_kernel_does_not_take(mode: Any) -> None:
    x, widths = numbers([2, 2, 1, 3, 2, 2]), [[1, 0], [0, 0], [0, 0], [2, 1], [0, 1], [1, 1]]
    with pytest.raises(tf.errors.UnimplementedError):
        tf.raw_ops.MirrorPad(input=x, paddings=widths, mode=mode)
    np.testing.assert_array_equal(
        composed_mirror_pad(x, widths, mode=mode), np.pad(x, widths, mode.lower())
    )


@pytest.mark.parametrize("dtype", [tf.uint8, tf.int64, tf.bfloat16, tf.complex64, tf.bool])
def test_dtypes(dtype: tf.DType) -> None:
    x = numbers([3, 4], dtype)
    padded = composed_mirror_pad(x, [[2, 1], [0, 3]], mode="REFLECT")
    expected = tf.raw_ops.MirrorPad(input=x, paddings=[[2, 1], [0, 3]], mode="REFLECT")
    assert padded.dtype == dtype
    np.testing.assert_array_equal(padded, expected)


@pytest.mark.parametrize(("mode", "row"), [("REFLECT", "212343"), ("SYMMETRIC", "112344")])
def test_the_border_is_repeated_or_not(mode: str, row: str) -> None:
    padded = composed_mirror_pad(tf.constant(list("1234")), [[1, 1]], mode=mode)
    assert b"".join(padded.numpy()).decode() == row


@pytest.mark.parametrize("mode", MODES)
def test_the_adjoint_of_the_gradient_is_the_padding(mode: str) -> None:
    widths = [[1, 2], [2, 0]]
    x = numbers([3, 3])
    y = tf.raw_ops.MirrorPad(input=x, paddings=widths, mode=mode)
    with composite.options(backend="tf"), tf.GradientTape() as tape:
        tape.watch(y)
        dx = composed_mirror_pad_grad(y, widths, mode=mode)
    expected = tf.raw_ops.MirrorPad(input=x, paddings=widths, mode=mode)
    np.testing.assert_array_equal(tape.gradient(dx, y, x), expected)


def test_static_shapes() -> None:
    x = tf.TensorSpec([None, 3], tf.float32)
    widths = tf.TensorSpec([2, 2], tf.int32)

    @tf.function(input_signature=[x])
    def known(x: Any) -> Any:
        return composed_mirror_pad(x, [[0, 0], [2, 1]], mode="REFLECT")

    @tf.function(input_signature=[x, widths])
    def unknown(x: Any, widths: Any) -> Any:
        return composed_mirror_pad(x, widths, mode="REFLECT")

    assert known.get_concrete_function().output_shapes.as_list()[1] == 6
    assert unknown.get_concrete_function().output_shapes.as_list() == [None, None]
    x = numbers([2, 3], tf.float32)
    np.testing.assert_array_equal(unknown(x, [[0, 0], [2, 1]]), known(x))


def test_unknown_rank_is_decided_by_the_call() -> None:
    signature = [tf.TensorSpec(None, tf.float32), tf.TensorSpec([None, 2], tf.int32)]
    pad = tf.function(
        lambda x, p: composed_mirror_pad(x, p, mode="SYMMETRIC"), input_signature=signature
    )
    for shape in ([2], [2, 2], [1, 2, 3]):
        x, p = numbers(shape, tf.float32), [[1, 0]] * len(shape)
        expected = tf.raw_ops.MirrorPad(input=x, paddings=p, mode="SYMMETRIC")
        np.testing.assert_array_equal(pad(x, p), expected)


def test_a_width_beyond_the_axis_is_an_error() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected size"):
        composed_mirror_pad(numbers([2, 3]), [[0, 0], [3, 0]], mode="REFLECT")
    with pytest.raises(ValueError, match="EDGE"):
        tf.function(lambda: composed_mirror_pad(numbers([2]), [[1, 1]], mode="EDGE"))()
