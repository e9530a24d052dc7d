"""What a variable is to hold is written over what it holds, where nobody else has that."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from benchmarks.warm import in_regions
from composite import Composite
from tests.sharing.sides import aligned

ROWS, UNITS = 16, 32


@contextmanager
def updates_in_place(count: int) -> Iterator[None]:
    """So many variables are written where they lie meanwhile."""
    before = composite.stats()["in_place_updates"]
    yield
    assert composite.stats()["in_place_updates"] - before == count


def normal(*shape: int, seed: int = 0) -> Any:
    return tf.random.stateless_normal(shape, [seed, 7])


def with_kernels(step: Callable[..., Any], *arguments: Any) -> Any:
    """The step as a function in regions, after their kernels came."""
    function = tf.function(step, autograph=False)
    in_regions(lambda: function(*arguments))
    for _ in range(3):
        composite.wait()
        function(*arguments)
    return function


class Momentum:
    """A step with momentum behind a product, and its variables."""

    def __init__(self) -> None:
        self.speed = tf.Variable(tf.zeros([UNITS, UNITS]))
        self.weights = tf.Variable(normal(UNITS, UNITS, seed=1))

    def __call__(self, x: Any, y: Any) -> None:
        gradient = tf.matmul(x, tf.tanh(tf.matmul(y, self.weights)), transpose_a=True)
        self.speed.assign_add(gradient * 0.5 - self.speed * 0.25)
        self.weights.assign_sub(self.speed * 0.01)

    def values(self) -> list[Any]:
        return [self.speed.numpy().copy(), self.weights.numpy().copy()]

    def as_it_is(self) -> Momentum:
        """Another one, with variables of its own."""
        other = Momentum()
        for one, value in zip([other.speed, other.weights], self.values(), strict=True):
            one.assign(value)
        return other


X, Y = normal(ROWS, UNITS, seed=2), normal(ROWS, UNITS, seed=3)


def assert_same(some: Momentum, other: Momentum) -> None:
    for one, wanted in zip(some.values(), other.values(), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)


def assert_step_is_right(step: Momentum, function: Any, *, in_place: int) -> None:
    """A step by the function gives what TensorFlow does, and writes `in_place` variables there."""
    plain = step.as_it_is()
    with updates_in_place(in_place):
        function(X, Y)
        plain(X, Y)
    assert_same(step, plain)


def test_steps_write_where_the_variables_lie() -> None:
    step = Momentum()
    function = with_kernels(step, X, Y)
    plain = step.as_it_is()
    with updates_in_place(10):
        for number in range(5):
            x = normal(ROWS, UNITS, seed=number)
            function(x, Y)
            plain(x, Y)
    assert_same(step, plain)


def test_what_somebody_has_stays_as_it_is() -> None:
    step = Momentum()
    function = with_kernels(step, X, Y)
    held, was = step.weights.read_value(), step.weights.numpy().copy()
    with updates_in_place(1):  # the other variable
        function(X, Y)
    np.testing.assert_array_equal(held, was)
    assert np.abs(step.weights.numpy() - was).max() > 0
    del held
    with updates_in_place(2):
        function(X, Y)


def test_an_array_of_numpys_is_somebody() -> None:
    step = Momentum()
    function = with_kernels(step, X, Y)
    array = step.weights.numpy()
    was = array.copy()
    function(X, Y)
    np.testing.assert_array_equal(array, was)


def test_a_read_in_front_is_given_back() -> None:
    """It is the one that the region takes what the variable held of."""
    step = Momentum()

    def body(x: Any, y: Any) -> Any:
        before = step.weights.read_value()
        step(x, y)
        return before

    function = with_kernels(body, X, Y)
    was = step.weights.numpy().copy()
    np.testing.assert_array_equal(function(X, Y), was)


def test_a_read_in_front_that_runs_late() -> None:
    """What the update waits for, the region that may write waits for."""
    variable = tf.Variable(tf.ones([UNITS, UNITS]))
    seen: list[float] = []

    def look(value: Any) -> Any:
        seen.append(float(value[0, 0]))
        return value[0, 0]

    def body(x: Any) -> Any:
        gradient = tf.matmul(x, x, transpose_a=True)
        first = tf.py_function(look, [variable.read_value()], tf.float32)
        with tf.control_dependencies([first]):
            second = variable.read_value()
        variable.assign_add(tf.tanh(gradient))
        return tf.py_function(look, [second], tf.float32)

    function = with_kernels(body, X)
    seen.clear()
    was = float(variable[0, 0])
    function(X)
    assert seen == [was, was]


def test_a_function_that_is_called() -> None:
    step = Momentum()
    inner = tf.function(step, autograph=False)
    function = with_kernels(lambda x, y: (inner(x, y), x + 1.0)[1], X, Y)
    assert_step_is_right(step, function, in_place=2)


def test_sparse_updates_of_the_same_variable() -> None:
    """A variable that they had hand out copies is none that a kernel may write."""
    step = Momentum()
    function = with_kernels(step, X, Y)
    step.weights.scatter_add(tf.IndexedSlices(tf.ones([1, UNITS]), tf.constant([1])))
    assert_step_is_right(step, function, in_place=1)


def test_an_index_that_is_out_of_range() -> None:
    """The ops, whose error it is, find the variables as they were."""
    step, table = Momentum(), normal(50, UNITS, seed=4)

    def body(x: Any, places: Any) -> None:
        step(x, tf.gather(table, places))

    places = tf.range(ROWS)
    function = with_kernels(body, X, places)
    with updates_in_place(2):
        function(X, places)
    was = step.values()
    with pytest.raises(tf.errors.InvalidArgumentError, match="50"):
        function(X, places + 45)
    for one, wanted in zip(step.values(), was, strict=True):
        np.testing.assert_array_equal(one, wanted)
    with updates_in_place(2):
        function(X, places)


def test_threads_that_train_and_read() -> None:
    """A reader sees a step's variable as a whole: here all of its elements are equal."""
    variable = tf.Variable(tf.zeros([UNITS, UNITS]))
    ones = tf.ones([ROWS, UNITS])

    def body(x: Any) -> None:
        variable.assign_add(tf.matmul(x, x, transpose_a=True) * 0.0625)

    function = with_kernels(body, ones)
    done, mixed = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            seen = variable.numpy()
            if seen.min() != seen.max():
                mixed.append(seen)

    def train() -> None:
        for _ in range(300):
            function(ones)

    was, before = float(variable[0, 0]), composite.stats()["in_place_updates"]
    readers = [threading.Thread(target=read) for _ in range(2)]
    trainers = [threading.Thread(target=train) for _ in range(2)]
    for thread in [*readers, *trainers]:
        thread.start()
    for thread in trainers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert not mixed
    assert composite.stats()["in_place_updates"] > before
    np.testing.assert_array_equal(variable, np.full([UNITS, UNITS], was + 600.0))


