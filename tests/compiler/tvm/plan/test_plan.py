"""Stages: what is fused, what is stored, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from composite.compiler.tvm.ir.anchors import MatMul, Reduce
from composite.compiler.tvm.plan.plan import Plan, make_plan
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of

X = tf.TensorSpec([8, 16], tf.float32)
W = tf.TensorSpec([16, 16], tf.float32)
B = tf.TensorSpec([16], tf.float32)


def plan_of(function: Callable[..., Any], *specs: tf.TensorSpec) -> Plan:
    library = library_of(function, specs)
    return make_plan(read_function(library, [tuple(s.shape) for s in specs]))


def shapes_of(plan: Plan) -> Sequence[tuple[str, int]]:
    """Return for each stage its kind and how many tensors it stores."""
    kinds = {MatMul: "matmul", Reduce: "reduction"}
    return [(kinds[type(s.anchor.node)] if s.anchor else "map", len(s.stores)) for s in plan.stages]


def test_dense_layer_is_one_stage() -> None:
    plan = plan_of(lambda x, w, b: tf.nn.relu(tf.matmul(x, w) + b), X, W, B)
    assert shapes_of(plan) == [("matmul", 1)]


def test_several_results_of_one_product_share_its_loops() -> None:
    def function(x: Any, w: Any, b: Any) -> Any:
        z = tf.matmul(x, w) + b
        return z, tf.nn.relu(z), tf.matmul(x, w)

    plan = plan_of(function, X, W, B)
    assert shapes_of(plan) == [("matmul", 2), ("matmul", 1)]  # TF keeps the two products apart


def test_product_that_is_also_summed_is_stored_once() -> None:
    def function(x: Any, w: Any) -> Any:
        z = tf.matmul(x, w)
        return tf.nn.relu(z), tf.reduce_sum(z, 0)

    assert shapes_of(plan_of(function, X, W)) == [("matmul", 2), ("reduction", 1)]


def test_epilogue_joins_the_last_product_it_needs() -> None:
    def function(x: Any, w: Any) -> Any:
        return tf.matmul(x, w) * tf.sigmoid(tf.matmul(x, w, transpose_b=True))

    assert shapes_of(plan_of(function, X, W)) == [("matmul", 1), ("matmul", 1)]


def test_places_of_rows_are_put_side_by_side_before_they_are_repeated() -> None:
    """A vector of them is otherwise gathered, an element at a time, for each row of the result."""
    boxes = tf.TensorSpec([30, 4], tf.float32), tf.TensorSpec([20, 4], tf.float32)
    plan = plan_of(lambda x, y: x[:, :1] * y[:, 0], *boxes)
    assert [s.shape for s in plan.stages] == [(20,), (30, 20)]
    plan = plan_of(lambda x, y: x[:20, 1] * y[:, 0], *boxes)  # each is read once
    assert [s.shape for s in plan.stages] == [(20,)]


def test_layers_follow_one_another() -> None:
    def function(x: Any, w: Any) -> Any:
        return tf.matmul(tf.tanh(tf.matmul(x, w)), w)

    plan = plan_of(function, X, W)
    assert shapes_of(plan) == [("matmul", 1), ("matmul", 1)]


def test_work_before_a_sum_is_done_in_its_loops() -> None:
    plan = plan_of(lambda x: tf.exp(tf.reduce_sum(x * x, 1)), X)
    assert shapes_of(plan) == [("reduction", 1)]


def test_dear_value_is_not_computed_once_a_row() -> None:
    plan = plan_of(lambda x, b: x * tf.tanh(b), X, B)
    assert shapes_of(plan) == [("map", 1), ("map", 1)]
    cheap = plan_of(lambda x, b: x * (b + 1.0), X, B)
    assert shapes_of(cheap) == [("map", 1)]


def test_reshaped_result_is_computed_in_place() -> None:
    plan = plan_of(lambda x, w: tf.reshape(tf.matmul(x, w), [4, 2, 16]), X, W)
    assert shapes_of(plan) == [("matmul", 1)]


def test_same_result_twice_and_an_input_returned() -> None:
    def function(x: Any) -> Any:
        y = x + 1.0
        return y, y, x

    plan = plan_of(function, X)
    assert len(set(plan.outputs)) == 3


def rows_of_plan(plan: Plan) -> list[tuple[int, int]]:
    """Return for each stage how many dimensions its rows have inside, and how many it stores."""
    return [(s.reduced, len(s.stores)) for s in plan.stages]


def test_what_is_done_to_the_same_rows_is_one_stage() -> None:
    def function(x: Any, b: Any) -> Any:
        e = tf.exp(x + b - tf.reduce_max(x + b, -1, keepdims=True))
        return e / tf.reduce_sum(e, -1, keepdims=True), tf.math.log(tf.reduce_sum(e, -1))

    assert rows_of_plan(plan_of(function, X, B)) == [(1, 2)]


def test_rows_after_a_product_are_another_stage() -> None:
    def function(x: Any, w: Any) -> Any:
        z = tf.matmul(x, w)
        return z / tf.norm(z, axis=-1, keepdims=True)

    assert rows_of_plan(plan_of(function, X, W)) == [(0, 1), (1, 1)]


def test_a_total_that_crosses_rows_parts_them() -> None:
    """What a sum over columns gives is not known while the rows are worked on."""

    def function(x: Any) -> Any:
        z = x - tf.reduce_max(x, -1, keepdims=True)
        return z / tf.reduce_sum(tf.exp(z), 0)

    plan = plan_of(function, X)
    assert [s.reduced for s in plan.stages] == [0, 0, 0]


def test_totals_of_rows_that_are_read_as_columns_are_not_joined() -> None:
    square = tf.TensorSpec([16, 16], tf.float32)
    plan = plan_of(lambda x: x - tf.reduce_sum(x, -1), square)
    assert [s.reduced for s in plan.stages] == [0, 0]
