"""Kernels that take the value of a scalar input for a size: made, checked, measured, run."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from composite.aot import prebuild, stated_calls
from composite.compiler.tvm.target import Target

X = tf.constant(np.random.default_rng(0).standard_normal((9, 8)), tf.float32)
CALL = {"x": ("float32", ("rows", 8)), "i": ("int32", ("rows",)), "n": ("int32", ())}
I = tf.constant([0, 3, 1, 3, 2, -1, 0, 0, 3])  # noqa: E741


@Composite("SizedSegments", inputs=["x: float", "i: int32", "n: int32"], outputs=["y: float"])
def segments(x, i, n):
    """Means of rows."""
    return tf.math.unsorted_segment_mean(x, i, n)


def gradient(function: Any, n: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = function(X, I, n) ** 2
    return tape.gradient(y, X)


def test_values_that_vary_have_one_kernel() -> None:
    composite.wait()
    composite.stats(reset=True)
    for n in (4, 5, 17):
        with composite.options(backend="tvm"):
            found = segments(X, I, n)
        np.testing.assert_allclose(found, segments.python_function(X, I, n), rtol=1e-6, atol=1e-6)
    counted = composite.stats()
    assert counted["kernel_launches"] == 3
    assert counted["expansion_runs"] == 0
    assert counted["requests"] == 3  # one that did not know of the value
    composite.wait()
    explained = composite.explain(segments, X, I, 40)
    assert "for shapes [9,8], [9], = s0:" in explained.reason
    assert "is not known" in composite.explain(segments, X, I, tf.TensorSpec([], tf.int32)).reason


def test_gradients_have_kernels() -> None:
    step = tf.function(lambda n: gradient(segments, n))
    for run in (lambda n: gradient(segments, n), step):
        for n in (4, 5):
            found = run(tf.constant(n))
            expected = gradient(segments.python_function, n)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
            composite.wait()


def test_a_size_of_one() -> None:
    """Has a kernel of its own, in whose check all numbers of segments must be 0."""
    with composite.options(backend="tvm"):
        found = segments(X, I * 0, 1)
    composite.wait()
    with composite.options(backend="tvm"):
        found = segments(X, I * 0, 1)
    assert "for shapes [9,8], [9], = 1:" in composite.explain(segments, X, I, 1).reason
    np.testing.assert_allclose(found, tf.reduce_mean(X, 0, keepdims=True), rtol=1e-6, atol=1e-6)


def test_a_stated_call_has_the_value_as_a_dim() -> None:
    request = prebuild.sized(segments, stated_calls.request(segments, CALL), Target.host())
    assert request.in_shapes == (("s0", 8), ("s0",), ("s1",))
    assert request.size_inputs == (2,)
    assert stated_calls.described(request) == "s0x8, s0, size s1"


def test_a_value_that_is_no_size_is_tensorflow_s_error() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        segments(X, I, -1)
