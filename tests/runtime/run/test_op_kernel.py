"""The kernel of every composite op: which path a call takes, and that both are right.

Runs a second time at intra = inter = 1 thread: see test_process.py.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from tests.runtime import kernel_support as k
from tests.runtime.run.conftest import Counted


def close(actual: Any, inputs: dict[str, Any]) -> None:
    np.testing.assert_allclose(actual, k.dense_reference(**inputs), rtol=1e-5, atol=1e-5)


def test_expansion(dense: tuple[str, str], counted: Counted) -> None:
    op, _ = dense
    for m in (1, 4, 7):
        inputs = k.dense_inputs(m)
        np.testing.assert_array_equal(k.call(op, inputs), k.dense_reference(**inputs))
    assert (counted["expansion_runs"], counted["kernel_launches"]) == (3, 0)
    assert counted["instantiations"] == 1  # it reads no dim, so that one serves all


def test_wrong_shapes_name_the_place(dense: tuple[str, str]) -> None:
    op, _ = dense
    k.call(op, k.dense_inputs(4))
    inputs = k.dense_inputs(4)
    # The expansion of the call before serves this one too: nothing is evaluated again.
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\.py:\d+:\d+: Dim"):
        k.call(op, {**inputs, "x": inputs["x"][:, 1:]})


def test_kernel(fused: str, counted: Counted) -> None:
    for m in (1, 4, 300):
        inputs = k.dense_inputs(m)
        close(k.call(fused, inputs), inputs)
    assert (counted["expansion_runs"], counted["kernel_launches"]) == (0, 3)
    assert counted["copies"] == 0
    assert k.explain(fused, inputs)["path"] == "kernel"
    assert k.explain(fused, inputs)["kernel"] == f"k_{fused.lower()}"


def test_constant_folding_has_no_function_library(dense: tuple[str, str]) -> None:
    """Grappler runs the kernel of a node with constant inputs, without a function library."""
    inputs = {name: value.numpy() for name, value in k.dense_inputs(4).items()}

    @tf.function
    def run() -> Any:
        return k.call(dense[0], {name: tf.constant(value) for name, value in inputs.items()}) * 1.0

    np.testing.assert_allclose(run(), k.dense_reference(**inputs), rtol=1e-6)


@pytest.mark.parametrize("path", ["expansion", "kernel"])
def test_empty_tensors(dense: tuple[str, str], tmp_path: Path, path: str, counted: Counted) -> None:
    op, digest = dense
    if path == "kernel":
        k.install_dense(tmp_path, op, digest, _minimums=[1, 1, 1])
    for m, inner, n in [(0, 3, 4), (2, 3, 0), (0, 0, 0)]:
        result = k.call(op, k.dense_inputs(m, inner, n))
        assert result.shape == (m, n)
    # An output that is not empty has the values of the expansion.
    inputs = k.dense_inputs(2, 0, 4)
    np.testing.assert_array_equal(k.call(op, inputs), k.dense_reference(**inputs))
    assert counted["kernel_launches"] == (3 if path == "kernel" else 0)


def test_expansion_error_names_the_inner_node(dense: tuple[str, str]) -> None:
    inputs = k.dense_inputs(4) | {"b": tf.zeros([99])}
    with pytest.raises(tf.errors.InvalidArgumentError, match="BiasAdd"):
        k.call(dense[0], inputs)


def test_bounds_of_symbols(dense: tuple[str, str], tmp_path: Path, counted: Counted) -> None:
    op, digest = dense
    k.install_dense(tmp_path, op, digest, _minimums=[4, 1, 1], _divisors=[1, 8, 1])
    for m, inner, kernel in [(4, 8, True), (3, 8, False), (5, 16, True), (5, 12, False)]:
        inputs = k.dense_inputs(m, inner)
        before = counted["kernel_launches"]
        close(k.call(op, inputs), inputs)
        assert counted["kernel_launches"] - before == int(kernel)
        assert (k.explain(op, inputs)["path"] == "kernel") == kernel


def test_verdicts(dense: tuple[str, str], tmp_path: Path, counted: Counted) -> None:
    op, digest = dense
    inputs = k.dense_inputs(4)
    k.install_dense(tmp_path, op, digest, _verdict="unmeasured")
    k.call(op, inputs)
    assert counted["kernel_launches"] == 0
    with k.options("tvm"):
        close(k.call(op, inputs), inputs)
    assert counted["kernel_launches"] == 1
    # The worker's measurement arrives: a record without library.
    shapes = [(-1, -2), (-2, -3), (-3,)]
    slower: dict[str, Any] = {"_verdict": "expansion", "_kernel_us": 9.0, "_expansion_us": 3.0}
    name = f"k_{op.lower()}"
    k.request("composite_install", k.record(name, op, digest, shapes, ["s0,s2"], **slower))
    k.call(op, inputs)
    assert counted["kernel_launches"] == 1
    explanation = k.explain(op, inputs)
    assert explanation["path"] == "expansion"
    assert explanation["kernel_us"] == 9
    assert "9 us, against 3 us" in explanation["reason"]
    k.request("composite_install", k.record(name, op, digest, shapes, ["s0,s2"]))
    k.call(op, inputs)
    assert counted["kernel_launches"] == 2
    with pytest.raises(tf.errors.NotFoundError, match="names no library"):
        k.request("composite_install", k.record("k_new", op, digest, shapes, ["s0,s2"]))


def test_the_more_special_kernel_decides(
    dense: tuple[str, str], tmp_path: Path, counted: Counted
) -> None:
    op, digest = dense
    exact = [(1, 8), (8, 5), (5,)]
    path = k.build(tmp_path, "k_exact", k.DENSE_C)
    record = k.record("k_exact", op, digest, exact, ["1,5"], path, _verdict="expansion")
    k.request("composite_install", record)
    k.install_dense(tmp_path, op, digest)
    k.call(op, k.dense_inputs(1))
    assert counted["expansion_runs"] == 1
    k.call(op, k.dense_inputs(2))
    assert counted["kernel_launches"] == 1


def test_options(fused: str, counted: Counted) -> None:
    inputs = k.dense_inputs(4)
    for backend, numerics, launches in [
        ("tf", "", 0),
        ("auto", "strict", 0),
        ("tvm", "", 1),
        ("", "", 1),
    ]:
        before = counted["kernel_launches"]
        with k.options(backend, numerics):
            k.call(fused, inputs)
            path = k.explain(fused, inputs)["path"]
        assert counted["kernel_launches"] - before == launches
        assert path == ("kernel" if launches else "expansion")
    with k.options("tvm", "strict"):
        for run in (lambda: k.call(fused, inputs), lambda: k.explain(fused, inputs)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="does not promise; drop one"):
                run()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r'"fast" is unknown.*"tvm"'):
        k.request("composite_set_options", k.node("", "", backend="fast", thread=True))


def test_an_exact_kernel_may_be_strict(
    dense: tuple[str, str], tmp_path: Path, counted: Counted
) -> None:
    """Where it must run; by itself the expansion does, which grappler sees."""
    op, digest = dense
    k.install_dense(tmp_path, op, digest, _exact=True)
    inputs = k.dense_inputs(4)
    with k.options("tvm", "strict"):
        k.call(op, inputs)
        assert "bit for bit" in k.explain(op, inputs)["reason"]
    assert counted["kernel_launches"] == 1
    with k.options("auto", "strict"):
        k.call(op, inputs)
    assert counted["kernel_launches"] == 1


def test_a_refusal_says_how_exact_the_kernel_is(dense: tuple[str, str], tmp_path: Path) -> None:
    k.install_dense(tmp_path, *dense, _error=3.1e-7, _error_unit="|y| against float64")
    with (
        k.options("tvm", "strict"),
        pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"does not promise \(within 3\.1e-07 of \|y\| against",
        ),
    ):
        k.call(dense[0], k.dense_inputs(4))


def test_options_of_thread_and_process(fused: str, counted: Counted) -> None:
    inputs = k.dense_inputs(4)
    with k.options("tf", thread=True):
        other = threading.Thread(target=lambda: k.call(fused, inputs))
        other.start()
        other.join()
        assert counted["kernel_launches"] == 1  # not an option of the other thread
    with k.options("tf", thread=False):
        k.call(fused, inputs)
        assert counted["kernel_launches"] == 1
        with k.options("auto", thread=True):
            k.call(fused, inputs)
        assert counted["kernel_launches"] == 2


def test_options_of_a_node(dense: tuple[str, str], tmp_path: Path, counted: Counted) -> None:
    """A stamped node is a graph's: it has the options it was made with, not those of the thread."""
    op, digest = dense
    k.install_dense(tmp_path, op, digest)
    inputs = k.dense_inputs(4)

    def made(**stamps: str) -> Any:
        stamps["_composite_program"] = digest
        return tf.function(lambda x, w, b: k.call(op, {"x": x, "w": w, "b": b}, **stamps))

    plain, expanded = made(), made(_composite_backend="tf")
    with k.options("tf"):
        close(plain(**inputs), inputs)
    assert counted["kernel_launches"] == 1
    with k.options("tvm"):
        close(expanded(**inputs), inputs)
    assert counted["kernel_launches"] == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match='backend "fast"'):
        made(_composite_backend="fast")(**inputs)


