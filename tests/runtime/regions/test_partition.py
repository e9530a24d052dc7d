"""Which nodes become regions: convex, no larger than stated, nothing that keeps state or waits."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary

from tests.runtime import kernel_support as k

CALL = "CompositeCall"
FLOATS = tf.TensorSpec([4, 4], tf.float32)


def traced(body: Callable[..., Any], specs: Sequence[tf.TensorSpec]) -> Any:
    return tf.function(body, autograph=False).get_concrete_function(*specs)


def regions(
    body: Callable[..., Any], *specs: tf.TensorSpec
) -> tuple[FunctionDef, dict[str, FunctionDef]]:
    """The body with its regions, and the functions of these by name."""
    return regions_of(library_of(traced(body, specs or [FLOATS])))


def library_of(function: Any) -> FunctionDefLibrary:
    """A function, and those that it runs."""
    return FunctionDefLibrary(
        function=[function.function_def, *function.graph.as_graph_def().library.function]
    )


def regions_of(library: FunctionDefLibrary) -> tuple[FunctionDef, dict[str, FunctionDef]]:
    """The first function with its regions, and the functions of these by name."""
    reply = k.request("composite_find_regions", library)
    found = FunctionDefLibrary.FromString(reply).function
    named = {call.attr["f"].func.name for call in calls(found[0])}
    return found[0], {f.signature.name: f for f in found[1:] if f.signature.name in named}


def calls(function: FunctionDef) -> list[Any]:
    return [node for node in function.node_def if node.op == CALL]


def ops(function: FunctionDef) -> Counter[str]:
    return Counter(node.op for node in function.node_def)


def test_a_chain_is_one_region() -> None:
    rewritten, found = regions(lambda x: tf.nn.relu(tf.matmul(x, x) + 1.0) * 2.0)
    (region,) = found.values()
    inside = {"MatMul": 1, "AddV2": 1, "Relu": 1, "Mul": 1, "Const": 2, "Identity": 1}
    assert ops(region) == inside
    (call,) = calls(rewritten)
    assert list(call.input) == ["x"]
    assert call.attr["f"].func.name == region.signature.name
    assert set(ops(rewritten)) == {CALL, "Const"}  # the constants were copied


def test_no_path_leaves_a_region_and_comes_back() -> None:
    def body(x: Any) -> Any:
        y = tf.exp(x) * 2.0
        z = tf.math.lgamma(y)  # no kernel has it
        return tf.tanh(y) + tf.sin(z)

    rewritten, found = regions(body)
    below = [f for f in found.values() if "Exp" in ops(f)]
    above = [f for f in found.values() if "Sin" in ops(f)]
    assert below != above
    assert ops(rewritten)["Lgamma"] == 1


def test_branches_that_meet_are_one_region() -> None:
    _, found = regions(lambda x: tf.exp(x) * tf.tanh(x) - tf.sin(x))
    assert len(found) == 1


def test_one_op_is_no_region() -> None:
    rewritten, found = regions(lambda x: tf.reshape(tf.exp(x), [2, 8]))
    assert not found
    assert not calls(rewritten)


def test_whole_numbers_alone_are_no_region() -> None:
    assert not regions(lambda n: (n + 1) * n - 3, tf.TensorSpec([], tf.int32))[1]


def test_no_more_products_than_a_region_may_have() -> None:
    def body(x: Any) -> Any:
        for _ in range(20):
            x = tf.tanh(tf.matmul(x, x))
        return x

    rewritten, found = regions(body)
    products = [ops(found[call.attr["f"].func.name])["MatMul"] for call in calls(rewritten)]
    assert products == [8, 8, 4]


def test_equal_layers_are_equal_regions() -> None:
    def body(x: Any, *weights: Any) -> Any:
        for i, weight in enumerate(weights):
            with tf.name_scope(f"layer_{i}"):
                x = tf.math.lgamma(tf.nn.softmax(tf.matmul(x, weight)) * 2.0)
        return x

    rewritten, found = regions(body, *[FLOATS] * 12)
    assert len(calls(rewritten)) == 11
    assert len(found) == 1


def test_state_stays_outside() -> None:
    variable = tf.Variable(tf.ones([4, 4]))

    def body(x: Any) -> Any:
        y = tf.exp(x + variable)
        variable.assign(y)
        return tf.sin(y * variable) + tf.random.uniform([4, 4])

    rewritten, found = regions(body)
    inside = sum((ops(f) for f in found.values()), Counter())
    assert not {"ReadVariableOp", "AssignVariableOp", "RandomUniform"} & set(inside)
    assert ops(rewritten)["ReadVariableOp"] == 2


def test_what_waits_or_is_waited_for_stays_outside() -> None:
    def body(x: Any) -> Any:
        y = tf.exp(x)
        with tf.control_dependencies([y]):
            z = tf.sin(x)
        return tf.tanh(z * y) + 1.0

    rewritten, _ = regions(body)
    assert ops(rewritten)["Exp"] == 1
    assert ops(rewritten)["Sin"] == 1


def test_devices_are_not_mixed() -> None:
    def body(x: Any) -> Any:
        with tf.device("/cpu:0"):
            y = tf.exp(x) * 2.0
        return tf.tanh(y) + 1.0

    rewritten, found = regions(body)
    assert len(found) == 2
    assert len({call.device for call in calls(rewritten)}) == 2


def test_small_constants_are_copied_and_large_ones_read() -> None:
    def body(x: Any) -> Any:
        return tf.exp(x * np.ones([3, 4, 4], np.float32)) * 2.0

    rewritten, found = regions(body)
    (region,) = found.values()
    (call,) = calls(rewritten)
    assert ops(region)["Const"] == 1
    assert len(call.input) == 2


def test_strings_and_variants_stay_outside() -> None:
    rewritten, _ = regions(lambda x: tf.strings.to_number(tf.strings.as_string(x * 2.0) + "1"))
    assert {"AsString", "StringToNumber"} <= set(ops(rewritten))


def test_all_results_of_an_op_with_several() -> None:
    def body(x: Any) -> Any:
        a, b = tf.split(tf.exp(x), 2, axis=1)
        return tf.math.lgamma(b), tf.math.lgamma(a), tf.tanh(a) + b

    rewritten, found = regions(body)
    (region,) = found.values()
    assert len(region.signature.output_arg) == 3
    (call,) = calls(rewritten)
    assert len(call.attr["Tout"].list.type) == 3


def test_many_nodes_take_little_time() -> None:
    def body(x: Any) -> Any:
        values = [x]
        for i in range(2000):
            values.append(tf.tanh(values[i // 2]) if i % 3 else values[-1] + values[i // 2])
        return tf.add_n(values)  # all of them are read

    function = traced(body, [FLOATS])
    library = FunctionDefLibrary(function=[function.function_def])
    start = time.perf_counter()
    k.request("composite_find_regions", library)
    assert time.perf_counter() - start < 5  # linear in the nodes: minutes else


def test_what_is_no_weight_comes_first() -> None:
    matrix = tf.Variable(tf.ones([4, 4]))

    def body(x: Any) -> Any:
        fixed = tf.constant(np.ones([8, 4], np.float32))
        return tf.matmul(matrix, tf.tanh(tf.matmul(fixed, x)), transpose_b=True)

    rewritten, _ = regions(body)
    (call,) = calls(rewritten)
    assert call.input[0] == "x"
    assert len(call.input) == 3
