"""Weights that never change are packed once, for all nodes that read them."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from examples.quantized.ops import int8_dense

K, N = 96, 80


@Composite(
    "ConstantsDense",
    inputs=["x: float", "w: float", "b: float"],
    attrs=["relu: bool = true"],
    outputs=["y: float"],
)
def dense(x, w, b, relu):
    """relu(x @ wᵀ + b)."""
    y = tf.matmul(x, w, transpose_b=True) + b
    if relu:
        return tf.nn.relu(y)
    return y


@pytest.fixture(scope="module")
def arrays() -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    return normal(24, K), normal(N, K), normal(N)


def must(function: Any) -> Any:
    """Trace and run with kernels only."""

    def run(*args: Any) -> Any:
        with composite.options(backend="tvm"):
            return function(*args)

    return tf.function(run, autograph=False)


def packed() -> tuple[int, int]:
    gc.collect()
    stats = composite.stats()
    return stats["packed_constants"], stats["packed_bytes"]


def test_nodes_that_read_one_constant_share_its_packed_form(arrays: Any) -> None:
    x, w, b = arrays
    count, held = packed()

    def twice(x: Any) -> Any:
        weights = tf.constant(w)
        return dense(x, weights, b), dense(x * 2.0, weights, b)

    run = must(twice)
    once, doubled = run(x)
    np.testing.assert_allclose(once, dense.python_function(x, w, b, True), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(
        doubled, dense.python_function(2 * x, w, b, True), rtol=1e-5, atol=1e-4
    )
    assert packed()[0] == count + 1
    run(x)
    now, bytes_now = packed()
    assert now == count + 1, "the second call packs nothing"
    assert bytes_now - held >= w.nbytes
    del run, once, doubled
    assert packed()[1] == held, "what the nodes held goes with them"


def test_weights_of_quantized_layers_are_packed() -> None:
    random = np.random.default_rng(5)
    x, w = (random.integers(-128, 127, s, np.int8) for s in ((5, 40), (40, 32)))
    scale, bias = np.full(32, 1e-2, np.float32), np.arange(32, dtype=np.int32)
    attrs = {"x_scale": 0.1, "x_zero": 3, "y_scale": 0.2, "y_zero": -2}
    count, _ = packed()
    run = must(lambda x: int8_dense(x, tf.constant(w), scale, bias, **attrs))
    expected = int8_dense.python_function(x, w, scale, bias, *attrs.values(), "NONE")
    np.testing.assert_array_equal(run(x), expected)
    assert packed()[0] == count + 1


def test_another_number_of_rows_reads_the_same_form(arrays: Any) -> None:
    x, w, b = arrays
    run = must(lambda x: dense(x, tf.constant(w), b))
    for rows in (24, 7, 1, 130):
        rows_of_x = np.resize(x, (rows, K))
        expected = dense.python_function(rows_of_x, w, b, True)
        np.testing.assert_allclose(run(rows_of_x), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.slow
def test_a_variable_at_rest_is_packed_and_let_go_when_it_is_written_to(arrays: Any) -> None:
    x, w, b = arrays
    count, held = packed()
    weights, bias = tf.Variable(w), tf.Variable(b)
    run = must(lambda x: dense(x, weights, bias))

    def check(scale: float) -> None:
        expected = dense.python_function(x, scale * w, b, True)
        np.testing.assert_allclose(run(x), expected, rtol=1e-5, atol=1e-4 * scale)

    for _ in range(20):  # long enough at rest to ask for the kernel
        check(1.0)
    composite.wait()
    for _ in range(20):  # and for the kernel to be sure of that
        check(1.0)
    assert packed()[0] == count + 1
    assert packed()[1] - held >= w.nbytes
    weights.assign_add(w)  # in place, were it not for the packed form, which holds the old values
    check(2.0)
    assert packed() == (count + 1, held), "a variable that was written to is not packed at once"
    for step in range(3, 40):  # a training: every call finds other values
        weights.assign_add(w)
        check(float(step))


@pytest.mark.slow
def test_large_constants_are_packed() -> None:
    """They are measured as inputs of a graph, and served as constants."""
    random = np.random.default_rng(1)
    x, w = (random.standard_normal(shape, np.float32) for shape in ((8, 1024), (256, 1024)))
    b = np.zeros(256, np.float32)
    count, held = packed()
    run = must(lambda x: dense(x, tf.constant(w), b))
    np.testing.assert_allclose(run(x), dense.python_function(x, w, b, True), rtol=1e-5, atol=1e-3)
    composite.wait()
    assert packed()[0] == count + 1
    assert packed()[1] - held >= w.nbytes


def test_a_variable_that_is_trained_is_not_at_rest(arrays: Any) -> None:
    """It lies where it lay, since it is written to in place, and yet it is another each time."""
    x, w, b = arrays
    before = composite.stats()
    weights, bias = tf.Variable(w), tf.Variable(b)
    run = tf.function(lambda x: dense(x, weights, bias), autograph=False)
    run(x)
    composite.wait()
    for step in range(2, 60):
        weights.assign_add(w)
        expected = dense.python_function(x, step * w, b, True)
        np.testing.assert_allclose(run(x), expected, rtol=1e-5, atol=1e-4 * step)
    seen = composite.stats() - before
    assert seen["packed_constants"] == 0
    assert seen["requests"] <= 1, "and none for a kernel that has it for a constant"


def test_a_frozen_model_has_constants(arrays: Any, tmp_path: Path) -> None:
    from tensorflow.python.framework.convert_to_constants import (
        convert_variables_to_constants_v2,
    )

    x, w, b = arrays
    count, _ = packed()
    weights = tf.Variable(w)
    run = must(lambda x: dense(x, weights, b))
    frozen = convert_variables_to_constants_v2(
        run.get_concrete_function(tf.TensorSpec(x.shape, tf.float32))
    )
    (found,) = frozen(tf.constant(x))
    np.testing.assert_allclose(found, dense.python_function(x, w, b, True), rtol=1e-5, atol=1e-4)
    assert packed()[0] == count + 1


def test_gradients_with_a_constant_filter(arrays: Any) -> None:
    x, w, b = arrays

    def gradient(layer: Any) -> Any:
        def run(x: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(layer(x, tf.constant(w), b) ** 2)
            return tape.gradient(y, x)

        return tf.function(run, autograph=False)

    found = gradient(dense)(tf.constant(x))
    expected = gradient(lambda x, w, b: dense.python_function(x, w, b, True))(tf.constant(x))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def test_the_background_compiler_measures_with_constants(arrays: Any) -> None:
    x, w, b = arrays
    run = tf.function(lambda x: dense(x, tf.constant(w), b, relu=False), autograph=False)
    run(x)
    composite.wait()
    before = composite.stats()
    expected = dense.python_function(x, w, b, False)
    np.testing.assert_allclose(run(x), expected, rtol=1e-5, atol=1e-4)
    after = composite.stats()
    # Whichever was faster here: the path is decided.
    assert after["requests"] == before["requests"]


def test_the_background_compiler_measures_with_variables_at_rest(arrays: Any) -> None:
    """Vectors among them, which a graph's constants are not packed for."""
    x, w, b = arrays
    weights, bias = tf.Variable(2 * w), tf.Variable(b)
    run = tf.function(lambda x: dense(x, weights, bias), autograph=False)
    for _ in range(20):
        run(x)
        composite.wait(30)
    assert composite.wait(30), "a request is not served"
    before = composite.stats()
    expected = dense.python_function(x, 2 * w, b, True)
    np.testing.assert_allclose(run(x), expected, rtol=1e-5, atol=1e-4)
    assert composite.stats()["requests"] == before["requests"]


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_variable_at_rest_is_packed_unless_ops_are_deterministic(
    run_python: Any, deterministic: bool
) -> None:
    """That it rests is known after some calls: the path of the node would change."""
    run_python(
        f"""
import numpy as np
import tensorflow as tf
import composite
from tests.composite.ops.test_constants import dense
if {deterministic}:
    tf.config.experimental.enable_op_determinism()
x, w, b = np.ones((24, 96), np.float32), tf.Variable(tf.ones([80, 96])), np.zeros(80, np.float32)
with composite.options(backend="tvm"):
    step = tf.function(lambda x: dense(x, w, b)).get_concrete_function(x)
for _ in range(3):
    for _ in range(20):
        step(tf.constant(x))
    composite.wait()
step(tf.constant(x))
packed = composite.stats()["packed_constants"]
assert (packed == 0) == {deterministic}, packed
"""
    )
