"""Graphs whose composites are calls of stock ops: numbers, names, facts, what cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.ops import function_op
from composite.saving import portable
from tests.composite.saving import saved_ops

pytestmark = pytest.mark.usefixtures("expansions_only")
X = np.linspace(-2.0, 3.0, 12, dtype=np.float32).reshape(4, 3)


def graph_of(function: Any, *specs: Any) -> tuple[Any, list[str], list[str]]:
    """A function's graph, and the names of its inputs and outputs."""
    traced = tf.function(function).get_concrete_function(*specs)
    graph_def = traced.graph.as_graph_def(add_shapes=True)
    return graph_def, [x.name for x in traced.inputs], [y.name for y in traced.outputs]


def run(graph_def: Any, inputs: list[str], outputs: list[str], *values: Any) -> list[Any]:
    with tf.Graph().as_default():
        tf.graph_util.import_graph_def(graph_def, name="")
        with tf.compat.v1.Session() as session:
            return list(session.run(outputs, dict(zip(inputs, values, strict=True))))


def ops_in(graph_def: Any) -> set[str]:
    nodes = (*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def))
    return {node.op for node in nodes}


def both(function: Any, *specs: Any, values: Any) -> Any:
    """The portable graph, after its numbers were compared with those of the graph itself."""
    graph_def, inputs, outputs = graph_of(function, *specs)
    stock = portable.portable(graph_def)
    for here, there in zip(
        run(graph_def, inputs, outputs, *values), run(stock, inputs, outputs, *values), strict=True
    ):
        np.testing.assert_array_equal(here, there)
    assert not any(name.startswith(("Saved", "Composite")) for name in ops_in(stock))
    return stock


def test_an_op_is_a_call_of_stock_ops_under_its_name() -> None:
    stock = both(
        lambda x: saved_ops.saved_scale(x, name="twice"), tf.TensorSpec([None, 3]), values=[X]
    )
    node = next(n for n in stock.node if n.name == "twice")
    assert node.op == "PartitionedCall"
    function = next(
        f for f in stock.library.function if f.signature.name == node.attr["f"].func.name
    )
    assert function.attr["_implements"].s == b"SavedScale"
    assert {n.op for n in function.node_def} <= {"Mul", "Const", "Identity"}


def test_several_outputs_and_lists_keep_their_order() -> None:
    def split(x: Any) -> Any:
        first, parts = saved_ops.saved_split(x, tf.constant([1, 3]), n=2)
        return first, *parts

    both(split, tf.TensorSpec([4, 3]), values=[X])


def test_in_functions_loops_and_branches() -> None:
    @tf.function
    def inner(x: Any) -> Any:
        first, parts = saved_ops.saved_split(x, tf.constant([2, 2]), n=2)
        return first + tf.concat(parts[::-1], 0)

    def outer(x: Any) -> Any:
        x = tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, inner(x) / 3.0), (0, x))[1]
        return tf.cond(x[0, 0] > 0.0, lambda: saved_ops.saved_scale(x), lambda: inner(x))

    both(outer, tf.TensorSpec([4, 3]), values=[X])


def test_what_a_body_asks_for_is_what_the_graph_knows() -> None:
    w = X.T[:, :2]
    ones = both(lambda x: saved_ops.saved_dense(x, w), tf.TensorSpec([1, 3]), values=[X[:1]])
    more = both(lambda x: saved_ops.saved_dense(x, w), tf.TensorSpec([4, 3]), values=[X])
    assert any(op.startswith("Add") for op in ops_in(ones))
    assert not any(op.startswith("Add") for op in ops_in(more))


def test_a_gradient_is_portable() -> None:
    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = saved_ops.saved_dense(saved_ops.saved_scale(x), tf.transpose(x))
        return tape.gradient(y, x)

    graph_def = graph_of(slope, tf.TensorSpec([4, 3]))[0]
    assert "CompositeCall" in ops_in(graph_def)
    both(slope, tf.TensorSpec([4, 3]), values=[X])


def test_equal_calls_share_a_function() -> None:
    scale = saved_ops.saved_scale
    stock = both(lambda x: scale(scale(x)) + scale(x, by=3.0), tf.TensorSpec([4, 3]), values=[X])
    named = [f for f in stock.library.function if f.attr["_implements"].s == b"SavedScale"]
    assert len(named) == 2


def test_a_graph_without_composites_stays() -> None:
    graph_def = graph_of(lambda x: x + 1.0, tf.TensorSpec([4, 3]))[0]
    assert portable.portable(graph_def) == graph_def


def test_a_missing_fact_names_the_node() -> None:
    def dense(x: Any) -> Any:
        return saved_ops.saved_dense(x, tf.ones([3, 2]), name="here")

    graph_def = graph_of(dense, tf.TensorSpec([None, 3]))[0]
    with pytest.raises(
        ValueError, match=r"node here \(SavedDense\) cannot be made portable.*state"
    ):
        portable.portable(graph_def)


def test_a_version_that_is_not_here_is_an_error() -> None:
    graph_def = graph_of(saved_ops.saved_scale, tf.TensorSpec([4, 3]))[0]
    node = next(n for n in graph_def.node if n.op == "SavedScale")
    node.attr["_composite_program"].s = b"0" * 64
    with pytest.raises((ValueError, tf.errors.OpError), match="made with another body"):
        portable.portable(graph_def)


def test_the_composites_of_a_graph_are_found_with_their_versions() -> None:
    graph_def = graph_of(lambda x: saved_ops.saved_scale(x) + x, tf.TensorSpec([4, 3]))[0]
    assert portable.composites(graph_def) == {"SavedScale": {saved_ops.saved_scale.digest}}


def test_a_function_that_calls_composites_is_portable_wherever_it_is_called() -> None:
    def scaled(x: Any) -> Any:
        return saved_ops.saved_scale(saved_ops.saved_scale(x), by=3.0)

    traced = tf.function(scaled).get_concrete_function(tf.TensorSpec([4, 3]))
    definition = traced.function_def
    function = function_op.canonical(FunctionDefLibrary(function=[definition]), "saved_whole")

    def calls(x: Any) -> Any:
        defined = function_op.define(function)
        return function_op.invoke(defined, [x], 0, {})[0]

    both(calls, tf.TensorSpec([4, 3]), values=[X])
