"""Calls past a tf.function's search for its trace: the same results, gradients and traces."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import cancellation, context
from tensorflow.python.framework import op_callbacks

from composite.acceleration import direct
from composite.acceleration.direct import DirectCalls
from composite.ops import call as ops_call


class Counted:
    """A tf.function with a variable, and how often it was traced and called."""

    def __init__(self) -> None:
        self.weight = tf.Variable([2.0])
        self.traces = 0
        self.calls = 0
        self._function = tf.function(self._body)

    def _body(self, x: Any, more: Any = ()) -> Any:
        self.traces += 1
        return {"y": x * self.weight + sum(more, 0.0)}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self._function(*args, **kwargs)

    def get_concrete_function(self, *args: Any) -> Any:
        return self._function.get_concrete_function(*args)


@pytest.fixture
def counted() -> Counted:
    return Counted()


def test_a_trace_is_found_again(counted: Counted) -> None:
    call = DirectCalls(counted)
    for _ in range(3):
        np.testing.assert_allclose(call(tf.constant([1.0, 3.0]))["y"], [2.0, 6.0])
        np.testing.assert_allclose(call(tf.constant([1.0]), [tf.constant(5.0)])["y"], [7.0])
    assert (counted.traces, counted.calls) == (2, 2)
    counted.weight.assign([3.0])
    np.testing.assert_allclose(call(tf.constant([1.0, 3.0]))["y"], [3.0, 9.0])


def test_other_arguments_are_other_traces(counted: Counted) -> None:
    call = DirectCalls(counted)
    one = tf.constant(1.0)
    kinds = [
        (tf.ones([2]),),
        (tf.ones([3]),),
        (tf.ones([2]), [one]),
        (tf.ones([2]), [one, one]),
        (tf.ones([2]), (one,)),
    ]
    for turn in range(2):
        for args in kinds:
            expected = args[0] * 2.0 + float(len(args[1]) if len(args) > 1 else 0)
            np.testing.assert_allclose(call(*args)["y"], expected)
        assert (turn, counted.traces, counted.calls) == (turn, len(kinds), len(kinds))


def test_arrays_are_tensors(counted: Counted) -> None:
    call = DirectCalls(counted)
    array = np.array([1.0, 3.0, 5.0], np.float32)
    for given in (array, tf.constant(array), array[::-1]):
        np.testing.assert_allclose(call(given)["y"], np.asarray(given) * 2.0)
    assert (counted.traces, counted.calls) == (1, 1)
    same = DirectCalls(tf.function(lambda given: given["x"]))
    for dtype in ("bool", "int8", "uint64", "float16", "float64", "complex128"):
        for _ in range(2):
            found = same({"x": np.ones([2, 1], dtype)})
            assert found.dtype == dtype and found.shape == (2, 1)
    found = same({"x": array})
    array[:] = 0.0
    np.testing.assert_allclose(found, [1.0, 3.0, 5.0])


def test_values_of_a_dict_go_by_their_names() -> None:
    function = tf.function(lambda given: given["x"] - 2.0 * given["a"][0])
    call = DirectCalls(function)
    for x, a in ((1.0, 5.0), (3.0, 1.0)):
        for names in ("xa", "ax"):
            values = {"x": tf.constant(x), "a": (tf.constant(a),)}
            assert float(call({name: values[name] for name in names})) == x - 2.0 * a
    with pytest.raises(KeyError):
        call({"x": tf.constant(1.0), "b": (tf.constant(1.0),)})
    assert len(call._traces) == 1
    call({"x": tf.constant([1.0]), "a": (tf.constant(1.0),)})
    assert len(call._traces) == 2


def test_a_dict_of_other_keys_is_left_to_the_function(counted: Counted) -> None:
    call = DirectCalls(counted)
    for _ in range(2):
        call(tf.ones([1]), {1: tf.constant(0.0)})
    assert (counted.traces, counted.calls) == (1, 2)


def test_what_only_the_function_knows_is_left_to_it(counted: Counted) -> None:
    call = DirectCalls(counted)
    x = tf.ones([1])
    call(x)
    call(x)
    assert counted.calls == 1
    for other in ([1.0], counted.weight, np.ones(1, ">f4"), np.float32(1.0)):
        call(other)
    call(x=x)
    tf.function(lambda z: call(z)["y"], autograph=False)(x)
    with tf.device("CPU:0"):
        call(x)
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        call(x)
    tf.config.run_functions_eagerly(True)
    try:
        call(x)
    finally:
        tf.config.run_functions_eagerly(False)
    assert counted.calls == 1 + 9


def test_gradients(counted: Counted) -> None:
    call = DirectCalls(counted)
    x = tf.constant([5.0])
    for _ in range(2):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = call(x)["y"]
        assert tape.gradient(y, x) == 2.0
        assert tape.gradient(y, counted.weight) == 5.0
    assert counted.calls == 1


def test_forward_gradients(counted: Counted) -> None:
    call = DirectCalls(counted)
    x = tf.constant([5.0])
    for _ in range(2):
        with tf.autodiff.ForwardAccumulator(x, tf.constant([3.0])) as accumulator:
            y = call(x)["y"]
        np.testing.assert_allclose(accumulator.jvp(y), [6.0])
        np.testing.assert_allclose(call(x)["y"], [10.0])
    assert counted.calls == 1


def shapes_of_results(x: Any) -> Any:
    return {"b": [x, (x[0], tf.shape(x))], "a": None}


def nothing(x: Any) -> None:
    tf.debugging.assert_positive(x)


@pytest.mark.parametrize("body", [shapes_of_results, nothing])
def test_results_of_any_structure(body: Callable[[Any], Any]) -> None:
    function = tf.function(body)
    call = DirectCalls(function)
    x = tf.constant([1.0, 2.0])
    expected = function(x)
    for _ in range(2):
        found = call(x)
        tf.nest.assert_same_structure(found, expected)
        tf.nest.map_structure(np.testing.assert_array_equal, found, expected)


def test_captures_that_are_known_at_the_call_alone() -> None:
    value = tf.constant(2.0)

    def body(x: Any) -> Any:
        graph = tf.compat.v1.get_default_graph()
        return x * graph.capture_call_time_value(lambda: value, tf.TensorSpec([]))

    call = DirectCalls(tf.function(body, autograph=False))
    assert float(call(tf.constant(3.0))) == 6.0
    value = tf.constant(5.0)
    assert float(call(tf.constant(3.0))) == 15.0


def test_what_tensorflow_would_do_at_a_call_is_left_out(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = DirectCalls(counted)
    x = tf.constant([5.0])
    call(x)
    trace = counted.get_concrete_function(x)
    asked: list[str] = []
    usual = type(trace)._call_flat

    def call_flat(self: Any, *args: Any) -> Any:
        asked.append("usual")
        return usual(self, *args)

    monkeypatch.setattr(type(trace), "_call_flat", call_flat)
    call(x)
    assert asked == []
    with tf.GradientTape():
        call(x)
    assert asked == ["usual"]


def test_there_is_an_end_to_what_is_remembered(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "_MOST_TRACES", 1)
    call = DirectCalls(counted)
    for _ in range(2):
        for size in (1, 2):
            np.testing.assert_allclose(call(tf.ones([size]))["y"], np.full(size, 2.0))
    assert counted.calls == 1 + 2


def test_errors_are_the_functions() -> None:
    def positive(x: Any) -> Any:
        tf.debugging.assert_positive(x)
        return x

    call = DirectCalls(tf.function(positive))
    call(tf.constant([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)Detected at node .*x > 0"):
        call(tf.constant([-1.0]))


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that TensorFlow was asked to call; ops are none of them."""
    asked: list[str] = []
    usual = context.Context.call_function

    def call_function(self: Any, name: Any, *args: Any) -> Any:
        asked.append(name)
        return usual(self, name, *args)

    monkeypatch.setattr(context.Context, "call_function", call_function)
    return asked


