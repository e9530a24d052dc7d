"""Which regions may write over what a variable holds."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tests.runtime.regions.test_partition import calls, ops, regions

UPDATES = "_composite_updates"
SQUARE = tf.TensorSpec([4, 4])


def test_what_an_update_is_given_of_what_it_held() -> None:
    first, second = tf.Variable(tf.ones([4, 4])), tf.Variable(tf.ones([4, 4]))

    def body(x: Any) -> None:
        gradient = tf.matmul(x, x)
        first.assign_add(tf.tanh(gradient))
        second.assign_sub(gradient * first)

    function, _ = regions(body, SQUARE)
    (call,) = calls(function)
    pairs = list(call.attr[UPDATES].list.i)
    assert ops(function)["CompositeReadVariable"] == 2 == len(pairs) // 2
    nodes = {node.name: node for node in function.node_def}
    updates = [node for node in function.node_def if node.op == "CompositeUpdateVariable"]
    marked = {call.input[i]: f"{call.name}:output:{o}" for i, o in zip(*[iter(pairs)] * 2)}  # noqa: B905
    assert marked == {update.input[1]: update.input[2] for update in updates}
    assert all(nodes[x.partition(":")[0]].op == "CompositeReadVariable" for x in marked)


def test_a_region_waits_for_what_its_updates_wait_for() -> None:
    variable = tf.Variable(tf.ones([4, 4]))

    def body(x: Any) -> Any:
        tf.print(variable.read_value(), summarize=1)
        variable.assign_add(tf.tanh(tf.matmul(x, x)))

    function, _ = regions(body, SQUARE)
    (call,) = calls(function)
    (update,) = (node for node in function.node_def if node.op == "CompositeUpdateVariable")
    waits = {x for x in update.input if x.startswith("^")}
    assert waits
    assert waits <= {*call.input}


def test_a_region_that_its_update_waits_for_is_not_marked() -> None:
    variable = tf.Variable(tf.ones([4, 4]))

    def body(x: Any) -> Any:
        new = tf.tanh(tf.matmul(x, x)) * 2.0
        with tf.control_dependencies([tf.print(tf.reduce_sum(new))]):
            variable.assign_add(new)

    function, _ = regions(body, SQUARE)
    assert ops(function)["CompositeUpdateVariable"] == 1
    assert not [call for call in calls(function) if UPDATES in call.attr]


def test_what_another_node_makes_is_not_marked() -> None:
    """The sum is of what the region does not read."""
    variable, other = tf.Variable(tf.ones([4, 4])), tf.Variable(tf.ones([4, 4]))

    def body(x: Any) -> Any:
        other.assign_add(tf.tanh(tf.matmul(x, x)))
        variable.assign(other * 2.0)

    function, _ = regions(body, SQUARE)
    marked = [call for call in calls(function) if UPDATES in call.attr]
    assert len(marked) == 1
    assert len(marked[0].attr[UPDATES].list.i) == 2
