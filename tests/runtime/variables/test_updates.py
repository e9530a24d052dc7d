"""Additions to variables are sums of regions, and none is lost, whoever else writes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.binding import settings as options
from composite.ops.call import eager_op
from tests.runtime.regions.test_form_regions import formed
from tests.runtime.regions.test_partition import calls, ops, regions

UPDATE = "CompositeUpdateVariable"


def adam(dtype: Any = tf.float32) -> tuple[Any, list[tf.Variable]]:
    """A step of an optimizer, which reads what it has written."""
    first, second, weights = (tf.Variable(tf.ones([3, 4], dtype)) for _ in range(3))

    def step(g: Any) -> Any:
        first.assign_add((g - first) * 0.25)
        second.assign_add((g * g - second) * 0.125)
        weights.assign_sub(first * 0.5 / (tf.sqrt(second) + 1.0))
        return tf.reduce_sum(weights)

    return step, [first, second, weights]


def test_a_step_has_updates_and_computes_the_same() -> None:
    step, variables = adam()
    function, found = regions(step, tf.TensorSpec([3, 4]))
    assert ops(function)[UPDATE] == 3
    assert not ops(function)["AssignAddVariableOp"] + ops(function)["AssignSubVariableOp"]
    assert sum(ops(region)["AddN"] for region in found.values()) == 3  # inside of regions
    assert calls(function)
    other, others = adam()
    plain, with_regions = tf.function(other), tf.function(step)
    for number in range(3):
        g = tf.random.stateless_normal([3, 4], [number, 1])
        with options.options(regions=True):
            result = with_regions(g)
        np.testing.assert_allclose(result, plain(g), rtol=1e-6)
    for one, wanted in zip(variables, others, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float64])
def test_other_floats(dtype: Any) -> None:
    step, variables = adam(dtype)
    other, others = adam(dtype)
    g = tf.fill([3, 4], tf.constant(2.0, dtype))
    with options.options(regions=True):
        tf.function(step)(g)
    tf.function(other)(g)
    for one, wanted in zip(variables, others, strict=True):
        np.testing.assert_allclose(
            tf.cast(one, tf.float64), tf.cast(wanted, tf.float64), rtol=2.0**-7
        )


def test_what_is_no_sum_of_a_region_stays() -> None:
    count, total = tf.Variable(0), tf.Variable(0.0)

    def body(x: Any) -> None:
        count.assign_add(tf.size(x))  # whole numbers
        total.assign_add(1.0)  # nothing computes it

    function, _ = regions(body, tf.TensorSpec([3]))
    assert ops(function)["AssignAddVariableOp"] == 2


def test_updates_in_a_function_that_is_called_and_in_loops() -> None:
    variable = tf.Variable([1.0, 2.0])

    @tf.function(autograph=False)
    def inner(x: Any) -> Any:
        variable.assign_add(tf.tanh(x) * 2.0)
        return variable.read_value()

    def body(x: Any) -> Any:
        _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, inner(y)), (0, x))
        return y

    x = tf.constant([0.5, -0.5])
    wanted, held = x.numpy(), variable.numpy()
    for _ in range(3):
        held = wanted = held + np.tanh(wanted) * 2.0
    before = formed()
    with options.options(regions=True):
        found = tf.function(body, autograph=False)(x)
    assert formed() > before
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_allclose(variable, held, rtol=1e-6)


def test_what_is_read_behind_an_addition_is_the_sum() -> None:
    step, _ = adam()
    function, found = regions(step, tf.TensorSpec([3, 4]))
    (region,) = found.values()
    assert ops(region)["Sqrt"] == ops(region)["Sum"] == 1
    (call,) = calls(function)
    nodes = {node.name: node for node in function.node_def}
    arguments = [nodes[x.partition(":")[0]] for x in call.input if x[0] not in "g^"]
    reads = [node for node in arguments if node.op == "CompositeReadVariable"]
    assert len(reads) == 3
    assert not any("Assign" in x for read in reads for x in read.input)


def test_sums_of_16_bit_floats_are_read_of_the_variable() -> None:
    """A kernel of Adam's whole step would be held to the sign of a gradient that cancels."""
    step, _ = adam()

    def mixed(x: Any) -> Any:
        return step(tf.cast(tf.matmul(x, tf.ones([4, 4], tf.bfloat16)), tf.float32))

    function, found = regions(mixed, tf.TensorSpec([3, 4], tf.bfloat16))
    assert ops(function)[UPDATE] == 3
    (root,) = (region for region in found.values() if ops(region)["Sqrt"])
    assert not ops(root)["Square"] + ops(root)["MatMul"]


def decayed() -> tuple[Any, tf.Variable]:
    """Weight decay and a gradient's step, one after the other, as Keras has them."""
    weights = tf.Variable([2.0, 4.0])

    def step(g: Any) -> Any:
        weights.assign_sub(weights * 0.5)
        weights.assign_sub(tf.tanh(g) * 0.25)
        return weights * 2.0

    return step, weights


