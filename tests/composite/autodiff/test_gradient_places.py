"""Where a gradient may be taken: in loops and branches of the user, in graphs of TF1, in Keras."""

import numpy as np
import pytest
import tensorflow as tf

from tests.composite import gradient_ops as ops

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("expansions_only")]

X, W = tf.constant([[0.5, -1.0], [2.0, 0.25]]), tf.constant([[1.5, 0.5], [-0.5, 1.0]])
OPS = [ops.tanh, ops.branch, ops.loop]


def gradients(function, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return tape.gradient(y, inputs)


def assert_close(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def descend(op):
    """Gradient descent in a loop of TensorFlow's, and what a branch makes of it."""

    def step(i, x):
        (slope, _) = gradients(op, x, W)
        return i + 1, x - 0.01 * slope

    _, x = tf.while_loop(lambda i, x: i < 3, step, [tf.constant(0), X])
    return tf.cond(x[0, 0] > 100.0, lambda: x, lambda: gradients(op, x, W)[1])


@pytest.mark.parametrize("op", OPS)
def test_gradients_inside_a_loop_and_a_branch(op):
    found = tf.function(lambda: descend(op), autograph=False)()
    assert_close([found], [descend(op.python_function)])


@pytest.mark.parametrize("op", OPS)
def test_gradients_through_a_loop_and_a_branch(op):
    def twice(op):
        def call(x, w):
            _, x = tf.while_loop(
                lambda i, x: i < 2, lambda i, x: (i + 1, tf.sin(op(x, w))), [tf.constant(0), x]
            )
            return tf.cond(x[0, 0] > 0.0, lambda: op(x, w), lambda: op(w, x))

        return call

    found = tf.function(lambda: gradients(twice(op), X, W), autograph=False)()
    assert_close(found, gradients(twice(op.python_function), X, W))


@pytest.mark.parametrize("op", OPS)
def test_second_order_through_a_loop(op):
    def call(op):
        def slope(x, w):
            _, y = tf.while_loop(
                lambda i, y: i < 2, lambda i, y: (i + 1, tf.sin(op(y, w))), [tf.constant(0), x]
            )
            return y

        return lambda x, w: gradients(slope, x, w)

    found = tf.function(lambda: gradients(call(op), X, W), autograph=False)()
    assert_close(found, gradients(call(op.python_function), X, W))


def in_tensorflow_1(op):
    """Both gradients, and that of the first for w, where a dim is unknown."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 2])
        w = tf.constant(W.numpy())
        slopes = tf.gradients(op(x, w), [x, w])
        (second,) = tf.gradients(slopes[0], w)
        return session.run([*slopes, second], {x: X.numpy()})


@pytest.mark.parametrize("op", OPS)
def test_a_graph_of_tensorflow_1(op):
    expected = gradients(op.python_function, X, W)
    (second,) = gradients(lambda w: gradients(op.python_function, X, w)[0], W)
    assert_close(in_tensorflow_1(op), [*expected, second])


def test_hessians_of_tensorflow_1():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.constant([0.5, -1.0])
        found = session.run(tf.hessians(ops.tanh(x, x), x)[0])
    expected = gradients(
        lambda x: gradients(lambda x: tf.tanh(x * x) * x, x)[0], tf.constant([0.5, -1.0])
    )
    assert_close([np.diag(found)], expected)


def test_a_persistent_tape_is_asked_twice():
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([X, W])
        y, z = ops.two(X, W)
        total = tf.reduce_sum(y) + tf.reduce_sum(z)
    with tf.GradientTape(persistent=True) as oracle:
        oracle.watch([X, W])
        y_, z_ = ops.two.python_function(X, W)
        total_ = tf.reduce_sum(y_) + tf.reduce_sum(z_)
    for target, expected in ((y, y_), (z, z_), (total, total_), (y, y_)):
        assert_close(tape.gradient(target, [X, W]), oracle.gradient(expected, [X, W]))


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_a_custom_gradient_around(wrap):
    @tf.custom_gradient
    def clipped(x):
        y = ops.tanh(x, W)

        def backward(upstream):
            (slope,) = tf.gradients(y, x, upstream) if not tf.executing_eagerly() else (upstream,)
            return tf.clip_by_value(slope, -0.25, 0.25)

        return y, backward

    found = wrap(lambda: gradients(clipped, X))()
    slope = (
        tf.ones_like(X) if wrap is not tf.function else gradients(lambda x: ops.tanh(x, W), X)[0]
    )
    assert_close(found, [tf.clip_by_value(slope, -0.25, 0.25)])


@pytest.mark.slow
def test_training_reaches_the_weights_of_the_python_function():
    class Layer(tf.keras.layers.Layer):
        def __init__(self, op):
            super().__init__()
            self.op = op

        def build(self, shape):
            self.w = self.add_weight(shape=(1, shape[-1]), initializer="ones")

        def call(self, x):
            return self.op(x, self.w + tf.zeros_like(x))

    x = np.linspace(-1, 1, 40, dtype=np.float32).reshape(20, 2)
    weights = []
    for op in (ops.tanh, ops.tanh.python_function):
        model = tf.keras.Sequential([Layer(op)])
        model.compile(optimizer=tf.keras.optimizers.Adam(0.05), loss="mse")
        model.fit(x, x * x, batch_size=7, epochs=3, shuffle=False, verbose=0)
        weights.append(model.get_weights()[0])
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-4)
    assert not np.allclose(weights[0], 1)


def test_functions_of_two_backwards_do_not_share_names():
    # TensorFlow names what it makes of a loop after the loop: "..._rewritten", in every graph.
    def second(op):
        return gradients(lambda w: gradients(op, X, w)[0], W)

    traced = tf.function(lambda: second(ops.loop), autograph=False)()
    assert_close(traced, second(ops.loop.python_function))
    assert_close(in_tensorflow_1(ops.loop)[2:], second(ops.loop.python_function))