def test_uncounted_node(fused: str, counted: Counted) -> None:
    """The worker's own measuring is not in the statistics."""

    @tf.function
    def run(x: Any, w: Any, b: Any) -> Any:
        y = k.call(fused, {"x": x, "w": w, "b": b}, _composite_uncounted=True)
        return y + k.call(
            fused, {"x": x, "w": w, "b": b}, _composite_uncounted=True, _composite_backend="tf"
        )

    run(**k.dense_inputs(4))
    assert (counted["kernel_launches"], counted["expansion_runs"]) == (0, 0)


def test_redefinition_reaches_cached_kernels(unique: Callable[[str], str]) -> None:
    op = unique("RtAgain")
    first = k.register(k.dense(op, "Relu"))
    inputs = k.dense_inputs(4)
    linear = tf.matmul(inputs["x"], inputs["w"]) + inputs["b"]
    np.testing.assert_array_equal(k.call(op, inputs), tf.nn.relu(linear))
    old = tf.function(
        lambda x, w, b: k.call(op, {"x": x, "w": w, "b": b}, _composite_program=first)
    )
    old(**inputs)
    k.register(k.dense(op, "Tanh"))
    np.testing.assert_array_equal(k.call(op, inputs), tf.tanh(linear))
    np.testing.assert_allclose(old(**inputs), tf.nn.relu(linear), rtol=1e-6)


