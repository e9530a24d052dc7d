"""Gradients that nobody wrote, against the tape over the Python function."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite, options
from composite.autodiff import backward
from composite.binding import native
from tests.composite.dense_ops import dense, scale, two_layers
from tests.composite.gradient_ops import rounds

RANDOM = np.random.default_rng(1)


def normal(*shape):
    return tf.constant(RANDOM.standard_normal(shape).astype(np.float32))


def gradients(function, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return tape.gradient(y, inputs)


def assert_close(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("act", ["", "RELU", "RELU6", "TANH"])
@pytest.mark.parametrize("traced", [False, True])
def test_against_the_python_function(act, traced):
    inputs = normal(5, 8), normal(4, 8), normal(4)
    call = lambda x, w, b: dense(x, w, b, act=act)  # noqa: E731
    found = gradients(tf.function(call) if traced else call, *inputs)
    assert_close(found, gradients(lambda *i: dense.python_function(*i, act), *inputs))


def test_tf_gradients_in_a_graph():
    x, w, b = normal(5, 8), normal(4, 8), normal(4)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        feed = tf.compat.v1.placeholder(tf.float32, [None, 8])
        (slope,) = tf.gradients(dense(feed, w.numpy(), b.numpy(), act="TANH"), feed)
        found = session.run(slope, {feed: x.numpy()})
    expected = gradients(lambda x: dense.python_function(x, w, b, "TANH"), x)
    assert_close([found], expected)


def test_unknown_shapes():
    x, w, b = normal(5, 8), normal(4, 8), normal(4)

    @tf.function(input_signature=[tf.TensorSpec(None)] * 3)
    def traced(x, w, b):
        return gradients(lambda *i: dense(*i, act="RELU"), x, w, b)

    assert_close(traced(x, w, b), gradients(lambda *i: dense.python_function(*i, "RELU"), x, w, b))


def test_several_outputs_and_unconnected_ones():
    inputs = normal(5, 3), normal(3, 3), normal(3)
    oracle = two_layers.python_function
    for pick in (lambda y: y[0], lambda y: y[1], lambda y: y[0] + y[1]):
        found = gradients(lambda *i, pick=pick: pick(two_layers(*i)), *inputs)
        assert_close(found, gradients(lambda *i, pick=pick: pick(oracle(*i)), *inputs))


def test_integer_inputs_have_none():
    slope, none = gradients(scale, normal(3), tf.constant(2))
    np.testing.assert_allclose(slope, np.ones(3))
    assert none is None


def test_second_order():
    x, w, b = normal(2, 3), normal(4, 3), normal(4)

    def slope(op):
        return lambda x: gradients(lambda x: op(x, w, b), x)[0]

    found = gradients(slope(lambda x, w, b: dense(x, w, b, act="TANH")), x)
    assert_close(found, gradients(slope(lambda *i: dense.python_function(*i, "TANH")), x))


def test_what_the_forward_gave_is_not_computed_again():
    inputs = normal(5, 8), normal(4, 8), normal(4)
    call = tf.function(lambda *i: gradients(lambda *j: dense(*j, act="RELU"), *i))
    graph = call.get_concrete_function(*inputs).graph.as_graph_def()
    backward = [f for f in graph.library.function if "backward_" in f.signature.name]
    ops = [node.op for f in backward for node in f.node_def]
    assert "ReluGrad" in ops
    assert "Relu" not in ops
    assert ops.count("MatMul") == 2  # for x and for w, and none to compute the output again


def test_batch_sizes_share_a_backward():
    w, b = normal(4, 8), normal(4)
    backward.differentiate.cache_clear()
    for batch in range(1, 40):
        gradients(lambda x: dense(x, w, b, act="TANH"), tf.ones([batch, 8]))
    assert backward.differentiate.cache_info().currsize <= 2


@pytest.mark.slow
def test_keras_trains():
    class Layer(tf.keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(1, shape[-1]))
            self.b = self.add_weight(shape=(1,))

        def call(self, x):
            return dense(x, self.w, self.b)

    x = np.linspace(-1, 1, 70, dtype=np.float32)[:, None]
    model = tf.keras.Sequential([Layer()])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.5), loss="mse")
    model.fit(x, 3 * x + 1, batch_size=32, epochs=30, verbose=0)
    np.testing.assert_allclose(model.predict(x, verbose=0), 3 * x + 1, atol=0.05)


def test_numeric():
    x, w, b = (tf.cast(t, tf.float64) for t in (normal(3, 2), normal(2, 2), normal(2)))
    theory, numeric = tf.test.compute_gradient(lambda *i: dense(*i, act="TANH"), [x, w, b])
    for a, n in zip(theory, numeric, strict=True):
        np.testing.assert_allclose(a, n, atol=1e-6)


def test_an_author_may_give_one():
    @Composite("TestOwnGradient", inputs=["x: float"], outputs=["y: float"])
    def own(x):
        return x * 2.0

    @own.gradient
    def gradient_of(op, slope):
        assert op.inputs[0].dtype == tf.float32
        return slope * 100.0

    (slope,) = gradients(own, tf.constant(1.0))
    assert slope.numpy() == 100
    (slope,) = gradients(tf.function(own), tf.constant(1.0))
    assert slope.numpy() == 100


def test_a_body_without_a_gradient_says_so():
    @Composite("TestNoGradient", inputs=["x: float"], outputs=["y: float"])
    def no_gradient(x):
        return tf.raw_ops.IgammaGradA(a=x, x=x)

    with pytest.raises(LookupError, match=r"TestNoGradient has no gradient, .*IgammaGradA"):
        gradients(no_gradient, tf.constant(0.5))


def test_errors_of_expansion_pass_through():
    request = dense.request(tf.TensorSpec([2, 3]), tf.TensorSpec([4, 3]), tf.TensorSpec([4]))
    unknown = replace(request, program="0" * 32)
    with pytest.raises(tf.errors.OpError, match="TestDense"):
        native.call("composite_expand", unknown.to_node_def())


@Composite(
    "GradientOfMaximum",
    inputs=["x: T"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def largest(x):
    return tf.reduce_max(tf.tanh(x) * 1.7, axis=-1)


@pytest.mark.parametrize("backend", ["tf", "tvm"])
def test_a_maximum_is_found_among_what_a_kernel_rounded(backend):
    # The gradient of Max compares its output with its input: both must come from one computation.
    x = normal(16, 7)
    with options(backend=backend):
        found = gradients(largest, x)
    assert_close([found], [gradients(largest.python_function, x)])


def test_an_output_is_fed_where_nothing_else_is_computed_again():
    # Tanh's gradient needs its output alone: neither the product nor Tanh run again.
    shapes = (5, 8), (4, 8), (4,)
    request = dense.request(*(normal(*shape) for shape in shapes), act="TANH")
    call = replace(request, in_shapes=(), constants=None)
    way = backward.Way((True,), (True,) * 3, keeps=True, lasts=True)
    found = backward.differentiate(call.serialize(), shapes, way)
    ops = [node.op for node in found.function.function.function[0].node_def]
    assert found.saving_forward is None
    assert "TanhGrad" in ops and "Tanh" not in ops and ops.count("MatMul") == 2


def test_loops_with_one_condition_keep_what_each_needs():
    x = tf.constant([0.5, 2.0])
    for deep in (False, True):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rounds(x, deep=deep)
        ours = tape.gradient(y, x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rounds.python_function(x, deep)
        np.testing.assert_allclose(ours, tape.gradient(y, x), rtol=1e-6)
