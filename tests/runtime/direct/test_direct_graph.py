"""Functions that are called directly: what they read and return, and which stay functions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from composite.ops import direct


class Direct:
    """A function as it is called directly."""

    def __init__(self, body: Callable[..., Any], *args: Any) -> None:
        """`args`: those of one call."""
        self.concrete = tf.function(body, autograph=False).get_concrete_function(*args)
        self.made = made_of(self.concrete.name, self.concrete.captured_inputs)
        self.calls = direct.FunctionCalls.new(lambda given: given)

    def __call__(self, *args: Any) -> list[np.ndarray]:
        """LookupError if the call fails: TensorFlow has to be asked."""
        eager = context.context()
        self.calls.add(args, self.made, list)
        found = self.calls.call(eager, eager._thread_local_data, args)
        if found is NotImplemented:
            raise LookupError("the call is TensorFlow's")
        return [one.numpy() for one in found]


def made_of(name: Any, captures: list[Any]) -> direct.Made:
    config = context.context().function_call_options.config_proto_serialized
    return direct.of_function(name, config, captures)


def test_results_follow_from_arguments_and_what_variables_hold_now() -> None:
    weight = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    scale = tf.constant(2.0)

    def body(x: Any, rows: Any) -> Any:
        # One variable, read twice as a whole and once by rows; a constant of the caller's.
        total = tf.matmul(x, weight) * tf.reduce_sum(weight) * scale
        return total, tf.gather(weight, rows), x

    def expected(x: Any, rows: Any) -> list[np.ndarray]:
        w = weight.numpy()
        return [x.numpy() @ w * w.sum() * 2.0, w[rows.numpy()], x.numpy()]

    x, rows = tf.constant([[1.0, -1.0]]), tf.constant([1, 1, 0])
    called = Direct(body, tf.TensorSpec([None, 2]), tf.TensorSpec([None], tf.int32))

    def check() -> None:
        for found, wanted in zip(called(x, rows), expected(x, rows), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)

    check()
    weight.assign([[5.0, 0.0], [0.0, 7.0]])
    check()
    x, rows = tf.ones([3, 2]), tf.constant([0])
    check()
    for _ in range(2):  # from the first one on, all reads are copies
        weight.scatter_nd_update([[0]], [[-1.0, tf.random.uniform([])]])
        check()
    with ThreadPoolExecutor(4) as threads:
        for _ in threads.map(lambda _: check(), range(40)):
            pass


def test_arguments_that_nobody_reads() -> None:
    weight, other = tf.Variable(3.0), tf.Variable(5.0)

    def body(x: Any, unread: Any, y: Any) -> Any:
        other.read_value()
        return y, x, x * weight

    given = [tf.constant(one) for one in (2.0, 7, 4.0)]
    assert [one.item() for one in Direct(body, *given)(*given)] == [4.0, 2.0, 6.0]


def test_tables_are_read() -> None:
    entries = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0])
    table = tf.lookup.StaticHashTable(entries, default_value=-1.0)
    called = Direct(lambda words: table.lookup(words) * 2.0, tf.TensorSpec([None], tf.string))
    np.testing.assert_array_equal(called(tf.constant(["b", "c"]))[0], [4.0, -2.0])


def test_a_variable_without_a_value() -> None:
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[1], shared_name="direct_without")
    called = Direct(
        lambda x: x * tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32),
        tf.TensorSpec([1]),
    )
    with pytest.raises(LookupError):
        called(tf.ones([1]))
    tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant([3.0]))
    np.testing.assert_allclose(called(tf.ones([1]))[0], [3.0])


counter = tf.Variable(0.0)
large = np.random.default_rng(0).standard_normal((2200, 2200)).astype(np.float32)


def two(x: Any) -> Any:
    return tf.matmul(x[:, None], x[None])


def halves(x: Any) -> Any:
    return tf.while_loop(lambda x: tf.reduce_max(x) > 1.0, lambda x: (x * 0.5,), [x])[0]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (lambda x: x + counter.assign_add(1.0), "AssignAddVariableOp .node .*has state"),
        (lambda x: x + tf.random.uniform([]), "RandomUniform .*has state"),
        (lambda x: (two(x), two(tf.exp(x))), "threads could share its work"),
        (lambda x: tf.matmul(tf.ones([1, 2200]) * x, large), "its constants are large"),
        (halves, "executor does not support"),
    ],
)
def test_what_stays_a_function(body: Callable[[Any], Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Direct(body, tf.TensorSpec([1]))
    assert float(counter.numpy()) == 0.0


def test_a_chain_may_have_branches_that_are_no_work() -> None:
    def body(x: Any) -> Any:
        joined = tf.concat([tf.transpose(x) + 1.0, tf.exp(x)], 0)
        return tf.matmul(tf.matmul(joined, x), x)

    x = tf.constant([[1.0, -5.0], [2.0, 3.0]])
    np.testing.assert_allclose(Direct(body, x)(x)[0], body(x), rtol=1e-6)


def test_what_fails_is_left_to_the_function() -> None:
    def positive(x: Any) -> Any:
        tf.raw_ops.Assert(condition=tf.reduce_all(x > 0.0), data=["too small"])
        return tf.sqrt(x)

    called = Direct(positive, tf.TensorSpec([1]))
    np.testing.assert_allclose(called(tf.constant([4.0]))[0], [2.0])
    with pytest.raises(LookupError):
        called(tf.constant([-4.0]))


def test_threads_share_it() -> None:
    def body(x: Any) -> Any:
        array = tf.TensorArray(tf.float32, 2).write(0, x).write(1, x + 1.0)
        return array.stack()

    called = Direct(body, tf.TensorSpec([]))
    with ThreadPoolExecutor(4) as threads:
        for i, found in enumerate(threads.map(lambda i: called(tf.constant(float(i))), range(40))):
            np.testing.assert_allclose(found[0], [i, i + 1.0])


def test_bad_input() -> None:
    with pytest.raises(direct.RefusedError, match="no function nobodys"):
        made_of("nobodys", [])
    twice = Direct(lambda x: x * 2.0, tf.TensorSpec([1]))
    x = tf.ones([1])
    for other in ([tf.ones([1], tf.int32)], [x, x], []):
        with pytest.raises(ValueError, match="the function takes other arguments"):
            twice(*other)
    with pytest.raises(direct.RefusedError, match="fewer arguments"):
        made_of(twice.concrete.name, [x, x])
