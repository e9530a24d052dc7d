"""Gradients of eager calls: right for whatever differs between calls, and cheap beside the tape."""

import gc
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from composite import Composite
from composite.autodiff import backward, eager_gradient
from composite.ops.registry import OPS

pytestmark = pytest.mark.usefixtures("expansions_only")


@Composite(
    "EagerGate",
    inputs=["x: T", "w: T"],
    attrs=["scale: float = 1.0"],
    derived_attrs=["T: {float, double, bfloat16}"],
    outputs=["y: T"],
)
def gate(x, w, scale):
    h = x * w
    return h * tf.math.sigmoid(h / scale)


X = tf.constant(np.random.default_rng(0).standard_normal((2, 3)), tf.float32)
W = tf.constant([[0.5, -1.0, 2.0]])


def gradients(function, *inputs, of=None):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return tape.gradient(y, inputs if of is None else of)


def assert_right(x=X, w=W, of=None, **attrs):
    found = gradients(lambda x, w: gate(x, w, **attrs), x, w, of=of)
    expected = gradients(lambda x, w: gate.python_function(x, w, **attrs), x, w, of=of)
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(tf.cast(a, tf.double), tf.cast(b, tf.double), rtol=1e-2)
        assert a.dtype == b.dtype


def test_what_differs_between_calls():
    for _ in range(2):
        assert_right()
        assert_right(X[:1])
        assert_right(tf.zeros([0, 3]))
        assert_right(X[0])
        assert_right(scale=2.0)
        assert_right(scale=2)
        assert_right(scale=np.float32(3.0))
        assert_right(of=X)
        assert_right(of=W)
        assert_right(tf.cast(X, tf.double), tf.cast(W, tf.double))
        assert_right(tf.cast(X, tf.bfloat16), tf.cast(W, tf.bfloat16))


@Composite("EagerDivide", inputs=["x: float"], attrs=["by: float"], outputs=["y: float"])
def divide(x, by):
    return x / by


@pytest.mark.parametrize("number", [float, np.float32])
def test_zeros_of_both_signs_are_two_attributes(number):
    x = tf.constant(1.0)
    slopes = [gradients(lambda x, by=by: divide(x, by=number(by)), x)[0] for by in (0.0, -0.0)]
    assert list(map(float, slopes)) == [np.inf, -np.inf]


def python_calls(function):
    """How many Python functions are called meanwhile."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def test_a_call_takes_less_python_than_the_same_ops_by_hand():
    def one(x, w):
        return tf.raw_ops.Mul(x=x, y=w)

    def plain(x, w):
        return gate.python_function(x, w, 1.0)

    for function in (gate, plain, one):
        gradients(function, X, W)
    ours, plainly, least = (
        python_calls(lambda f=function: gradients(f, X, W)) for function in (gate, plain, one)
    )
    assert ours < plainly / 2
    assert ours < least


def test_the_author_gives_a_gradient_later():
    @Composite("EagerOwn", inputs=["x: float"], outputs=["y: float"])
    def op(x):
        return x * x

    x = tf.constant(3.0)
    assert float(gradients(op, x)[0]) == 6
    op.gradient(lambda op, upstream: upstream * 7.0)
    assert float(gradients(op, x)[0]) == 7


def test_functions_that_run_eagerly():
    tf.config.run_functions_eagerly(True)
    try:
        slopes = tf.function(lambda: gradients(gate, X, W))()
    finally:
        tf.config.run_functions_eagerly(False)
    np.testing.assert_allclose(slopes[0], gradients(gate, X, W)[0])


def test_backwards_of_many_attributes_are_forgotten(monkeypatch):
    @Composite("EagerMany", inputs=["x: float"], attrs=["scale: float"], outputs=["y: float"])
    def op(x, scale):
        return tf.tanh(x * scale) * scale

    def differentiated(scales):
        for scale in scales:
            x = tf.constant([1.0, 2.0])
            (found,) = gradients(lambda x, s=scale: op(x, scale=s), x)
            (expected,) = gradients(lambda x, s=scale: op.python_function(x, s), x)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        backward.differentiate.cache_clear()
        eager_gradient._plans.clear()
        gc.collect()
        names = map(str, context.context().list_function_names())
        return sum("backward_EagerMany" in name for name in names)

    monkeypatch.setattr(eager_gradient, "LASTING", 2)
    few = differentiated([0.5, 1.0, 1.5])
    assert few == 2
    assert differentiated(np.arange(2.0, 6.0, 0.5)) == few
    assert sum("EagerMany" in name for name in OPS._functions) == 2


def test_functions_of_branches_and_loops_are_forgotten_too(monkeypatch):
    @Composite("EagerDeep", inputs=["x: float"], attrs=["scale: float"], outputs=["y: float"])
    def op(x, scale):
        y = x
        if tf.reduce_sum(x) > 0.0:
            y = tf.tanh(x * scale)
        i = tf.constant(0)
        while i < 2:
            y = tf.sin(y * scale)
            i += 1
        return y

    def by_hand(x, scale):
        y = tf.tanh(x * scale)
        return tf.sin(tf.sin(y * scale) * scale)

    def forget():
        backward.differentiate.cache_clear()
        eager_gradient._plans.clear()
        gc.collect()

    def twice(function, scale):
        """The second gradient, taken after what the first one used could be forgotten."""
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as outer:
            outer.watch(x)
            (slope,) = gradients(lambda x: function(x, scale=scale), x)
        forget()
        return slope, outer.gradient(slope, x)

    def known():
        forget()
        names = map(str, context.context().list_function_names())
        return sum("EagerDeep" in name and "__wrapped__" not in name for name in names)

    monkeypatch.setattr(eager_gradient, "LASTING", 0)
    before = known()
    for scale in (0.5, 1.5, 0.5):
        for found, expected in zip(twice(op, scale), twice(by_hand, scale), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert known() == before
