"""What gradient functions are given, pinned to TensorFlow 2.21."""

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import forwardprop

from composite.binding.records import AttrValue
from composite.ops import call, recorded


def test_attributes_of_operations_and_of_tape_records():
    seen = {}

    def gradient(op, *grads):
        seen.update(recorded.attrs_of(op))
        return [None] * len(op.inputs)

    name = "TestAttrsOf"
    tf.RegisterGradient(name)(gradient)
    with tf.Graph().as_default() as graph, graph.gradient_override_map({"MatMul": name}):
        a = tf.ones([2, 3])
        stamp = {"_composite_program": AttrValue(s=b"abc")}
        y = call.graph_call("MatMul", {"a": a, "b": a, "transpose_b": True}, stamp, None)
        tf.gradients(y, a)
    assert seen["_composite_program"].s == b"abc"
    assert seen["T"].type == tf.float32.as_datatype_enum


def test_tensors_are_numbered_as_they_are_made():
    first = tf.constant(1.0)
    between = recorded.moment()
    second = tf.constant(2.0) + first
    assert recorded.made_at(first) < between < recorded.made_at(second) < recorded.moment()


def test_forward_gradients_are_asked_for_again():
    def forward():
        x = tf.constant(1.0)
        with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
            y = tf.raw_ops.Tanh(x=x)
        return accumulator.jvp(y)

    expected = forward()
    assert forwardprop._jvp_function_cache.values()
    recorded.forget_forward_gradients()
    assert not forwardprop._jvp_function_cache.values()
    np.testing.assert_array_equal(forward(), expected)


class _Record:
    """As TensorFlow's tape describes a call."""

    def __init__(self, outputs):
        self.type, self.outputs = "Tanh", outputs


def test_the_node_of_a_record():
    assert recorded.node_of(_Record([tf.tanh(1.0)])) is None
    with tf.Graph().as_default():
        y = tf.raw_ops.Tanh(x=tf.ones([2]))
        assert recorded.node_of(_Record([y])) is y.op and recorded.node_of(y.op) is y.op
        assert recorded.node_of(_Record([tf.identity(y)])) is None
