"""Branches that a tensor chooses, against TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import NotCovered
from tests.compiler.tvm.read.cells import numbers


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.int32])
@pytest.mark.parametrize("shape", [(3, 5), (0, 4), ()])
def test_both_ways(compiler: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Special numbers of the branch that is not taken do not come out."""

    def function(x: Any, limit: Any) -> Any:
        return tf.cond(limit > 0, lambda: (x + x, limit), lambda: (x - 1, limit * 2))

    x = np.full(shape, 3, dtype)
    for limit in (1, -1):
        arrays = [x, np.array(limit, dtype)]
        expected = [y.numpy() for y in function(*map(tf.constant, arrays))]
        loaded = compiler.compile(function, arrays)
        results = loaded(arrays, [y.shape for y in expected], [y.dtype for y in expected])
        for result, wanted in zip(results, expected, strict=True):
            assert result.tobytes() == wanted.tobytes()

    def root(x: Any) -> Any:
        return tf.cond(tf.reduce_all(x >= 0), lambda: tf.sqrt(x), lambda: x / 0.0)

    if dtype in (np.float32, np.float64):
        for sign in (1, -1):
            compiler.compare(root, (x * sign).astype(dtype), rtol=1e-6)


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 7])
def test_one_of_several(compiler: Any, number: int) -> None:
    def function(x: Any, i: Any) -> Any:
        return tf.switch_case(i, [lambda: x, lambda: tf.exp(x), lambda: tf.zeros_like(x)])

    compiler.compare(function, *numbers((2, 9)), np.array(number, np.int32), rtol=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
def test_gradients_and_nested_branches(compiler: Any, sign: int) -> None:
    def gradients(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch((x, w))
            total = tf.reduce_sum(x)

            def product() -> Any:
                return tf.cond(total > 1e6, lambda: x, lambda: tf.tanh(x @ w))

            y = tf.cond(total > 0, product, lambda: x * 2)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, (x, w))

    x, w = numbers((4, 6), (6, 6))
    compiler.compare(tf.function(gradients), np.abs(x) * sign, w, rtol=1e-5, atol=1e-6)


def test_in_a_loop(compiler: Any) -> None:
    def function(x: Any) -> Any:
        total = x[0]
        for t in tf.range(1, 5):
            total = tf.cond(total[0] > 1, lambda: total - x[t], lambda: total + x[t])  # noqa: B023
        return total

    compiler.compare(tf.function(function), np.abs(numbers((5, 3))[0]) * 3, rtol=1e-6)


def test_what_is_known_is_read_alone(compiler: Any) -> None:
    def function(x: Any) -> Any:
        return tf.raw_ops.StatelessIf(
            cond=tf.constant(True),
            input=[x],
            Tout=[tf.float32],
            then_branch=tf.function(tf.exp).get_concrete_function(tf.TensorSpec([3])),
            else_branch=tf.function(lambda x: x[:2]).get_concrete_function(tf.TensorSpec([3])),
        )[0]

    compiler.compare(function, *numbers((3,)), rtol=1e-6)


@pytest.mark.parametrize(
    ("branch", "reason"),
    [
        (lambda x: tf.gather(x, tf.cast(x[:, 0], tf.int32)), "only one branch may have"),
        (lambda x: tf.concat([x, x], 0), "shapes"),
        (lambda x: tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * y + x), [0, x])[1],
         "a loop in a branch"),
    ],
)  # fmt: skip
def test_what_is_not_covered(compiler: Any, branch: Any, reason: str) -> None:
    def function(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: branch(x), lambda: x)

    with pytest.raises(NotCovered, match=reason):
        compiler.compile(function, numbers((4, 4)))
