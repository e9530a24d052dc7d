"""Loops as regions have them: which may join, and what the variables of their trips become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.runtime.regions.scans import FLOATS, TRIPS, WIDTH, gate, numbers, scan, scanned, times
from tests.runtime.regions.test_form_regions import assert_close, with_regions, without
from tests.runtime.regions.test_partition import calls, ops, regions


def inside(body: Callable[..., Any], *specs: tf.TensorSpec) -> int:
    """How many loops of a body are in its regions."""
    _, found = regions(body, *(specs or [FLOATS]))
    return sum(ops(one)["StatelessWhile"] for one in found.values())


def test_variables_are_read_in_front_of_the_region() -> None:
    weight = tf.Variable(numbers(WIDTH, WIDTH))

    def body(x: Any) -> Any:
        return scan(x, times(weight))

    rewritten, found = regions(body, FLOATS)
    (region,) = found.values()
    (call,) = calls(rewritten)
    reads = [node for node in rewritten.node_def if node.op == "ReadVariableOp"]
    assert [f"{read.name}:value:0" for read in reads] == [call.input[-1]]
    assert {arg.type for arg in region.signature.input_arg} == {tf.float32.as_datatype_enum}
    (loop,) = (node for node in region.node_def if node.op == "StatelessWhile")
    at = list(loop.input).index(region.signature.input_arg[-1].name)
    assert loop.attr["output_shapes"].list.shape[at].unknown_rank  # no more that of a variable
    x = numbers(TRIPS, WIDTH, seed=1)
    results, count = with_regions(body, x)
    assert count == 1
    assert_close(results, [scanned(x, weight)])


def test_what_two_loops_read_is_read_once() -> None:
    weight = tf.Variable(numbers(WIDTH, WIDTH))

    def body(x: Any) -> Any:
        return scan(scan(x, times(weight)), times(weight))

    rewritten, found = regions(body, FLOATS)
    assert len(found) == 1
    assert ops(rewritten)["ReadVariableOp"] == 1
    x = numbers(TRIPS, WIDTH)
    assert_close(with_regions(body, x)[0], [scanned(scanned(x, weight), weight)])


def test_a_region_is_named_by_what_trips_do() -> None:
    names: list[str] = []
    for factor in (2.0, 2.0, 3.0):
        names += regions(lambda x, f=factor: scan(x, lambda r, h: tf.tanh(r + h) * f), FLOATS)[1]
    assert names[0] == names[1]
    assert names[0] != names[2]


def test_a_condition_may_read_a_variable() -> None:
    last = tf.Variable(3)

    def body(x: Any) -> Any:
        trip = lambda i, y: (i + 1, tf.tanh(y) * 2.0)  # noqa: E731
        return tf.while_loop(lambda i, _: i < last, trip, (0, x))[1]

    assert inside(body) == 1
    assert_close(with_regions(body, tf.ones([3]))[0], without(body, tf.ones([3])))
    last.assign(0)
    assert_close(with_regions(body, tf.ones([3]))[0], [[1.0] * 3])


@pytest.mark.parametrize(
    "test",
    [
        lambda _, y: tf.reduce_max(y) < 8.0,
        lambda i, y: tf.logical_or(i < 3, tf.reduce_max(y) < 8.0),
        lambda i, y: tf.logical_and(i < 3, tf.reduce_max(y) < 8.0),
        lambda i, _: tf.not_equal(i, 3),
    ],
)
def test_trips_that_nobody_can_count(test: Callable[[Any, Any], Any]) -> None:
    def body(x: Any) -> Any:
        return tf.while_loop(test, lambda i, y: (i + 1, tf.exp(y) * 2.0), (0, x))[1]

    assert inside(body) == 0
    assert_close(with_regions(body, tf.zeros([3]))[0], without(body, tf.zeros([3])))


def printing(row: Any, h: Any) -> Any:
    tf.print(h, output_stream="file:///dev/null")
    return gate(row, h)


def drawing(row: Any, h: Any) -> Any:
    return gate(row, h) + tf.random.uniform([WIDTH])


def uncovered(row: Any, h: Any) -> Any:
    return tf.math.lgamma(gate(row, h))


def looping(row: Any, h: Any) -> Any:
    return tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, gate(row, y)), (0, h))[1]


def counting() -> Callable[[Any, Any], Any]:
    count = tf.Variable(tf.zeros([]))

    def step(row: Any, h: Any) -> Any:
        return gate(row, h) + count.assign_add(1.0)

    return step


@pytest.mark.parametrize(
    "step", [printing, drawing, uncovered, counting()], ids=["print", "draw", "lgamma", "assign"]
)
def test_trips_that_do_what_no_region_may(step: Callable[[Any, Any], Any]) -> None:
    rewritten, found = regions(lambda x: scan(x, gate) + scan(x, step), FLOATS)
    assert ops(rewritten)["While"] + ops(rewritten)["StatelessWhile"] == 1
    assert sum(ops(one)["StatelessWhile"] for one in found.values()) == 1  # the other one


def test_a_loop_in_a_loop_joins_a_region_of_the_outer_trips() -> None:
    def body(x: Any) -> Any:
        return scan(x, looping)

    rewritten, _ = regions(body, FLOATS)
    assert ops(rewritten)["StatelessWhile"] + ops(rewritten)["While"] == 1
    x = numbers(TRIPS, WIDTH)
    results, count = with_regions(body, x)
    assert count == 1  # the inner one
    assert_close(results, without(body, x))


def test_large_constants_of_trips_stay_outside() -> None:
    table = np.random.default_rng(0).standard_normal((8, WIDTH)).astype(np.float32)

    def looked_up(row: Any, h: Any) -> Any:
        return gate(row, h) + tf.reduce_sum(tf.constant(table), 0)

    assert inside(lambda x: scan(x, looked_up)) == 0


def test_trips_of_any_number() -> None:
    def body(x: Any, trips: Any) -> Any:
        return scan(x, gate, trips=trips)

    assert inside(body, FLOATS, tf.TensorSpec([], tf.int32)) == 1
    x = numbers(TRIPS, WIDTH)
    for trips in (TRIPS, 2, 0):
        given = (x, tf.constant(trips))
        assert_close(with_regions(body, *given)[0], without(body, *given))
