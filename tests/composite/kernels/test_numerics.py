"""numerics="strict" and the error of a kernel: what docs/numerics.md promises."""

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite


@Composite("TestRounding", inputs=["x: float", "w: float", "b: float"], outputs=["y: float"])
def rounding(x, w, b):
    """A dense layer, whose sums a kernel makes in another order.

    Not an op that other tests call: their shapes would be measured along with those of here.
    """
    return tf.tanh(tf.matmul(x, w, transpose_b=True) + b)


@Composite("TestShuffled", inputs=["x: T"], derived_attrs=["T: {float, int32}"], outputs=["y: T"])
def shuffled(x):
    """Moves data: rows to columns, twice."""
    return tf.tile(tf.transpose(x), [1, 2])


@Composite("TestCounted", inputs=["x: int32"], outputs=["y: int32"])
def counted(x):
    """Computes with integers."""
    return x * x + 1


RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((13, 96)).astype(np.float32)
W = RANDOM.standard_normal((33, 96)).astype(np.float32)
B = RANDOM.standard_normal(33).astype(np.float32)


@pytest.fixture(scope="module")
def kernel():
    """There is a kernel for these shapes, with other bits."""
    with composite.options(backend="tvm"):
        y = rounding(X, W, B).numpy()
    assert (y != rounding.python_function(X, W, B).numpy()).any()


def test_strict_has_the_bits_of_the_ops(kernel):
    expected = rounding.python_function(X, W, B).numpy()
    in_graph = tf.function(lambda x: rounding.python_function(x, W, B) * 2.0)(X).numpy()
    before = composite.stats()
    with composite.options(numerics="strict"):
        eager = rounding(X, W, B).numpy()
        traced = tf.function(lambda x: rounding(x, W, B) * 2.0)
        told = composite.explain(rounding, X, W, B)
        assert traced(X).numpy().tobytes() == in_graph.tobytes()
    assert eager.tobytes() == expected.tobytes()
    # The choice is in the node: what is outside of the block has no say.
    assert traced(X).numpy().tobytes() == in_graph.tobytes()
    assert (composite.stats() - before)["kernel_launches"] == 0
    assert (told.path, told.reason) == ("expansion", 'numerics="strict"')


def test_strict_gradients_have_the_bits_of_the_ops(kernel):
    def slope(function):
        with tf.GradientTape() as tape:
            w = tf.Variable(W)
            y = function(w)
        return tape.gradient(y, w).numpy()

    expected = slope(lambda w: rounding.python_function(X, w, B))
    before = composite.stats()
    with composite.options(numerics="strict"):
        found = slope(lambda w: rounding(X, w, B))
    assert (composite.stats() - before)["kernel_launches"] == 0
    assert found.tobytes() == expected.tobytes()


def test_must_and_strict_contradict_each_other_for_a_kernel_that_rounds(kernel):
    with composite.options(backend="tvm", numerics="strict"):
        for call in (rounding, lambda *a: composite.explain(rounding, *a)):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"within .* of \|y\| against"):
                call(X, W, B)
    with composite.options(numerics="strict"), composite.options(backend="tf"):
        rounding(X, W, B)


@pytest.mark.parametrize("op", [shuffled, counted])
def test_must_and_strict_agree_for_a_kernel_that_is_exact(op):
    x = tf.constant(RANDOM.integers(-100, 100, (5, 7)), tf.int32)
    before = composite.stats()
    with composite.options(backend="tvm", numerics="strict"):
        y = op(x)
        told = composite.explain(op, x)
    assert (composite.stats() - before)["kernel_launches"] == 1
    np.testing.assert_array_equal(y, op.python_function(x))
    assert told.path == "kernel"
    assert told.details["exact"]
    assert "bit for bit" in told.reason


def test_moved_numbers_keep_their_bits():
    x = np.array([[np.nan, -0.0, np.inf], [1e-40, -np.inf, 3.0]], np.float32)
    x[0, 0] = np.frombuffer(np.uint32(0x7FC01234).tobytes(), np.float32)[0]
    with composite.options(backend="tvm", numerics="strict"):
        assert shuffled(x).numpy().tobytes() == shuffled.python_function(x).numpy().tobytes()


def test_explain_has_the_error_and_the_times(kernel):
    assert composite.wait(120)
    told = composite.explain(rounding, X, W, B)
    assert told.error is not None
    assert 0 < told.error < 1e-3
    assert told.error_unit == "|y| against float64 on adversarial inputs"
    assert f"within {told.error:.2g} of {told.error_unit}" in told.reason
    assert [point.size for point in told.measured] == [1]
    assert told.measured[0].kernel_us == told.kernel_us
    with composite.options(backend="tf"):
        told = composite.explain(rounding, X, W, B)
    assert (told.error, told.measured) == (None, ())