def test_many_threads(fused: str, dense: tuple[str, str], unique: Callable[[str], str]) -> None:
    """Kernel and expansion of one op, eager and in graphs, all at once."""
    function = k.graph_function(fused)

    def work(seed: int) -> None:
        for i in range(20):
            inputs = k.dense_inputs(1 + (seed * 7 + i) % 40, seed=seed)
            with k.options(("auto", "tf", "tvm")[i % 3]):
                close(k.call(fused, inputs), inputs)
            if i % 5 == 0:
                close(function(**inputs), inputs)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, seed) for seed in range(16)]:
            done.result()


def threads() -> set[str]:
    return {path.name for path in Path("/proc/self/task").iterdir()}


@pytest.fixture
def steady_threads(fused: str) -> Iterator[None]:
    """TensorFlow has started whatever it starts by itself; afterwards there is no thread more."""
    tf.function(lambda x: tf.matmul(x, x) + 1.0)(tf.random.normal([64, 64]))
    list(tf.data.Dataset.range(8).map(lambda x: x + 1, num_parallel_calls=2))
    before = threads()
    yield
    assert threads() <= before


@pytest.mark.usefixtures("steady_threads")
def test_no_thread_is_started(fused: str) -> None:
    inputs = k.dense_inputs(300)
    for _ in range(10):
        k.call(fused, inputs)
        with k.options("tf"):
            k.call(fused, inputs)
    k.graph_function(fused)(**inputs)


def test_gpu_kernels_take_int32_from_host_memory(unique: Callable[[str], str]) -> None:
    """A GPU user meets no placement error; TF keeps int32 of GPU functions in host memory."""
    op = unique("RtGpu")
    attrs = ["T: {float, int32}", "U: type"]
    declaration = {"inputs": ["x: T", "axis: int32"], "attrs": attrs, "outputs": ["y: U"]}
    body = k.call_node("0", "Cast", ["x", "U"], ["x", "DstT"])
    k.register(k.program(op, declaration, [body], {"y": "0"}))
    registered = kernels.get_registered_kernels_for_op(op).kernel
    # Beside those of XLA, which are there once XLA was used.
    registered = [one for one in registered if not one.device_type.startswith("XLA_")]
    assert sorted(kernel.device_type for kernel in registered) == ["CPU"] + ["GPU"] * 4
    for kernel in registered:
        int32s = {
            constraint.name: 3 in constraint.allowed_values.list.type
            for constraint in kernel.constraint
        }
        expected = {"axis"} if kernel.device_type == "GPU" else set()
        expected |= {"x"} if int32s.get("T") else set()
        expected |= {"y"} if int32s.get("U") else set()
        assert set(kernel.host_memory_arg) == expected


def test_stateful_op_runs_every_time(unique: Callable[[str], str]) -> None:
    """And its kernel, which a session keeps, outlives the runtimes that it was called with."""
    op = unique("RtClock")
    body = [k.call_node("0", "Timestamp", [], [])]
    program = k.program(op, {"outputs": ["y: double"]}, body, {"y": "0"})
    program.function[0].signature.is_stateful = True
    k.register(program)
    function = tf.function(lambda: (k.call(op, {}), k.call(op, {})))
    first, second = function()
    assert first != second
    assert k.call(op, {}) != k.call(op, {})
    assert function()[0] > second
    for _ in range(3):
        with tf.Graph().as_default():
            y, z = k.call(op, {}), k.call(op, {}) + 1.0
            with tf.compat.v1.Session() as session:
                assert session.run(y) < session.run(y)
                session.run([y, z])
