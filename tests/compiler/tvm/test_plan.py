"""Stages: what is fused, what is stored, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import util
from pathlib import Path
from typing import Any

import tensorflow as tf

from composite.compiler.tvm.graph import MatMul, Reduce
from composite.compiler.tvm.plan import Plan, make_plan
from composite.compiler.tvm.reader import read_function

_spec = util.spec_from_file_location("tvm_conftest", Path(__file__).with_name("conftest.py"))
assert _spec is not None and _spec.loader is not None
_conftest = util.module_from_spec(_spec)
_spec.loader.exec_module(_conftest)

X = tf.TensorSpec([8, 16], tf.float32)
W = tf.TensorSpec([16, 16], tf.float32)
B = tf.TensorSpec([16], tf.float32)


def plan_of(function: Callable[..., Any], *specs: tf.TensorSpec) -> Plan:
    library = _conftest.library_of(function, specs)
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
