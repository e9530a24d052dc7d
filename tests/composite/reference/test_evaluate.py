"""Expansions run node by node, against the functions they came from."""

import weakref
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.ops import call, functions
from composite.reference import evaluate


def traced(function, inputs):
    """The function for inputs like these, and its body as it is walked."""
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in inputs]
    concrete = tf.function(function, input_signature=specs, autograph=False).get_concrete_function()
    library = concrete.graph.as_graph_def().library
    whole = FunctionDefLibrary(function=[concrete.function_def, *library.function])
    return concrete, functions.body(whole)


def both(function, *inputs):
    """What `function` gives when it is walked and when TensorFlow runs it."""
    concrete, source = traced(function, inputs)
    found = evaluate.evaluate(source, inputs)
    return [y.numpy() for y in found], [y.numpy() for y in tf.nest.flatten(concrete(*inputs))]


def loop(x):
    return tf.while_loop(lambda i, _: i < 5, lambda i, v: (i + 1, v * 2.0), [0, x])


def several_outputs(x):
    values, places = tf.math.top_k(x, 2)
    return tf.split(values, 2, axis=-1)[1], places


def branches(x):
    return tf.cond(x[0] > 0, lambda: loop(x)[1] + 1.0, lambda: tf.reverse(x, [0]))


def cases(x):
    ways = [lambda: x, lambda: -x, lambda: x * x]
    return [tf.switch_case(tf.constant(i), ways) for i in (-3, 0, 1, 2, 9)]


def nested_call(x):
    return tf.function(lambda y: (y + 1.0, y * 3.0))(x)


def ordered(x):
    with tf.control_dependencies([tf.debugging.assert_less(x, 100.0)]):
        return tf.concat([x, x], 0)


@pytest.mark.parametrize("function", [loop, several_outputs, branches, cases, nested_call, ordered])
@pytest.mark.parametrize("first", [1.0, -1.0])
def test_walked_as_tensorflow_runs_it(function, first):
    x = np.array([first, 3, 9, 5], np.float32)
    found, expected = both(function, x)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_whole_numbers_that_constants_give_are_not_rounded():
    """A power of a negative number is none where its exponent is nearly 2."""

    def function(x):
        exponent = tf.constant(3.0) - tf.constant(1.0)
        return x**exponent, exponent, tf.constant(1.0) / tf.constant(3.0)

    x = np.array([-1.5, 2.0], np.float32)
    power, exponent, third = evaluate.evaluate(
        traced(function, [x])[1], [x], evaluate.Roundings(lambda _, y: y * 1.0001)
    )
    np.testing.assert_allclose(power, x * x * np.float32(1.0001))
    assert float(exponent) == 2.0
    assert float(third) > 0.33335


def test_an_error_of_a_node_is_raised():
    with pytest.raises(tf.errors.InvalidArgumentError):
        both(ordered, np.array([200.0], np.float32))


def test_results_that_no_later_node_reads_are_let_go():
    """So a long chain takes the memory of a few tensors."""
    alive: list[weakref.ref[Any]] = []
    most = 0

    def runner(node):
        eager = call.eager_runner(node)

        def run(inputs):
            nonlocal most
            (y,) = eager(inputs)
            alive.append(weakref.ref(y))
            most = max(most, sum(one() is not None for one in alive))
            return [y]

        return run

    def chain(x):
        for _ in range(20):
            x = tf.abs(-x)
        return x

    x = np.ones(4, np.float32)
    _, source = traced(chain, [x])
    (y,) = evaluate.Evaluator(source, runner=runner).run([x])
    np.testing.assert_array_equal(y, x)
    assert len(alive) >= 40
    assert most <= 3
