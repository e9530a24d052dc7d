"""Eager calls past TensorFlow's eager runtime: when they are made, and that nobody can tell."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import op_callbacks

import composite
from composite import Composite
from composite.ops import call, direct


@Composite(
    "DirectScaled",
    inputs=["x: T", "y: T"],
    attrs=["by: float = 2.0", "twice: bool = False"],
    derived_attrs=["T: {float, double, int32}"],
    outputs=["sum: T", "scaled: T"],
)
def scaled(x, y, by, twice):
    if twice:
        by = by + by
    return x + y, x * tf.cast(by, x.dtype)


class Watched:
    """An op of its own class, and how each of its calls went."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self._scope = type(op).__call__.__globals__
        self._learner = self._scope["_learn"].__self__
        self.ways: list[str] = []

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        found = self._learner._calls.call
        outcomes: list[str] = []

        def watched(*given: Any) -> Any:
            outcome = found(*given)
            known = {NotImplemented: "unknown", None: "TensorFlow's"}
            is_result = outcome is not None and outcome is not NotImplemented
            outcomes.append("direct" if is_result else known[outcome])
            return outcome

        self._scope["_direct"] = watched
        try:
            return self.op(*args, **attrs)
        finally:
            self._scope["_direct"] = found
            self.ways += outcomes or ["no call"]

    def way(self, *args: Any, **attrs: Any) -> str:
        """How a call went, as direct or not."""
        self(*args, **attrs)
        return self.ways[-1]


@pytest.fixture
def watched() -> Watched:
    """`scaled`, of which nothing has been prepared."""
    scaled(tf.constant(1.0), tf.constant(1.0))  # its class has its own __call__ now
    scope = type(scaled).__call__.__globals__
    learner = direct.DirectOp(scaled.op_def, ["x", "y"], ["by", "twice"])
    scope.update(_direct=learner.call, _learn=learner.learn)
    return Watched(scaled)


@pytest.fixture
def prepared(watched: Watched) -> Watched:
    """`scaled`, prepared for float32 and default attributes."""
    x = tf.constant([1.0, 2.0])
    while watched.way(x, x) != "direct":
        assert len(watched.ways) < 10
    return watched


def test_from_the_fifth_call_on(watched: Watched) -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant([5.0])
    for _ in range(6):
        total, product = watched(x, y)
        np.testing.assert_array_equal(total, [6.0, 7.0])
        np.testing.assert_array_equal(product, [2.0, 4.0])
    assert watched.ways == ["unknown"] * 4 + ["direct"] * 2


