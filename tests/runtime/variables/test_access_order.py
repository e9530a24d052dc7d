"""What regions compute is of what variables hold there, whatever orders reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.binding import settings as options
from tests.runtime.regions.scans import TRIPS, WIDTH, gate, numbers, scan
from tests.runtime.regions.test_form_regions import formed
from tests.runtime.regions.test_partition import ops, regions

X = tf.TensorSpec([4])
HANDLE = tf.TensorSpec([], tf.resource)
UPDATE = "CompositeUpdateVariable"
ADDITIONS = [tf.raw_ops.AssignAddVariableOp, tf.raw_ops.AssignSubVariableOp]


def run(body: Callable[..., Any], *inputs: Any) -> list[Any]:
    """The results of a function of the body that has regions, which it has to have."""
    before = formed()
    with options.options(regions=True):
        results = tf.function(body, autograph=False)(*inputs)
    assert formed() > before
    return [np.asarray(result) for result in tf.nest.flatten(results)]


def read(handle: Any) -> Any:
    value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
    value.set_shape([4])
    return value


@pytest.mark.parametrize("add", ADDITIONS)
def test_an_assignment_between_a_read_and_an_addition_that_waits_for_both(add: Any) -> None:
    variable = tf.Variable(tf.fill([4], 10.0))

    def body(x: Any) -> Any:
        early = variable.read_value()
        variable.assign(tf.zeros([4]))
        with tf.control_dependencies([early]):
            add(resource=variable.handle, value=tf.abs(x) * 0.25)
        return early, variable.read_value() * 2.0

    early, late = run(body, tf.ones([4]))
    wanted = 0.25 if add is ADDITIONS[0] else -0.25
    np.testing.assert_array_equal(variable, np.full(4, wanted))
    np.testing.assert_array_equal(early, np.full(4, 10.0))
    np.testing.assert_array_equal(late, np.full(4, 2 * wanted))


def test_a_constant_that_waits_for_a_read_keeps_the_addition_behind_it() -> None:
    """Only the constants of an operand wait where control dependencies surround it."""
    variable = tf.Variable(tf.ones([4]))

    def body(x: Any) -> Any:
        first = variable.read_value()
        with tf.control_dependencies([first]):
            amount = tf.abs(x) * 0.25 + 1.0
        variable.assign_add(amount)
        return first

    function, _ = regions(body, X)
    (call,) = (node for node in function.node_def if node.op == "CompositeCall")
    assert any(name.startswith("^") for name in call.input)


def handles_of_one_variable(order: Callable[[Any, Any, Any], Any]) -> list[Any]:
    """Calls a function with two handles of a variable that holds 10."""
    variable = tf.Variable(tf.fill([4], 10.0))
    return [*run(order, tf.ones([4]), variable.handle, variable.handle), variable.numpy()]


def test_an_assignment_by_another_handle_before_an_addition() -> None:
    def body(x: Any, one: Any, other: Any) -> Any:
        early = read(one)
        with tf.control_dependencies([early]):
            assign = tf.raw_ops.AssignVariableOp(resource=other, value=tf.zeros([4]))
        with tf.control_dependencies([assign]):
            add = tf.raw_ops.AssignAddVariableOp(resource=one, value=tf.abs(x) * 0.25)
        with tf.control_dependencies([add]):
            return read(one) * 2.0

    late, held = handles_of_one_variable(body)
    np.testing.assert_array_equal(held, np.full(4, 0.25))
    np.testing.assert_array_equal(late, np.full(4, 0.5))


def test_an_assignment_by_another_handle_behind_an_addition() -> None:
    def body(x: Any, one: Any, other: Any) -> Any:
        add = tf.raw_ops.AssignAddVariableOp(resource=one, value=tf.abs(x) * 0.25)
        with tf.control_dependencies([add]):
            assign = tf.raw_ops.AssignVariableOp(resource=other, value=tf.zeros([4]))
        with tf.control_dependencies([assign]):
            return read(one) * 2.0 + 1.0

    late, held = handles_of_one_variable(body)
    np.testing.assert_array_equal(held, np.zeros(4))
    np.testing.assert_array_equal(late, np.ones(4))


def test_what_is_computed_of_a_sum_writes_behind_the_addition() -> None:
    """Only what is read behind the addition orders the two handles."""

    def body(x: Any, one: Any, other: Any) -> Any:
        tf.raw_ops.AssignAddVariableOp(resource=one, value=tf.abs(x) * 0.25)
        late = read(one) * 2.0 + 1.0
        tf.raw_ops.AssignVariableOp(resource=other, value=late)
        return late

    late, held = handles_of_one_variable(body)
    np.testing.assert_array_equal(late, np.full(4, 21.5))
    np.testing.assert_array_equal(held, late)


def test_a_handle_that_a_function_is_given_twice() -> None:
    variable = tf.Variable(tf.fill([4], 10.0))

    @tf.function(autograph=False, input_signature=[X, HANDLE, HANDLE])
    def called(x: Any, one: Any, other: Any) -> Any:
        early = read(one)
        with tf.control_dependencies([early]):
            assign = tf.raw_ops.AssignVariableOp(resource=other, value=tf.zeros([4]))
        with tf.control_dependencies([assign]):
            tf.raw_ops.AssignSubVariableOp(resource=one, value=tf.abs(x) * 0.25)
        return read(one) * 2.0

    (late,) = run(lambda x: called(x, variable.handle, variable.handle), tf.ones([4]))
    np.testing.assert_array_equal(variable, np.full(4, -0.25))
    np.testing.assert_array_equal(late, np.full(4, -0.5))


def test_python_code_that_writes_before_an_addition() -> None:
    variable = tf.Variable(tf.fill([4], 10.0))

    def body(x: Any) -> Any:
        early = variable.read_value()
        with tf.control_dependencies([early]):
            zero = tf.py_function(lambda: variable.assign(tf.zeros([4])), [], tf.float32)
        with tf.control_dependencies([zero]):
            variable.assign_add(tf.abs(x) * 0.25)
        return variable * 2.0

    (late,) = run(body, tf.ones([4]))
    np.testing.assert_array_equal(variable, np.full(4, 0.25))
    np.testing.assert_array_equal(late, np.full(4, 0.5))


def test_a_loop_in_a_region_reads_behind_what_its_input_is_behind() -> None:
    variable = tf.Variable(1.0)
    x = numbers(TRIPS, WIDTH)

    def body(x: Any, handle: Any) -> Any:
        write = tf.raw_ops.AssignVariableOp(resource=handle, value=tf.reduce_max(x) * 0.0 + 3.0)
        with tf.control_dependencies([write]):
            rows = tf.identity(x)
        return scan(rows, lambda row, h: gate(row, h) * variable)

    (found,) = run(body, x, variable.handle)
    variable.assign(3.0)
    wanted = scan(x, lambda row, h: gate(row, h) * variable)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_captured_variables_are_different_ones() -> None:
    """So what one step writes and reads may be one region."""
    first, second = tf.Variable(tf.ones([4])), tf.Variable(tf.ones([4]))

    def body(x: Any) -> Any:
        first.assign_add(tf.abs(x) * 0.5)
        second.assign_add(first * 0.5)
        return second * 2.0

    function, found = regions(body, X)
    assert ops(function)[UPDATE] == 2
    assert len(found) == 1


@pytest.mark.parametrize(
    ("held", "amount"),
    [([4], [1]), ([4], []), ([2, 4], [4]), ([2, 4], [1, 4]), ([1], [4]), ([2, 2], [4])],
    ids=str,
)
@pytest.mark.parametrize("method", ["assign_add", "assign_sub", "assign"])
def test_another_shape_is_an_error_and_changes_nothing(
    held: list[int], amount: list[int], method: str
) -> None:
    variable = tf.Variable(tf.ones(held), shape=held)
    spec = tf.TensorSpec(None)

    def body(x: Any) -> Any:
        return getattr(variable, method)(tf.exp(x) * 2.0)

    function = tf.function(body, input_signature=[spec], autograph=False)
    x = tf.zeros(amount)
    for regions_are_on in (False, True):
        with (
            options.options(regions=regions_are_on),
            pytest.raises(tf.errors.InvalidArgumentError, match="shape"),
        ):
            function(x)
        np.testing.assert_array_equal(variable, np.ones(held))