def test_variables_that_are_parts_of_one_tensor() -> None:
    """Others have the tensor, and its parts: online and target networks of one draw."""
    whole = normal(2, UNITS, UNITS, seed=5)
    was = whole.numpy().copy()
    step = Momentum()
    function = with_kernels(step, X, Y)
    targets = [tf.Variable(part) for part in tf.unstack(whole)]
    for one, part in zip([step.weights, step.speed], tf.unstack(whole), strict=True):
        one.assign(part)
    assert_step_is_right(step, function, in_place=0)
    np.testing.assert_array_equal(whole, was)
    np.testing.assert_array_equal(targets, was)
    # The variables have memory of their own now.
    assert_step_is_right(step, function, in_place=2)


def test_the_only_part_that_is_left_of_a_tensor() -> None:
    step = Momentum()
    function = with_kernels(step, X, Y)
    step.weights.assign(normal(2, UNITS, UNITS, seed=5)[1])
    assert_step_is_right(step, function, in_place=2)


def test_a_variable_that_shares_an_array() -> None:
    """It is the array's owner who may write there."""
    step = Momentum()
    function = with_kernels(step, X, Y)
    array = aligned((2, UNITS, UNITS))
    array[:] = normal(2, UNITS, UNITS, seed=5).numpy()
    was = array.copy()
    shared = tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    for value in (shared[0], tf.experimental.dlpack.from_dlpack(array[0].__dlpack__())):
        step.weights.assign(value)
        del value
        function(X, Y)
        np.testing.assert_array_equal(array, was)
    del shared
    step.weights.assign(tf.experimental.dlpack.from_dlpack(array.__dlpack__())[1])
    function(X, Y)
    np.testing.assert_array_equal(array, was)


def test_an_input_that_is_part_of_an_array_holds_no_result() -> None:
    """TensorFlow itself takes a part for memory of its own where nobody else has the whole."""

    @Composite("VariablesPart", inputs=["x: float", "y: float"], outputs=["z: float"])
    def scaled(x, y):
        return tf.tanh(x) * y

    array = aligned((2, UNITS, UNITS))
    array[:] = normal(2, UNITS, UNITS, seed=5).numpy()
    was = array.copy()

    @tf.function
    def body(y: Any) -> Any:
        whole = tf.ensure_shape(tf.numpy_function(lambda: array, [], tf.float32), array.shape)
        return scaled(whole[1], y)

    y = normal(UNITS, UNITS, seed=6)
    for _ in range(3):
        result = body(y)
        composite.wait()
        np.testing.assert_array_equal(array, was)
    np.testing.assert_allclose(result, np.tanh(was[1]) * y.numpy(), rtol=1e-5, atol=1e-5)
