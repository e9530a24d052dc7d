"""What may go into a gradient, and what may come out: the kinds of tensors, and none."""

import numpy as np
import pytest
import tensorflow as tf

from tests.composite import gradient_ops as ops

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("expansions_only")]

X, W = tf.constant([[0.5, -1.0], [2.0, 0.25]]), tf.constant([[1.5, 0.5], [-0.5, 1.0]])


def gradients(function, *inputs, **options):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return tape.gradient(y, inputs, **options)


def assert_close(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(tf.convert_to_tensor(a), tf.convert_to_tensor(b), rtol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_an_input_that_is_not_read_has_none(wrap):
    slope, none = wrap(lambda: gradients(lambda x, w: ops.unused(x, w)[0], X, W))()
    np.testing.assert_allclose(slope, 2 * X)
    assert none is None
    slopes = wrap(lambda: gradients(ops.unused, X, W, unconnected_gradients="zero"))()
    assert_close(slopes, [2 * X, tf.zeros_like(W)])


def test_an_output_of_constants_has_none():
    with tf.GradientTape() as tape:
        tape.watch(X)
        _, constant = ops.unused(X, W)
    # The tape sees one op with several outputs, as with any op of TensorFlow, and gives zeros.
    np.testing.assert_array_equal(tape.gradient(constant, X), tf.zeros_like(X))


def test_a_list_and_an_integer():
    k = tf.constant(3)
    for pick in (slice(None), slice(1)):
        assert_close(
            gradients(lambda x, w: ops.listed([x, w, x], k)[pick], X, W),  # noqa: B023
            gradients(lambda x, w: ops.listed.python_function([x, w, x], k)[pick], X, W),  # noqa: B023
        )
    with tf.GradientTape() as tape:
        tape.watch([X, k])
        ys = ops.listed([X, W], k)
    assert tape.gradient(ys, k) is None


def test_a_list_of_types_has_none_for_the_integers():
    x, k = tf.constant(0.5, tf.float64), tf.constant(3)
    with tf.GradientTape() as tape:
        tape.watch([x, k])
        y = ops.types([x, k])
    slope, none = tape.gradient(y, [x, k])
    np.testing.assert_allclose(slope, 3 / np.cosh(0.5) ** 2)
    assert none is None


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_complex_numbers(wrap):
    z = tf.constant([1 + 2j, 0.5 - 1j], tf.complex128)
    for pick in (lambda y: y[0], lambda y: y[1], lambda y: y):
        slope = lambda op, pick=pick: gradients(lambda z: pick(op(z)), z)  # noqa: E731
        found = wrap(lambda slope=slope: slope(ops.complex_product))()
        assert_close(found, slope(ops.complex_product.python_function))


def test_complex_numbers_at_second_order():
    z = tf.constant([1 + 2j, 0.5 - 1j], tf.complex128)

    def length(op):
        def of(z):
            slope = gradients(lambda z: op(z)[0], z)[0]
            return tf.reduce_sum(tf.abs(slope) ** 2)

        return of

    found = gradients(length(ops.complex_product), z)
    assert_close(found, gradients(length(ops.complex_product.python_function), z))


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_variables(wrap):
    v = tf.Variable(W)

    def slope(op):
        with tf.GradientTape() as tape:
            y = op(X, v)
        return tape.gradient(y, v)

    found = wrap(lambda: slope(ops.tanh))()
    assert_close([found], [slope(ops.tanh.python_function)])


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_a_resource_is_read_and_has_none(wrap):
    # As tf.raw_ops.ReadVariableOp of a handle: TensorFlow itself gives none for the variable.
    v = tf.Variable(3.0)
    x = tf.constant(0.5)

    def slopes():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = ops.read(v.handle, x)
        return tape.gradient(y, [x, v])

    slope, none = wrap(slopes)()
    assert float(slope) == 3.0
    assert none is None


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_what_a_variable_holds_has_not_the_shape_of_its_handle(wrap):
    v, x = tf.Variable([3.0, 4.0]), tf.constant([0.5, 2.0])

    def slopes():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = ops.scaled(v, x)
        return tape.gradient(y, [x, v])

    slope, none = wrap(slopes)()
    np.testing.assert_array_equal(slope, [3.0, 4.0])
    assert none is None


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
@pytest.mark.parametrize("op", [ops.gather, ops.rows])
def test_an_embedding(op, wrap):
    table = tf.Variable(tf.reshape(tf.range(10.0), [5, 2]))

    def slope(function):
        with tf.GradientTape() as tape:
            y = function(table, tf.constant([0, 2, 0]))
            loss = tf.reduce_sum(y * y)
        return tf.convert_to_tensor(tape.gradient(loss, table))

    assert_close([wrap(lambda: slope(op))()], [slope(op.python_function)])


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_slices_that_come_in(wrap):
    # The gradient of the outer tf.gather is IndexedSlices, and goes into the op's gradient.
    def slopes(op):
        return gradients(lambda x, w: tf.gather(op(x, w), [1, 1]), X, W)

    found = wrap(lambda: slopes(ops.tanh))()
    assert_close(found, slopes(ops.tanh.python_function))


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_an_empty_tensor(wrap):
    empty = tf.zeros([0, 2])
    for slope in wrap(lambda: gradients(ops.tanh, empty, tf.zeros([0, 2])))():
        assert slope.shape == [0, 2]


def test_a_shape_that_is_only_known_when_it_runs():
    @tf.function(input_signature=[tf.TensorSpec(None), tf.TensorSpec([None, 2])])
    def slopes(x, w):
        return gradients(ops.tanh, x, w)

    for rows in (1, 2):
        x, w = X[:rows], W[:rows]
        assert_close(slopes(x, w), gradients(ops.tanh.python_function, x, w))
