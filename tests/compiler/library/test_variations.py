"""The library refuses what TensorFlow refuses: a draw of changed calls, and the op of some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.compiler.library.variations import differences

ROWS, ROW, COLUMN = np.ones([3, 4], np.float32), np.ones(4, np.float32), np.ones([3, 1], np.float32)
TRUE = np.array([True])


def test_a_draw_of_changed_calls() -> None:
    assert differences(seed=15, count=1500) == []


@pytest.mark.parametrize(
    ("text", "inputs", "message"),
    [
        ("tf.clip_by_value(x, y, 9.0)", [ROW, ROWS], "would broadcast"),
        ("tf.clip_by_value(x, 0.0, y)", [COLUMN, ROWS], "would broadcast"),
        ("tf.clip_by_norm(x, y)", [ROW, ROWS], "would broadcast"),
        ("tf.boolean_mask(x, y)", [ROWS, TRUE], "does not have the shape"),
        ("tf.gather_nd(x, tf.cast(y, tf.int32), 1)", [ROWS, ROWS[:2]], "in their first 1 dims"),
        ("tf.nn.separable_conv2d(x[None, ..., None], y, y, [1] * 4, 'SAME')",
         [ROWS, np.ones([3, 3, 1, 1], np.float32)], "the pointwise filter"),
        ("tf.gather(x, tf.cast(y, tf.int32)[0], batch_dims=2)", [ROW, ROW], "batch_dims is 2"),
        ("tf.gather_nd(x, [[0]], batch_dims=2)", [ROW], "below the ranks"),
        ("tf.image.flip_up_down(x)", [ROWS], "an image has rank 3"),
        ("tf.repeat(x, tf.cast(y, tf.int32), 0)", [ROWS, COLUMN], "a number or a vector"),
    ],
)  # fmt: skip
def test_the_op_refuses_shapes_that_tensorflow_refuses(
    text: str, inputs: list[Any], message: str, case: Callable[[str], Any]
) -> None:
    tensors = [tf.constant(value) for value in inputs]
    op = case(text).op(tensors, "float32")
    with composite.options(backend="tf"):
        for call in (op, tf.function(op.__call__)):
            with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
                call(*tensors)


def test_limits_that_broadcast_to_the_tensor_are_taken(case: Callable[[str], Any]) -> None:
    case("tf.clip_by_value(x, y, z)").check(ROWS * 7, COLUMN, ROW * 2, traced=True)