def test_results_are_tensors_as_all_others(prepared: Watched) -> None:
    x = tf.constant([[1.0, 2.0]])
    total, product = prepared(x, x)
    expected = tf.raw_ops.AddV2(x=x, y=x)
    assert prepared.ways[-1] == "direct"
    assert type(total) is type(expected)
    assert (total.device, total.backing_device) == (expected.device, expected.backing_device)
    assert (total.dtype, total.shape) == (tf.float32, [1, 2])
    np.testing.assert_array_equal(tf.concat([total, product], 0), [[2.0, 4.0], [2.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(total)
        squared = total * total
    np.testing.assert_array_equal(tape.gradient(squared, total), [[4.0, 8.0]])
    total.numpy()[:] = 0.0  # a copy, or a view of this tensor alone
    np.testing.assert_array_equal(x, [[1.0, 2.0]])


def test_inputs_stay_as_they_are(prepared: Watched) -> None:
    given = np.arange(100.0, dtype=np.float32)
    x = tf.constant(given)
    for _ in range(3):
        prepared(x, x)
        prepared(tf.identity(x), tf.zeros([100]))  # whose memory an output could take
    np.testing.assert_array_equal(x, given)


def test_denormals_are_zeros_as_in_all_ops(prepared: Watched) -> None:
    tiny = np.float32(1e-40)
    x = tf.constant([tiny, 1.0])
    total, _ = prepared(x, tf.zeros([2]))
    assert prepared.ways[-1] == "direct"
    np.testing.assert_array_equal(total, tf.raw_ops.AddV2(x=x, y=tf.zeros([2])))
    assert total.numpy()[0] == 0.0
    assert tiny + np.float32(0.0) != 0.0  # and the thread's own numbers are as they were


def test_each_set_of_dtypes_and_attributes_is_its_own(watched: Watched) -> None:
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("float32", {}),
        ("float64", {}),
        ("int32", {}),
        ("float32", {"by": 3.0}),
        ("float32", {"by": 3.0, "twice": True}),
        ("float32", {"by": 0.0}),
        ("float32", {"by": -0.0}),
        ("float32", {"by": float("nan")}),
        ("float32", {"by": 2}),
        ("float64", {"twice": True}),
    ]
    for turn in range(6):
        for dtype, attrs in kinds:
            x = tf.constant([4, 2], dtype)
            total, product = watched(x, x, **attrs)
            np.testing.assert_array_equal(total, [8, 4])
            by = attrs.get("by", 2.0) * (2 if attrs.get("twice") else 1)
            expected = (np.array([4, 2]) * by).astype(dtype)
            np.testing.assert_array_equal(product, expected)
            np.testing.assert_array_equal(np.signbit(product), np.signbit(expected))
        assert {*watched.ways[-len(kinds) :]} == ({"unknown"} if turn < 4 else {"direct"})


def test_what_has_to_be_converted_is_tensorflows(prepared: Watched) -> None:
    x = tf.constant([1.0, 2.0])
    for other in ([1.0, 2.0], np.ones(2, np.float32), tf.Variable(x), 1.0):
        np.testing.assert_array_equal(prepared(x, other)[0], x + other)
        assert prepared.ways[-1] == "TensorFlow's"
    with pytest.raises(tf.errors.InvalidArgumentError):
        prepared(x, tf.constant([1.0, 2.0], tf.float64))
    with pytest.raises(TypeError):
        prepared(x)


def test_errors_are_tensorflows(prepared: Watched) -> None:
    def error() -> str:
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            prepared(tf.ones([2]), tf.ones([3]), name="here")
        return str(raised.value)

    before = error()
    assert prepared.ways[-1] == "TensorFlow's"
    type(scaled).__call__.__globals__["_direct"] = lambda *_: None
    assert before == error()
    assert "DirectScaled" in before and "here" in before


def test_tapes_and_accumulators(prepared: Watched) -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 5.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        total, product = prepared(x, y)
        both = total * product
    assert prepared.ways[-1] in ("direct", "no call")  # a forward may have been learned that saves
    np.testing.assert_allclose(tape.gradient(both, x), 2 * (2 * x + y))
    assert tape.gradient(both, y) is None
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            total, product = prepared(x, y)
            both = total * product
        slope = inner.gradient(both, x)
    np.testing.assert_allclose(outer.gradient(slope, x), [4.0, 4.0])
    with tf.autodiff.ForwardAccumulator(x, tf.ones([2])) as forward:
        product = prepared(x, y)[1]
    np.testing.assert_allclose(forward.jvp(product), [2.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            product = prepared(x, y)[1]
    assert tape.gradient(product, x) is None


@contextlib.contextmanager
def callback() -> Iterator[None]:
    def see(*args: Any, **kwargs: Any) -> None:
        return None

    op_callbacks.add_op_callback(see)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(see)


@contextlib.contextmanager
def logged() -> Iterator[None]:
    tf.debugging.set_log_device_placement(True)
    try:
        yield
    finally:
        tf.debugging.set_log_device_placement(False)


@pytest.mark.parametrize(
    "where",
    [
        lambda: tf.device("CPU:0"),
        lambda: context.execution_mode(context.ASYNC),
        callback,
        logged,
    ],
    ids=["on a device", "later", "with a callback", "logged"],
)
def test_where_more_is_asked_than_to_run(
    prepared: Watched, where: Callable[[], contextlib.AbstractContextManager[Any]]
) -> None:
    x = tf.constant([1.0, 2.0])
    with where():
        np.testing.assert_array_equal(prepared(x, x)[0], [2.0, 4.0])
        assert prepared.ways[-1] == "TensorFlow's"
    assert prepared.way(x, x) == "direct"


def test_nobody_waits_for_python_with_the_gil(prepared: Watched) -> None:
    def slow(x: Any) -> Any:
        time.sleep(0.1)
        return x + 1.0

    x = tf.constant([1.0, 2.0])
    with context.execution_mode(context.ASYNC):
        later = tf.py_function(slow, [x], tf.float32)
        total, _ = prepared(later, later)
        np.testing.assert_array_equal(total, [4.0, 6.0])


def test_in_graphs_there_are_nodes(prepared: Watched) -> None:
    x = tf.constant([1.0, 2.0])
    traced = tf.function(lambda: prepared(x, x)[1], autograph=False)
    np.testing.assert_array_equal(traced(), [2.0, 4.0])
    graph = traced.get_concrete_function().graph.as_graph_def()
    assert "DirectScaled" in {node.op for node in graph.node}
    assert "direct" not in prepared.ways[-1:]


def test_options_of_the_thread_hold(prepared: Watched) -> None:
    x = tf.constant([1.0, 2.0])
    for backend, ran in (("tvm", "kernel_launches"), ("tf", "expansion_runs")):
        with composite.options(backend=backend):
            before = composite.stats()[ran]
            np.testing.assert_array_equal(prepared(x, x)[0], [2.0, 4.0])
            assert composite.stats()[ran] == before + 1


def test_threads(prepared: Watched) -> None:
    def run(i: int) -> Any:
        x = tf.fill([1000], float(i))
        return scaled(x, x)[0]

    with ThreadPoolExecutor(4) as threads:
        for i, total in enumerate(threads.map(run, range(200))):
            np.testing.assert_array_equal(total, np.full(1000, 2.0 * i))


def test_there_is_an_end_to_what_is_prepared(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "_MOST", 2)
    x = tf.constant([1.0, 2.0])
    for by in (1.0, 2.0, 3.0, 4.0):
        for _ in range(6):
            np.testing.assert_array_equal(watched(x, x, by=by)[1], by * x)
    assert watched.ways[-1] == "TensorFlow's"
    assert watched.way(x, x, by=1.0) == "direct"


def test_none_on_other_devices(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise direct.RefusedError("there are other devices than one CPU")

    monkeypatch.setattr(direct, "of_op", refuse)
    x = tf.constant([1.0, 2.0])
    assert [watched.way(x, x) for _ in range(6)] == ["unknown"] * 4 + ["TensorFlow's"] * 2


def test_which_ops_are_served() -> None:
    serves = direct.DirectOp.serves
    assert serves(call.op_def("MatMul")) and serves(call.op_def("Unique"))
    for other in ("AddN", "Split", "ReadVariableOp", "RandomUniform", "NoOp"):
        assert not serves(call.op_def(other)), other


def test_why_an_op_is_refused() -> None:
    with pytest.raises(direct.RefusedError, match="NoSuchOp"):
        direct.of_op("NoSuchOp", {}, 1)


def test_a_new_version_is_what_is_called() -> None:
    def version(by: float) -> Any:
        @Composite("DirectVersion", inputs=["x: float"], outputs=["y: float"])
        def op(x):
            return x * by

        return op

    x = tf.constant([3.0])
    old = version(2.0)
    for _ in range(8):
        assert old(x).numpy() == [6.0]
    new = version(5.0)
    for _ in range(8):
        assert new(x).numpy() == [15.0]
        assert old(x).numpy() == [6.0]
