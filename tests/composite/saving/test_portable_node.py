"""Calls of stock ops that are made while tracing: numbers, gradients, options, what cannot be.

What workers and DTensor make of them is in tests/composite/test_clusters.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from tests.composite import cluster_ops
from tests.composite.saving import saved_ops

pytestmark = pytest.mark.usefixtures("expansions_only")

X = tf.constant(np.linspace(-2.0, 3.0, 12, dtype=np.float32).reshape(4, 3))
W = tf.Variable(np.eye(3, dtype=np.float32) * 0.5)


def slopes(x: Any) -> list[Any]:
    """A loss and its gradients; one of the two ops has a gradient of its own."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(cluster_ops.scale(cluster_ops.dense(x, W)))
    return [y, *tape.gradient(y, [x, W])]


def of_a_branch(x: Any) -> list[Any]:
    """The gradient of a function with a branch, by a tape around it."""

    @tf.function
    def function(x: Any) -> Any:
        return tf.cond(x[0, 0] > 9.0, lambda: x, lambda: cluster_ops.scale(x))

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return [y, tape.gradient(y, x)]


def of_a_loop(x: Any) -> list[Any]:
    """The gradients of a function with a loop."""

    @tf.function
    def function(x: Any, w: Any) -> Any:
        for _ in tf.range(2):
            x = cluster_ops.scale(cluster_ops.dense(x, w))
        return tf.reduce_sum(x)

    w = tf.eye(3) * 0.5
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = function(x, w)
    return [y, *tape.gradient(y, [x, w])]


def second(x: Any) -> list[Any]:
    with tf.GradientTape() as tape:
        tape.watch(x)
        slope = tf.reduce_sum(slopes(x)[1] ** 2)
    return [slope, tape.gradient(slope, x)]


def several_outputs(x: Any) -> list[Any]:
    first, parts = saved_ops.saved_split(x, [1, 2, 1], n=3)
    return [first, *parts]


@pytest.mark.parametrize("function", [slopes, of_a_branch, of_a_loop, second, several_outputs])
def test_numbers_and_gradients_are_those_of_nodes(function: Any) -> None:
    wanted = tf.function(function)(X)
    with composite.options(portable=True):
        for found in (tf.function(function)(X), function(X)):
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def ops_of(concrete: Any) -> set[str]:
    graph_def = concrete.graph.as_graph_def()
    nodes = (*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def))
    return {node.op for node in nodes}


def test_a_graph_has_no_op_of_ours_while_the_option_holds() -> None:
    with composite.options(portable=True):
        with composite.options(portable=False):
            nodes = tf.function(slopes).get_concrete_function(X)
        calls = tf.function(slopes).get_concrete_function(X)
    assert {"ClusterDense", "ClusterScale", "CompositeCall"} <= ops_of(nodes)
    assert not any(name.startswith(("Cluster", "Composite")) for name in ops_of(calls))
    assert "ClusterDense" in ops_of(tf.function(slopes).get_concrete_function(X))


def test_gradients_in_a_graph_of_tensorflow_1() -> None:
    with tf.Graph().as_default() as graph, composite.options(portable=True):
        x = tf.compat.v1.placeholder(tf.float32, [4, 3])
        y = cluster_ops.scale(x, name="scaled")
        (slope,) = tf.gradients(y, x)
        assert graph.get_operation_by_name("scaled").type == "PartitionedCall"
        with tf.compat.v1.Session() as session:
            found = session.run(slope, {x: X.numpy()})
    np.testing.assert_allclose(found, 10.0 * X.numpy() ** 2, rtol=1e-5)


def test_one_sentence_says_what_is_missing() -> None:
    @Composite("PortableRows", inputs=["x: float"], outputs=["y: float"])
    def rows(x: Any) -> Any:
        for _ in range(x.shape[0]):
            x = x * 2.0
        return x

    traced = tf.function(rows)
    with composite.options(portable=True):
        np.testing.assert_array_equal(traced(X), X * 16.0)
        np.testing.assert_array_equal(rows(X[:1]), X[:1] * 2.0)
        with pytest.raises(
            ValueError, match="PortableRows .*dim 0 of input 'x' is not known.* input signature"
        ):
            traced.get_concrete_function(tf.TensorSpec([None, 3]))


def test_who_insists_on_a_kernel_is_refused() -> None:
    with (
        composite.options(portable=True, backend="tvm"),
        pytest.raises(ValueError, match="ClusterScale .*choose one"),
    ):
        cluster_ops.scale(X)


def test_another_value_is_refused() -> None:
    with (
        pytest.raises(ValueError, match="portable='yes' is not True or False"),
        composite.options(portable="yes"),  # type: ignore[arg-type]
    ):
        pass
