"""Who waited for a loop still does, and what a loop waited for it still comes after."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tests.runtime.regions.scans import FLOATS, TRIPS, WIDTH, numbers, scan, scanned, times
from tests.runtime.regions.test_form_regions import assert_close, with_regions
from tests.runtime.regions.test_partition import (
    calls,
    library_of,
    ops,
    regions,
    regions_of,
    traced,
)


def test_writes_between_loops() -> None:
    first, second, third = (numbers(WIDTH, WIDTH, seed=seed) for seed in range(3))
    weight = tf.Variable(first)
    x = numbers(TRIPS, WIDTH, seed=3)

    def body(x: Any) -> Any:
        y = scan(x, times(weight))
        weight.assign(second)
        z = scan(x, times(weight))
        weight.assign(third)
        return y, z

    rewritten, _ = regions(body, FLOATS)
    assert len(calls(rewritten)) == 2
    assert ops(rewritten)["NoOp"] >= 2
    results, count = with_regions(body, x)
    assert count == 2
    assert_close(results, [scanned(x, first), scanned(x, second)])
    assert_close([weight], [third])


def test_in_a_function_that_is_called() -> None:
    first, second = numbers(WIDTH, WIDTH), numbers(WIDTH, WIDTH, seed=1)
    weight = tf.Variable(first)
    x = numbers(TRIPS, WIDTH, seed=3)

    @tf.function(autograph=False)
    def inner(x: Any) -> Any:
        weight.assign(second)
        y = scan(x, times(weight))
        weight.assign(first)
        return y, scan(x, times(weight))

    results, count = with_regions(inner.python_function, x)
    assert count == 2
    called, count = with_regions(inner, x)
    assert count == 2
    for found in (results, called):
        assert_close(found, [scanned(x, second), scanned(x, first)])


def test_loops_that_wait_for_each_other_in_one_region() -> None:
    weight = tf.Variable(numbers(WIDTH, WIDTH))

    def body(x: Any) -> Any:
        before = tf.math.lgamma(x, name="before")
        return before + scan(scan(x, times(weight)), times(weight))

    function = traced(body, [FLOATS])
    library = library_of(function)
    loops = [node for node in library.function[0].node_def if node.op == "While"]
    loops[0].input.append("^before")
    loops[1].input.append(f"^{loops[0].name}")
    rewritten, found = regions_of(library)
    assert len(found) == 1
    nodes = {node.name: list(node.input) for node in rewritten.node_def}
    (read,) = (node.name for node in rewritten.node_def if node.op == "ReadVariableOp")
    assert nodes[read][1:] == ["^before"]
    assert nodes[loops[0].name] == nodes[loops[1].name] == ["^before", f"^{read}"]


def test_the_name_of_a_loop_stays() -> None:
    weight = tf.Variable(numbers(WIDTH, WIDTH))

    def body(x: Any) -> Any:
        return scan(x, times(weight))

    function = traced(body, [FLOATS]).function_def
    (loop,) = (node for node in function.node_def if node.op == "While")
    rewritten, _ = regions(body, FLOATS)
    (left,) = (node for node in rewritten.node_def if node.name == loop.name)
    assert left.op == "NoOp"
    (read,) = (node for node in rewritten.node_def if node.op == "ReadVariableOp")
    assert list(left.input) == [f"^{read.name}"]
    assert rewritten.signature.control_output == function.signature.control_output


def test_a_loop_without_state_leaves_nothing() -> None:
    rewritten, found = regions(lambda x: scan(x, lambda row, h: tf.tanh(row + h) * 2.0), FLOATS)
    assert len(found) == 1
    assert ops(rewritten)["NoOp"] == 0
