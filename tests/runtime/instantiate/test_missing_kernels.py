"""Dtypes for which TensorFlow has no kernel on a CPU: the error is that of the op alone."""

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
def test_eager_calls_and_graphs_name_the_op_and_its_dtype(dtype: Any, name: str) -> None:
    x, y = tf.constant([5.5, -3.0], dtype), tf.constant([2.0, 2.0], dtype)
    with pytest.raises(tf.errors.NotFoundError, match="TruncateMod"):
        tf.truncatemod(x, y)
    wanted = f"(?s)'TruncateMod' OpKernel for 'CPU'.*T={name}"
    for called in (truncated_rest, tf.function(truncated_rest)):
        with pytest.raises(tf.errors.NotFoundError, match=wanted):
            called(x, y)
