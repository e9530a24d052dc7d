"""What gradient functions are given, pinned to TensorFlow 2.21."""

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import forwardprop

from composite import Composite
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


def test_the_kind_of_a_tensor_is_its_dtype_and_its_shape():
    for x in (tf.zeros([2, 3], tf.bfloat16), tf.constant(1), tf.zeros([0])):
        assert recorded.kind_of(x) == (x.dtype.as_datatype_enum, tuple(x.shape))


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


def test_forward_gradients_are_told_by_their_functions():
    seen = []

    @Composite("RecordedSpied", inputs=["x: float"], outputs=["y: float"])
    def spied(x):
        return x * x

    @spied.gradient
    def gradient(op, upstream):
        seen.append(recorded.is_forward_mode())
        return upstream

    def forward(x):
        with tf.autodiff.ForwardAccumulator(x, x):
            spied(x)

    def reverse(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = spied(x)
        tape.gradient(y, x)

    for way, expected in ((forward, True), (reverse, False)):
        for wrap in (lambda f: f, tf.function):
            seen.clear()
            recorded.forget_forward_gradients()  # asked for again in a function
            wrap(way)(tf.constant(1.0))
            assert set(seen) == {expected}, (way, wrap)


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


class _Recorded:
    """As TensorFlow's tape describes an eager call, of an op with these attributes."""

    def __init__(self, *values):
        self.attrs = tuple(x for i, value in enumerate(values) for x in (f"attr{i}", value))


def test_keys_of_attributes_are_equal_where_they_are():
    def key(*values):
        return recorded.key_of(_Recorded(*values))

    same = [
        (2.0, 2.0), (float("nan"), float("nan")), ([1, 2], (1, 2)), (tf.float32, tf.float32),
        (np.float32(2), np.float32(2)), (np.arange(3), np.arange(3)), ("a", "a"), (None, None),
        (tf.TensorShape([1, None]), tf.TensorShape([1, None])), (AttrValue(i=1), AttrValue(i=1)),
    ]  # fmt: skip
    for a, b in same:
        assert key(a) == key(b)
        assert hash(key(a, a)) == hash(key(b, b))
    others = [
        (0.0, -0.0), (np.float32(0), np.float32(-0.0)), ([0.0], [-0.0]), (2.0, 3.0), ("a", "b"),
        (np.arange(3), np.arange(4)), (tf.float32, tf.float64), (AttrValue(i=1), AttrValue(i=2)),
        (np.arange(2000), np.where(np.arange(2000) == 999, 0, np.arange(2000))),
    ]  # fmt: skip
    for a, b in others:
        assert key(a) != key(b)


def test_the_shape_of_an_eager_tensor():
    for shape in ((), (0, 3), (2, 1)):
        assert recorded.shape_of(tf.zeros(shape)) == shape
    with tf.GradientTape() as tape:
        tape.watch(x := tf.ones([2]))
        y = x * x
    assert recorded.shape_of(y) == (2,)
    assert recorded.shape_of(tape.gradient(y, x)) == (2,)
