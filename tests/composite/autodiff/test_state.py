"""Gradients of bodies that change variables: right, or refused; never a change made twice."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite
from composite.autodiff import state

pytestmark = pytest.mark.usefixtures("expansions_only")


@Composite("StateReadFirst", inputs=["v: resource", "x: float"], outputs=["y: float"])
def read_first(v, x):
    h = tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32)
    y = tf.tanh(h * x)
    tf.raw_ops.AssignVariableOp(resource=v, value=h * 2.0)
    return y * h


@Composite("StateWriteFirst", inputs=["v: resource", "x: float"], outputs=["y: float"])
def write_first(v, x):
    tf.raw_ops.AssignAddVariableOp(resource=v, value=x)
    return x * tf.tanh(tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32))


@Composite("StateInBranch", inputs=["v: resource", "x: float"], outputs=["y: float"])
def in_branch(v, x):
    h = x
    if tf.reduce_sum(x) > 0.0:
        tf.raw_ops.AssignAddVariableOp(resource=v, value=x)
        h = tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32)
    return x * tf.stop_gradient(h)


@Composite("StateUnread", inputs=["v: resource", "x: float"], outputs=["y: float"])
def unread(v, x):
    tf.raw_ops.AssignAddVariableOp(resource=v, value=x)
    return tf.tanh(x)


def slope(function, v):
    x = tf.constant([0.5, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(v, x)
    return tape.gradient(y, x)


@pytest.mark.parametrize("wrap", [lambda f: f, functools.partial(tf.function, autograph=False)])
@pytest.mark.parametrize("op", [read_first, write_first, in_branch], ids=lambda op: op.op_name)
def test_what_is_gone_is_refused(op, wrap):
    v = tf.Variable([3.0, 4.0])
    told = rf"{op.op_name} has no gradient, since its body changes a variable.* again after that"
    with pytest.raises(state.Gone, match=told):
        wrap(lambda: slope(op, v.handle))()


@pytest.mark.parametrize("wrap", [lambda f: f, functools.partial(tf.function, autograph=False)])
def test_a_change_that_the_gradient_does_not_need_is_made_once(wrap):
    v, w = tf.Variable([3.0, 4.0]), tf.Variable([3.0, 4.0])
    found = wrap(lambda: slope(unread, v.handle))()
    np.testing.assert_allclose(found, slope(unread.python_function, w.handle))
    np.testing.assert_array_equal(v, w)
