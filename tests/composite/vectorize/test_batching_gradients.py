"""Gradients and tf.vectorized_map together: Jacobians, gradients of each example, of a batch."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.composite.vectorize import mapped_ops as ops
from tests.composite.vectorize.test_batching import assert_close, looped, mapped, python, told

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("expansions_only")]

__all__ = ["told"]  # of each test here too: no op in a loop

RANDOM = np.random.default_rng(4)


def normal(*shape):
    return tf.constant(RANDOM.standard_normal(shape))


X, Y = normal(3, 4), normal(3, 4)
XS, WS = normal(3, 4, 5), normal(3, 5, 2)

# An op, a call of it with one element of each of these.
CALLS: dict[str, Any] = {
    "elements": (ops.elements, lambda op, x, y: op(x, y), [X, Y]),
    "elements, broadcast": (ops.elements, lambda op, x: op(x[0], Y[0]) * op(x, x[1]), [X]),
    "matmul": (ops.matmul, lambda op, x, w: op(x, w), [XS, WS]),
    "composition": (ops.outer, lambda op, x, w: op(x, w), [XS, WS]),
    "outputs": (ops.outputs, lambda op, x, w: op(x, w)[0] * tf.reduce_sum(op(x, w)[2]), [X, Y]),
    "lists": (ops.lists, lambda op, x, y: op([x, y, x * y], [tf.constant([1])])[1], [X, Y]),
    "if": (ops.chooses, lambda op, x, y: op(x, y), [X, Y]),
    "while": (ops.loops, lambda op, x, y: op(x, tf.abs(y) + 0.1), [X, Y]),
    "assert": (ops.asserts, lambda op, x: op(tf.abs(x)), [X]),
    "dims": (ops.dims, lambda op, x: op(x), [X]),
    "if, assert": (ops.guarded, lambda op, x: op(x), [X]),
}
EACH = pytest.mark.parametrize("name", CALLS)
# TensorFlow 2.21 cannot map over the gradients of its Ifs and Whiles either, for whose variants
# pfor has no rule; nor over those of a Jacobian's If, nor differentiate a While that was mapped.
STRAIGHT = pytest.mark.parametrize(
    "name", [name for name in CALLS if not name.startswith(("if", "while"))]
)
LOOPLESS = pytest.mark.parametrize("name", [name for name in CALLS if name != "while"])
TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])


def called(name):
    """Functions of an element's inputs, through the op and through its Python function; inputs."""
    op, call, elements = CALLS[name]
    return lambda *x: call(op, *x), lambda *x: call(python(op), *x), elements


def gradients(function, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
        weights = tf.reshape(tf.range(1, tf.size(y) + 1), tf.shape(y))
        loss = tf.reduce_sum(y * tf.cast(weights, y.dtype))
    found = tape.gradient(loss, inputs, unconnected_gradients="zero")
    return [tf.convert_to_tensor(x) for x in found]  # that of a row is a slice


def jacobian(function, *inputs, loop=False):
    with tf.GradientTape(persistent=loop) as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return tape.jacobian(y, inputs, experimental_use_pfor=not loop, unconnected_gradients="zero")


@TRACED
@EACH
def test_jacobians(name, traced):
    through_op, oracle, elements = called(name)
    inputs = [x[0] for x in elements]
    run = tf.function(jacobian) if traced else jacobian
    assert_close(run(through_op, *inputs), jacobian(oracle, *inputs, loop=True))


@TRACED
@STRAIGHT
def test_the_gradient_of_each_example(name, traced):
    through_op, oracle, elements = called(name)
    map_all = lambda *batch: mapped(lambda *one: gradients(through_op, *one), *batch)  # noqa: E731
    found = (tf.function(map_all) if traced else map_all)(*elements)
    assert_close(found, looped(lambda *one: gradients(oracle, *one), *elements))


@TRACED
@LOOPLESS
def test_the_gradient_of_a_batch(name, traced):
    through_op, oracle, elements = called(name)
    slope = lambda *batch: gradients(lambda *x: mapped(through_op, *x), *batch)  # noqa: E731
    found = (tf.function(slope) if traced else slope)(*elements)
    assert_close(found, gradients(lambda *x: looped(oracle, *x), *elements))


@pytest.mark.parametrize("name", ["if", "while"])
def test_what_tensorflow_cannot_map_over(name, told):
    op, call, elements = CALLS[name]
    for function in (op, tf.function(python(op))):
        slope = lambda *x, function=function: gradients(lambda *x: call(function, *x), *x)  # noqa: E731
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            mapped(slope, *elements)
    told.clear()


@pytest.mark.parametrize("name", ["elements", "matmul", "while"])
def test_second_order(name):
    through_op, oracle, elements = called(name)
    inputs = [x[0] for x in elements]
    hessian = lambda call, **how: jacobian(  # noqa: E731
        lambda *x: gradients(call, *x)[0], *inputs, **how
    )
    assert_close(hessian(through_op), hessian(oracle, loop=True))


@pytest.mark.parametrize("name", ["elements", "matmul"])
def test_second_order_of_each_example(name):
    through_op, oracle, elements = called(name)
    hessian = lambda call, *x: jacobian(lambda *x: gradients(call, *x)[0], *x)  # noqa: E731
    found = mapped(lambda *x: hessian(through_op, *x), *elements)
    assert_close(found, looped(lambda *x: hessian(oracle, *x), *elements))


@pytest.mark.parametrize("op", [ops.elements, ops.matmul])
def test_batch_jacobian(op):
    x, w = normal(5, 4), (normal(4, 4) if op is ops.matmul else normal(4))
    found = []
    for function in (op, python(op)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x, w)
        found.append(tape.batch_jacobian(y, x))
    assert_close(*found)