def test_additions_in_succession_are_one_update() -> None:
    step, weights = decayed()
    function, found = regions(step, tf.TensorSpec([2]))
    assert ops(function)[UPDATE] == 1
    assert len(found) == 1
    (call,) = calls(function)
    assert len(call.attr["Tout"].list.type) == 2  # the weights, and what is returned
    other, wanted = decayed()
    plain, with_regions = tf.function(other), tf.function(step)
    for _ in range(3):
        with options.options(regions=True):
            result = with_regions(tf.ones([2]))
        np.testing.assert_allclose(result, plain(tf.ones([2])), rtol=1e-6)
    np.testing.assert_allclose(weights, wanted, rtol=1e-6)


def test_what_is_read_between_two_additions() -> None:
    variable = tf.Variable([2.0, 4.0])

    def body(x: Any) -> Any:
        variable.assign_add(tf.exp(x))
        between = tf.py_function(lambda y: y + 0.0, [variable.read_value()], tf.float32)
        variable.assign_add(tf.exp(x) * 2.0)
        return between, variable * 1.0

    with options.options(regions=True):
        between, last = tf.function(body)(tf.zeros([2]))
    np.testing.assert_array_equal(between, [3.0, 5.0])
    np.testing.assert_array_equal(last, [5.0, 7.0])
    np.testing.assert_array_equal(variable, last)


def test_another_writer_is_seen_by_what_reads_behind_it() -> None:
    variable = tf.Variable([1.0, 2.0])

    @tf.function(autograph=False)
    def doubled() -> None:
        variable.assign(variable * 2.0)

    def body(x: Any) -> Any:
        variable.assign_add(tf.exp(x) * 2.0)
        doubled()
        first = variable * 1.0
        variable.assign_sub(tf.exp(x) * 3.0)
        return first, variable * 1.0

    with options.options(regions=True):
        first, second = tf.function(body, autograph=False)(tf.zeros([2]))
    np.testing.assert_array_equal(first, [6.0, 8.0])
    np.testing.assert_array_equal(second, [3.0, 5.0])
    np.testing.assert_array_equal(variable, second)


def test_what_was_read_keeps_its_value() -> None:
    variable = tf.Variable([1.0, 2.0])

    def body(x: Any) -> Any:
        before = variable.read_value()
        variable.assign_add(tf.exp(x) * 2.0)
        return before, variable.read_value()

    function = tf.function(body)
    with options.options(regions=True):
        before, after = function(tf.zeros([2]))
        later, _ = function(tf.zeros([2]))
    np.testing.assert_array_equal(before, [1.0, 2.0])
    np.testing.assert_array_equal(after, [3.0, 4.0])
    np.testing.assert_array_equal(later, after)


def test_no_addition_is_lost_between_threads() -> None:
    variable = tf.Variable(tf.zeros([64]))
    function = tf.function(lambda x: variable.assign_add(tf.exp(x) * 2.0))
    x = tf.zeros([64])
    with options.options(regions=True):
        function(x)

    def run() -> None:
        for _ in range(200):
            function(x)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(variable, np.full(64, 2.0 * 801))


def test_sparse_updates_of_the_same_variable() -> None:
    """They have it hand out copies from then on."""
    variable = tf.Variable([1.0, 2.0, 3.0])

    def body(x: Any) -> None:
        variable.assign_add(tf.exp(x) * 2.0)
        variable.scatter_add(tf.IndexedSlices(tf.constant([10.0]), tf.constant([1])))

    function = tf.function(body)
    with options.options(regions=True):
        function(tf.zeros([3]))
        function(tf.zeros([3]))
    np.testing.assert_array_equal(variable, [5.0, 26.0, 7.0])


def test_another_part_of_the_same_tensor_is_another_value() -> None:
    """An assignment between the read and the update stays."""
    parts = tf.unstack(tf.reshape(tf.range(64.0), [2, 32]))
    variable, attrs = tf.Variable(parts[0]), ("dtype", tf.float32.as_datatype_enum)
    (before,) = eager_op("CompositeReadVariable", 1, [variable.handle], attrs)
    variable.assign(parts[1])
    eager_op("CompositeUpdateVariable", 0, [variable.handle, before, before + 1.0], attrs)
    np.testing.assert_array_equal(variable, parts[1] + 1.0)
    np.testing.assert_array_equal(before, parts[0])


def test_another_shape_is_an_error_that_names_both() -> None:
    variable = tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))
    function = tf.function(
        lambda x: variable.assign_add(tf.exp(x)), input_signature=[tf.TensorSpec(None)]
    )
    with (
        options.options(regions=True),
        pytest.raises(tf.errors.InvalidArgumentError, match=r"same size and shape.*\[2\].*\[3,2\]"),
    ):
        function(tf.zeros([3, 2]))
    np.testing.assert_array_equal(variable, [1.0, 2.0])


def test_a_variable_that_nobody_wrote_to() -> None:
    """TensorFlow's own read says so with the same code."""

    def body() -> None:
        handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[3], shared_name="nobodys")
        value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
        tf.raw_ops.AssignAddVariableOp(resource=handle, value=tf.exp(value) * 2.0)

    found = pytest.raises(tf.errors.FailedPreconditionError, match="Could not find .* nobodys")
    with options.options(regions=True), found:
        tf.function(body, autograph=False)()
