"""Lists of tensors are inside of one region, with all that hand them on, or outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tests.runtime.regions.scans import FLOATS, WIDTH, gate, scan
from tests.runtime.regions.test_partition import calls, ops, regions
from tests.runtime.regions.test_refused_nodes import refuse_each

LISTS = ("TensorListFromTensor", "TensorListReserve", "TensorListStack")


def assert_outside(body: Callable[[Any], Any], loops: int = 1) -> None:
    """No region has a loop or a list of the body."""
    rewritten, found = regions(body, FLOATS)
    outside = ops(rewritten)
    assert outside["While"] + outside["StatelessWhile"] == loops
    assert all(outside[op] == loops for op in LISTS)
    for function in found.values():
        ends = [*function.signature.input_arg, *function.signature.output_arg]
        assert tf.variant.as_datatype_enum not in {end.type for end in ends}


def test_a_loop_joins_with_its_lists() -> None:
    rewritten, found = regions(lambda x: tf.exp(scan(x * 2.0, gate)), FLOATS)
    (region,) = found.values()
    assert {op: ops(region)[op] for op in (*LISTS, "StatelessWhile", "Exp", "Mul")} == {
        **dict.fromkeys(LISTS, 1),
        "StatelessWhile": 1,
        "Exp": 1,
        "Mul": 1,
    }
    (call,) = calls(rewritten)
    assert list(call.input) == ["x"]


def test_a_list_that_somebody_else_reads() -> None:
    def body(x: Any) -> Any:
        rows = tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[WIDTH])
        return rows, tf.exp(scan(x, gate, through=lambda _: rows)) * 2.0

    assert_outside(body)


def test_a_list_that_an_op_without_a_lowering_makes() -> None:
    def resized(rows: Any) -> Any:
        return tf.raw_ops.TensorListResize(input_handle=rows, size=5)  # no kernel has it

    def body(x: Any) -> Any:
        return scan(x, gate, through=resized)

    assert_outside(body)
    assert ops(regions(body, FLOATS)[0])["TensorListResize"] == 1


def test_a_refused_neighbour_leaves_all_outside() -> None:
    def body(x: Any) -> Any:
        return tf.exp(scan(x * 3.0, gate)) * 5.0

    assert len(regions(body, FLOATS)[1]) == 1
    assert refuse_each(body, "TensorListStack") == 1
    assert_outside(body)
    assert sum(ops(one)["Exp"] for one in regions(body, FLOATS)[1].values()) == 1


def test_a_refused_loop_stays_outside() -> None:
    def body(x: Any) -> Any:
        return tf.exp(scan(x * 4.0, gate)) * 5.0

    assert refuse_each(body, "StatelessWhile") == 1
    assert_outside(body)


def test_no_path_leaves_a_list_and_comes_back() -> None:
    def body(x: Any) -> Any:
        rows = tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[WIDTH])
        first = tf.raw_ops.TensorListGetItem(
            input_handle=rows, index=0, element_shape=[WIDTH], element_dtype=tf.float32
        )
        bias = tf.math.lgamma(first)  # no kernel has it
        return scan(x, lambda row, h: tf.tanh(row + h) * bias, through=lambda _: rows)

    assert_outside(body)


def test_lists_that_wait_for_each_other() -> None:
    def first(rows: Any) -> Any:
        return tf.raw_ops.TensorListGetItem(
            input_handle=rows, index=0, element_shape=[WIDTH], element_dtype=tf.float32
        )

    def body(x: Any) -> Any:
        lists = [
            tf.raw_ops.TensorListFromTensor(tensor=x * factor, element_shape=[WIDTH])
            for factor in (2.0, 3.0)
        ]
        ends = [tf.math.lgamma(first(one)) for one in lists]

        def scanned(rows: Any, end: Any) -> Any:
            return scan(x, lambda row, h: tf.tanh(row + h) * end, through=lambda _: rows)

        return scanned(lists[0], ends[1]) + scanned(lists[1], ends[0])

    rewritten, found = regions(body, FLOATS)
    inside = sum((ops(one)["StatelessWhile"] for one in found.values()), 0)
    assert inside == 1  # both would wait for each other
    assert ops(rewritten)["TensorListFromTensor"] == 1


def test_lists_on_two_devices() -> None:
    def body(x: Any) -> Any:
        with tf.device("/cpu:0"):
            rows = tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[WIDTH])
        return scan(x, gate, through=lambda _: rows)

    assert_outside(body)


def test_equal_loops_are_equal_regions() -> None:
    def body(x: Any) -> Any:
        for i in range(3):
            with tf.name_scope(f"layer_{i}"):
                x = tf.math.lgamma(tf.exp(scan(x, gate)))
        return x

    rewritten, found = regions(body, FLOATS)
    assert len(calls(rewritten)) == 3
    assert len(found) == 1
