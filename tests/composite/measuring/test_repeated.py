"""Functions of several calls."""

import gc

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from composite.measuring import repeated

_X = tf.TensorSpec((2,), tf.float32)


def _sum(x, y):
    z = x * repeated.constant(np.array([2, 2], np.float32), 0) + y
    return z, tf.reduce_sum(z)


def _called(function, inputs):
    name = function.definition.signature.name
    types = [y.type for y in function.definition.signature.output_arg]
    return tf.raw_ops.PartitionedCall(args=inputs, Tout=types, f=name)


@pytest.mark.parametrize("copies", [1, 3])
def test_each_call_has_inputs_and_constants_of_its_own(copies):
    one = repeated.trace(_sum, [_X, _X], repeated.HOST, {0: np.array([2, 2], np.float32)})
    given = [tf.constant([i + 1.0, i + 2.0]) for i in range(2 * copies)]
    found = _called(one.times(copies), given)
    assert len(found) == 2 * copies
    for copy in range(copies):
        x, y = (tensor.numpy() for tensor in given[2 * copy : 2 * copy + 2])
        expected = x * np.array([copy, 2], np.float32) + y
        np.testing.assert_array_equal(found[2 * copy], expected)
        assert float(found[2 * copy + 1]) == expected.sum()


def test_constants_that_are_held_come_after_the_inputs_of_all_calls():
    held = {1: np.array([5, 6], np.float32)}
    one = repeated.trace(lambda x, w: x * w, [_X], repeated.HOST, held, held)
    function = one.times(2)
    names = [argument.name for argument in function.definition.signature.input_arg]
    assert names == ["inputs_0_0", "inputs_0_1", "inputs_1_0", "inputs_1_1"]
    function(tf.ones(2), tf.ones(2))
    first, second = (array.numpy() for array in function._held)
    np.testing.assert_array_equal(first, [0, 6])
    np.testing.assert_array_equal(second, [1, 6])


def test_a_call_waits_for_the_one_before():
    one = repeated.trace(_sum, [_X, _X], repeated.HOST, {0: np.array([2, 2], np.float32)})
    nodes = {node.name: node for node in one.times(2).definition.node_def}
    waiting = [node.name for node in nodes.values() if any(x[0] == "^" for x in node.input)]
    assert sorted(waiting) == sorted(name for name in nodes if name.endswith("_1"))
    assert all(nodes[name].input[-1] == "^Sum_0" for name in waiting)


def test_results_that_are_inputs_and_no_results():
    """The function without nodes, of a call that has inputs and of one that has none."""
    one = repeated.trace(lambda *inputs: inputs[:1], [_X, _X], repeated.HOST)
    given = [tf.constant([i + 1.0, i + 2.0]) for i in range(4)]
    for found, wanted in zip(_called(one.times(2), given), given[::2], strict=True):
        np.testing.assert_array_equal(found, wanted)
    repeated.trace(lambda *inputs: inputs[:1], [], repeated.HOST).times(2)()


def test_shapes_are_known_to_whoever_optimizes_the_graph():
    one = repeated.trace(lambda x, y: x + y, [_X, tf.TensorSpec((None,), tf.float32)], "CPU:0")
    definition = one.times(2).definition
    shapes = [definition.arg_attr[i].attr["_output_shapes"].list.shape[0] for i in range(4)]
    assert [shape.dim[0].size for shape in shapes] == [2, -1, 2, -1]


def test_a_function_is_forgotten_with_its_last_holder():
    function = repeated.trace(
        _sum, [_X, _X], repeated.HOST, {0: np.array([2, 2], np.float32)}
    ).times(1)
    name = function.definition.signature.name
    assert context.context().has_function(name)
    del function
    gc.collect()
    assert not context.context().has_function(name)


def test_only_calls_that_can_be_optimized_are():
    off = [
        repeated.config(repeated.HOST, optimized=way).graph_options.rewrite_options
        for way in (True, False)
    ]
    assert [options.disable_meta_optimizer for options in off] == [False, True]


def test_copies_within_a_call_are_left_out():
    """A node that read a copy reads what that is a copy of."""
    one = repeated.trace(lambda x, y: tf.identity(tf.identity(x) * 2.0) + y, [_X, _X], "CPU:0")
    function = one.times(2)
    assert all(node.op != "Identity" for node in function.definition.node_def)
    given = [tf.constant([i + 1.0, i + 2.0]) for i in range(4)]
    for copy, found in enumerate(_called(function, given)):
        x, y = given[2 * copy : 2 * copy + 2]
        np.testing.assert_array_equal(found, x * 2.0 + y)