def test_a_trace_is_called_as_an_op(counted: Counted, functions: list[str]) -> None:
    call = DirectCalls(counted)
    x = tf.constant([5.0])
    call(x)
    functions.clear()
    for value in (2.0, 3.0):
        counted.weight.assign([value])
        np.testing.assert_allclose(call(x)["y"], [5.0 * value])
    with ThreadPoolExecutor(2) as threads:
        for found in threads.map(lambda _: call(x), range(20)):
            np.testing.assert_allclose(found["y"], [15.0])
    assert functions == []


def test_when_tensorflow_calls_the_function(counted: Counted, functions: list[str]) -> None:
    call = DirectCalls(counted)
    x = tf.constant([5.0])
    call(x)
    functions.clear()
    with cancellation.CancellationManagerContext(cancellation.CancellationManager()):
        call(x)
    with op_callbacks_of(lambda *args, **kwargs: None):
        call(x)
    before = context.context().function_call_options
    context.context().function_call_options = context.FunctionCallOptions(
        executor_type="SINGLE_THREADED_EXECUTOR"
    )
    try:
        call(x)
    finally:
        context.context().function_call_options = before
    assert len(functions) == 3
    ops_call.forget_eager_kernels()  # an op may have another composition now
    call(x)
    assert len(functions) == 4


@contextlib.contextmanager
def op_callbacks_of(callback: Callable[..., Any]) -> Iterator[None]:
    op_callbacks.add_op_callback(callback)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(callback)


def test_what_changes_something_is_called_once(functions: list[str]) -> None:
    total = tf.Variable(0.0)
    call = DirectCalls(tf.function(lambda x: total.assign_add(x).read_value()))
    assert [float(call(tf.constant(2.0))) for _ in range(3)] == [2.0, 4.0, 6.0]
    assert len(functions) == 3


def test_what_xla_compiles_stays_compiled(functions: list[str]) -> None:
    call = DirectCalls(tf.function(lambda x: x * 2.0, jit_compile=True))
    assert [float(call(tf.constant(2.0))) for _ in range(3)] == [4.0] * 3
    assert len(functions) == 3


def test_with_deterministic_ops_nodes_are_those_of_the_first_call(
    counted: Counted, functions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops_call, "is_deterministic", lambda: True)
    call = DirectCalls(counted)
    for _ in range(2):
        call(tf.constant([5.0]))
    assert len(functions) == 2
