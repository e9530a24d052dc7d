"""Functions that are traced once for several functions."""

import numpy as np
import pytest
import tensorflow as tf

from composite.acceleration.tracing import Known, traced


def _counted(function):
    """The function, and a list that grows with each time that it is traced."""
    traces = []

    def call(*args, **kwargs):
        traces.append(args)
        return function(*args, **kwargs)

    return call, traces


@pytest.mark.parametrize("jit_compile", [None, True])
def test_the_same_arguments_are_not_traced_again(jit_compile):
    call, traces = _counted(lambda x, y: {"sum": x + y, "all": [x, y * 2.0]})
    given = tf.ones((2, 3)), np.ones((2, 3), np.float32)
    known = Known(tf.function(call).get_concrete_function(*given))
    again = traced(call, "again", jit_compile=jit_compile, known=known)
    found = again(*given)
    assert len(traces) == 1
    np.testing.assert_array_equal(found["sum"], np.full((2, 3), 2.0))
    np.testing.assert_array_equal(found["all"][1], np.full((2, 3), 2.0))


@pytest.mark.parametrize(
    "others",
    [
        (tf.ones((4, 3)), 2),  # another shape
        (tf.ones((2, 3), tf.float64), 2),  # another dtype
        (tf.ones((2, 3)), 3),  # another value of Python's
        (tf.ones((2, 3)), tf.constant(2)),  # a tensor in its place
        ([tf.ones((2, 3))], 2),  # another structure
    ],
)
def test_other_arguments_are_traced(others):
    call, traces = _counted(
        lambda x, n: tf.nest.map_structure(lambda y: y * tf.cast(n, y.dtype), x)
    )
    known = Known(tf.function(call).get_concrete_function(tf.ones((2, 3)), 2))
    found = traced(call, "other", known=known)(*others)
    assert len(traces) == 2
    wanted = tf.nest.map_structure(lambda y: y.numpy() * int(others[1]), others[0])
    tf.nest.map_structure(np.testing.assert_array_equal, found, wanted)


def test_python_that_depends_on_tensors_is_converted_in_both_traces():
    def call(x):
        if tf.reduce_sum(x) > 0:
            return x
        return -x

    known = Known(tf.function(call).get_concrete_function(tf.ones(2)))
    again = traced(call, "converted", known=known)
    for x in (tf.ones(2), -tf.ones(2), tf.ones(3), -tf.ones(3)):
        np.testing.assert_array_equal(again(x), np.ones(x.shape))


def test_variables_and_gradients_are_those_of_the_function():
    variable = tf.Variable([2.0, 3.0])

    @tf.function
    def inner(x):
        return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * variable), (0, x))[1]

    def call(x):
        return inner(x) + x

    known = Known(tf.function(call).get_concrete_function(tf.ones(2)))
    again = traced(call, "again", known=known)
    with tf.GradientTape(persistent=True) as tape:
        y = again(tf.ones(2))
    np.testing.assert_array_equal(y, [5.0, 10.0])
    np.testing.assert_array_equal(tape.gradient(y, variable), [4.0, 6.0])
    variable.assign([1.0, 1.0])
    np.testing.assert_array_equal(again(tf.ones(2)), [2.0, 2.0])
