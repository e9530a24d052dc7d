"""Functions that came as protos, as the graphs that TensorFlow's converters look into."""

import gc

import numpy as np
import tensorflow as tf
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.framework import func_graph
from tensorflow.python.util import tf_stack

from composite.binding import tensorflow_version
from composite.vectorize import function_graphs
from tests.composite.vectorize import mapped_ops as ops


def graph_of(op, *shapes):
    specs = [tf.TensorSpec(shape, tf.float32) for shape in shapes]
    library = op.expand(*specs)
    return function_graphs.graph_of(library, [spec.shape for spec in specs])


def nodes(graph, op_type):
    return [op for op in graph.get_operations() if op.type == op_type]


def callee(graph, op, attr):
    return graph._get_function(op.get_attr(attr).name).graph


def test_branches_know_their_shapes():
    found = graph_of(ops.chooses, [4], [4])
    (choice,) = nodes(found.graph, "StatelessIf")
    assert choice.outputs[0].shape == [4]
    for attr in ("then_branch", "else_branch"):
        branch = callee(found.graph, choice, attr)
        assert all(x.shape == [4] for x in branch.inputs)
        assert [y.shape for y in branch.outputs] == [[4]]
    (inner,) = nodes(callee(found.graph, choice, "then_branch"), "StatelessIf")
    assert inner.outputs[0].shape == [4]
    assert len(found.callees) == 4 and not found.stateful


def test_loops_know_what_keeps_its_shape():
    found = graph_of(ops.loops, [None], [None])
    (loop,) = nodes(found.graph, "StatelessWhile")
    assert [y.shape.rank for y in loop.outputs] == [x.shape.rank for x in loop.inputs]
    body = callee(found.graph, loop, "body")
    assert [x.shape.rank for x in body.inputs] == [y.shape.rank for y in body.outputs]


def test_a_loop_that_changes_a_dim():
    found = graph_of(ops.grows, [4])
    (loop,) = nodes(found.graph, "StatelessWhile")
    assert [None] in [y.shape.as_list() for y in loop.outputs]
    assert found.graph.outputs[0].shape.as_list() == [None]


def test_what_is_stateful():
    assert graph_of(ops.guarded, [4]).stateful >= {"Assert"}
    found = graph_of(ops.asserts, [4])
    assert found.stateful == {"Assert"}
    assert [op.type for op in found.graph.control_outputs] == ["Assert"]


def test_functions_go_with_the_last_graph():
    found = graph_of(ops.chooses, [4], [4])
    names = [function.name for function in found.callees]
    known = lambda: [atomic_function.context.context().has_function(name) for name in names]  # noqa: E731
    assert all(known())
    del found
    gc.collect()
    assert not any(known())


def test_the_private_apis():
    """TF 2.21: what function_graphs.py takes."""
    assert tf.__version__.startswith(tensorflow_version.MINORS)
    with tf.Graph().as_default():
        graph = func_graph.FuncGraph("square")
        with graph.as_default():
            graph.inputs = [tf.compat.v1.placeholder(tf.float32, [2])]
            graph.outputs = [tf.square(graph.inputs[0])]
        function = atomic_function.from_func_graph("square_of_a_test", graph, {})
    operation = graph.outputs[0].op
    pywrap_tf_session.TF_SetOpStackTrace(operation._c_op, tf_stack.extract_stack())
    assert operation.traceback[-1].name == "test_the_private_apis"
    assert function.graph is graph and not graph._is_function(function.name)
    graph._add_function(function)
    assert graph._get_function(function.name) is function
    np.testing.assert_array_equal(function(tf.constant([2.0, 3.0]))[0], [4.0, 9.0])
