"""What is never below zero is found where NumPy's rules say so, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from composite.compiler.tvm.passes.signs import never_negative
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of


def _is_found(function: Any) -> bool:
    made = read_function(library_of(function, [tf.TensorSpec([4, 4], tf.half)]), [(4, 4)])
    (output,) = made.outputs
    return output in never_negative(made.outputs)


@pytest.mark.parametrize(
    "function",
    [
        tf.exp,
        lambda x: x * x,
        lambda x: tf.square(x) + 0.5,
        lambda x: tf.reduce_sum(tf.abs(x), 1) * 2.0,
        lambda x: tf.reduce_mean(tf.nn.relu(x)),
        lambda x: tf.transpose(tf.abs(x))[1:],
        lambda x: tf.maximum(x, 0.0),
        lambda x: tf.minimum(tf.abs(x), 3.0),
        lambda x: tf.math.squared_difference(x, 1.0) / tf.exp(x),
    ],
)
def test_found(function: Any) -> None:
    assert _is_found(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: -x,
        lambda x: x * (x + 1.0),
        lambda x: tf.square(x) - 0.5,
        lambda x: tf.square(x) * -1.0,
        lambda x: tf.reduce_sum(x * 2.0, 1),
        lambda x: tf.minimum(tf.abs(x), -3.0),
        lambda x: tf.maximum(x, -1.0),
        lambda x: tf.abs(x) // 2.0 - 1.0,
    ],
)
def test_not_found(function: Any) -> None:
    assert not _is_found(function)
