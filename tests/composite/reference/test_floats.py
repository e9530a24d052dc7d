"""Tests numbers that are moved by a rounding error."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from composite.reference import floats


def test_the_two_runs_of_a_pair_move_each_number_both_ways():
    """1 + tanh(x) of GELU: where TensorFlow's own error undoes one move, the other shows it."""
    y = np.full(100_000, -0.99932408, np.float32)
    for pair in range(3):
        one, other = floats.Rounder(2 * pair), floats.Rounder(2 * pair + 1)
        for _ in range(3):
            up, down = one(y) > y, other(y) > y
            np.testing.assert_array_equal(up, ~down)
            assert 0.4 < up.mean() < 0.6


def test_pairs_differ_in_which_numbers_go_up():
    y = np.ones(1000, np.float32)
    assert (floats.Rounder(0)(y) != floats.Rounder(2)(y)).any()
    assert (floats.Rounder(0)(y) == floats.Rounder(0)(y)).all()


def test_a_share_of_the_numbers_moves():
    y = np.ones(100_000, np.float32)
    assert 0.005 < (floats.Rounder(0, share=0.01)(y) != y).mean() < 0.02


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nearby_arrays_come_in_pairs_too(dtype):
    y = np.linspace(1, 2, 1000).astype(tf.as_dtype(dtype).as_numpy_dtype)
    whole = np.arange(3)
    one, other, *_ = floats.nearby([y, whole])
    assert ((one[0] < y) | (other[0] < y)).all()
    assert ((one[0] > y) | (other[0] > y)).all()
    assert one[1] is whole


def test_ten_bits_of_a_float32():
    """To nearest, ties away from zero; what has no more bits stays, and so do specials."""
    step = 2.0**-10
    x = np.array([1, 1 + step, 1 + step / 2, -1 - step / 2, 1 + 0.49 * step, np.inf, np.nan, -0.0])
    x = x.astype(np.float32)
    nearest = [1, 1 + step, 1 + step, -1 - step, 1, np.inf, np.nan, -0.0]
    np.testing.assert_array_equal(floats.in_tensor_float_32(x), nearest)
    cut = [1, 1 + step, 1, -1, 1, np.inf, np.nan, -0.0]
    np.testing.assert_array_equal(floats.cut_to_tensor_float_32(x), cut)
    assert floats.in_tensor_float_32(x).dtype == np.float32


def test_ten_bits_keep_the_shape():
    assert floats.in_tensor_float_32(np.float32(0.1).reshape(())).shape == ()
    assert floats.cut_to_tensor_float_32(np.ones((2, 0), np.float32)).shape == (2, 0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_doubles_are_zero_where_tensorflow_takes_numbers_for_zeros(dtype):
    kind = tf.as_dtype(dtype).as_numpy_dtype
    tiny = floats.smallest_normal(kind)
    x = np.array([1, -tiny, tiny / 2, -tiny / 2, 0, -0.0, np.inf, -np.inf, np.nan]).astype(kind)
    half = tiny / 2 if dtype == "float16" else 0.0
    found = floats.in_double(x)
    expected = [1, -tiny, half, -half, 0, -0.0, np.inf, -np.inf, np.nan]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(expected[:-1]))
    np.testing.assert_array_equal(floats.in_double(x[2:3].reshape(())), half)


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_tensors_in_double_have_the_bits_of_arrays_in_double(dtype, flushed):
    kind = tf.as_dtype(dtype).as_numpy_dtype
    x = np.resize(np.array([1 / 3, -7, 0, -0.0, np.inf, -np.inf, np.nan]), (3, 40_001)).astype(kind)
    x[2, -1] = floats.smallest_normal(kind) / (2 if flushed else -1)  # in the last block
    found = floats.tensor_in_double(floats.unaligned(x))
    assert found.dtype == tf.float64
    assert found.numpy().tobytes() == floats.in_double(x).tobytes()


def test_tensors_in_double_take_any_shape():
    assert floats.tensor_in_double(np.float32(0.1).reshape(())).shape == ()
    assert floats.tensor_in_double(np.ones((2, 0), np.float32)).shape == (2, 0)
