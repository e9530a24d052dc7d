"""CompositeUpdateSlices by itself: every dtype, cut tensors, wrong arguments, and whose memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.ops.call import eager_op

RANDOM = np.random.default_rng(0)
X = RANDOM.integers(0, 2, (2, 3, 4, 5))


def update(x: Any, updates: list[Any], starts: list[Any], **attrs: list[int]) -> Any:
    inputs = [x, *updates, *starts]
    found = {"axes": [], "sizes": [], "places": [], **attrs}
    return eager_op(
        "CompositeUpdateSlices", 1, inputs,
        ("T", x.dtype, "Tindices", starts[0].dtype, "N", len(updates),
         *(part for item in found.items() for part in item)),
    )[0]  # fmt: skip


def index(*places: int, dtype: Any = tf.int32) -> Any:
    return tf.constant(places, dtype)


@pytest.mark.parametrize(
    "dtype", [tf.float32, tf.bfloat16, tf.float64, tf.int8, tf.int64, tf.bool, tf.complex64]
)
def test_dtypes(dtype: Any) -> None:
    x = tf.cast(X, dtype)
    part = tf.cast(1 - X[:, 0, :2, 1:3], dtype)
    wanted = x.numpy()
    wanted[:, 1, 2:4, 3:5] = part.numpy()
    starts = index(0, 2, 3, dtype=tf.int64)
    found = update(x, [part], [starts], axes=[1], sizes=[3], places=[1])
    np.testing.assert_array_equal(found.numpy(), wanted)
    np.testing.assert_array_equal(x.numpy(), tf.cast(X, dtype).numpy())  # the caller's


def test_parts_are_moved_to_the_edge_and_the_last_one_stays() -> None:
    x = tf.zeros([2, 3, 4])
    found = update(
        x, [tf.ones([2, 1]), tf.fill([2, 1], 2.0), tf.fill([1, 1], 3.0)],
        [index(-5, 9), index(1, 9), index(-(1 << 31), (1 << 31) - 1)],
        axes=[1], sizes=[3], places=[0, 0, 2],
    )  # fmt: skip
    wanted = np.zeros((2, 3, 4), np.float32)
    wanted[:, 0, 3] = 2.0
    wanted[0, 2, 3] = 3.0
    np.testing.assert_array_equal(found, wanted)


def test_without_axes_and_with_empty_parts() -> None:
    x = tf.cast(X, tf.float32)
    found = update(x, [tf.ones([0, 3, 4, 5]), x[:1, :1] + 3.0], [index(1, 0, 0, 0)] * 2)
    wanted = x.numpy()
    wanted[1, 0] = wanted[0, 0] + 3.0
    np.testing.assert_array_equal(found, wanted)


def test_a_tensor_that_is_cut() -> None:
    x = tf.cast(X, tf.float32)
    found = update(
        x, [tf.zeros([2, 4])], [index(0, 0)], axes=[1, 3], sizes=[2, 4], places=[1, 2]
    )  # fmt: skip
    wanted = x.numpy()[:, :2, :, :4].copy()
    wanted[:, 1, :, 2] = 0.0
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("shape", "starts", "size", "why"),
    [
        ((2, 5, 5), 3, 3, "greater than dynamic slice dimension"),
        ((2, 4), 2, 3, "an update of shape"),
        ((2, 4, 5), 2, 3, "an update of shape"),
        ((2, 4, 5), 3, 4, "out of bounds"),
    ],
)
def test_wrong_arguments(shape: tuple[int, ...], starts: int, size: int, why: str) -> None:
    x = tf.cast(X, tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=why):
        update(x, [tf.ones(shape)], [index(*[0] * starts)], axes=[1], sizes=[size], places=[0])
