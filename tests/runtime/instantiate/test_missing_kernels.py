"""Dtypes for which TensorFlow has no kernel on a CPU: the error is one of TensorFlow's."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from composite import Composite


@Composite(
    "TestTruncatedRest",
    inputs=["x: T", "y: T"],
    outputs=["z: T"],
    derived_attrs=["T: {half, bfloat16, float}"],
)
def truncated_rest(x: Any, y: Any) -> Any:
    return tf.truncatemod(x, y) * 2.0


@pytest.mark.parametrize(("dtype", "name"), [(tf.float16, "DT_HALF"), (tf.bfloat16, "DT_BFLOAT16")])
def test_errors_name_the_op_and_its_dtype(dtype: Any, name: str) -> None:
    x, y = tf.constant([5.5, -3.0], dtype), tf.constant([2.0, 2.0], dtype)
    with pytest.raises(tf.errors.NotFoundError, match="TruncateMod"):
        tf.truncatemod(x, y)
    with pytest.raises(tf.errors.NotFoundError, match=f"(?s)'TruncateMod'.*T={name}"):
        truncated_rest(x, y)
    # TensorFlow itself finds no device in a graph that has the op's expansion in place of its node.
    classes = (tf.errors.NotFoundError, tf.errors.InvalidArgumentError)
    with pytest.raises(classes, match=f"(?s)'TruncateMod'.*T={name}"):
        tf.function(truncated_rest)(x, y)
