"""Kernels that code of XLA calls on the CPU: when, with which numbers, and for how long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.measuring import xla
from composite.measuring.decisions import Times
from tests.composite import xla_kernel_ops as ops
from tests.composite.test_xla_processes import defined
from tests.composite.xla_counted import Counted
from tests.conftest import RunPython

RANDOM = np.random.default_rng(7)
X, W, B = (RANDOM.standard_normal(s).astype(np.float32) for s in ((48, 96), (96, 96), (96,)))
W /= 10
FASTER, SLOWER = Times(10.0, 20.0, 0.5, 0.4, 0.6), Times(20.0, 10.0, 2.0, 1.9, 2.1)


def jit(function: Callable[..., Any]) -> Any:
    return tf.function(function, jit_compile=True, autograph=False)


def dense(x: Any) -> Any:
    return ops.dense(x, W, B)


def by_hand(x: Any) -> Any:
    return ops.dense.python_function(x, tf.constant(W), tf.constant(B))


@pytest.fixture
def kernels() -> Iterator[None]:
    """Calls made here have kernels, whatever their times."""
    with composite.options(backend="tvm"):
        yield


@pytest.fixture(params=[FASTER, SLOWER], ids=["faster", "slower"])
def times(request: Any, monkeypatch: pytest.MonkeyPatch) -> Times:
    """The times that are measured."""
    monkeypatch.setattr(xla, "measured", lambda *_: request.param)
    return request.param


@pytest.mark.usefixtures("kernels")
def test_a_kernel_is_called() -> None:
    run = jit(lambda x: dense(x * 2) + 1)
    with Counted() as counted:
        found = [run(X) for _ in range(3)]
    assert (counted.nodes, counted.kernels, counted.launches) == (1, 1, 3)
    np.testing.assert_allclose(found[2], by_hand(X * 2) + 1, rtol=1e-5, atol=1e-5)


def test_the_measured_times_decide(times: Times) -> None:
    rows = 33 if times is FASTER else 34  # shapes that nothing has a verdict for
    x = X[:rows]
    with Counted() as counted:
        found = jit(dense)(x)
    assert counted.kernels == counted.launches == (times is FASTER)
    np.testing.assert_allclose(found, by_hand(x), rtol=1e-5, atol=1e-5)
    told = composite.explain(ops.dense, x, W, B).xla
    wins = "kernel: kernel XlaDense", "expansion: the kernel was not faster"
    assert told.startswith(wins[times is SLOWER])
    assert f"{times.kernel_us:.3g} us, against {times.expansion_us:.3g} us" in told


@pytest.mark.usefixtures("kernels")
def test_gradients() -> None:
    def slope(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(function(x) ** 2)
            return tape.gradient(y, x)

        return run

    x = tf.constant(X)
    expected = slope(by_hand)(x)
    for run in (jit(slope(dense)), slope(jit(dense)), jit(slope(jit(dense)))):
        with Counted() as counted:
            found = run(x)
        assert counted.launches > 0
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_forwards_of_training_are_merged_by_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a kernel would compute again what the gradient keeps."""
    monkeypatch.setattr(xla, "measured", lambda *_: FASTER)

    def step(layer: Callable[..., Any]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = layer(x, tf.constant(W))
            return y, tape.gradient(y, x)

        return run

    x = tf.constant(X[:41])
    with Counted() as counted:
        found = jit(step(ops.kept))(x)
    # The forward, what keeps values, and the backward.
    assert (counted.nodes, counted.kernels) == (3, 1)
    for one, other in zip(found, step(ops.kept.python_function)(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("kernels")
def test_in_loops_and_branches_and_nested_functions() -> None:
    inner = jit(dense)

    def run(x: Any) -> Any:
        x = tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, dense(x)), [0, x])[1]
        return tf.cond(tf.reduce_sum(x) > 1e9, lambda: x, lambda: inner(x))

    expected = tf.constant(X)
    for _ in range(4):
        expected = by_hand(expected)
    with Counted() as counted:
        found = jit(run)(X)
    assert (counted.kernels, counted.launches) == (2, 4)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    outer = tf.function(lambda x: inner(x) + 1, autograph=False)
    np.testing.assert_allclose(outer(X), by_hand(X) + 1, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("kernels")
def test_vectorized_map() -> None:
    """One call for all, where the op is mapped as one; the ops of its expansion elsewhere."""
    batch = tf.stack([X, -X, X + 1])
    for function in (dense, lambda x: ops.scaled(x) * 1.0):
        found = jit(lambda b, function=function: tf.vectorized_map(function, b))(batch)
        np.testing.assert_allclose(found, [function(x) for x in batch], rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("kernels")
def test_other_layouts_and_places_of_operands() -> None:
    """A kernel reads rows that lie one behind the other, at addresses that it can use."""

    def run(xs: Any) -> Any:
        across = tf.transpose(xs)[1:49]
        return dense(across), tf.transpose(dense(tf.reverse(across, [1])))

    xs = RANDOM.standard_normal((96, 51)).astype(np.float32)
    across = xs.T[1:49]
    one, other = jit(run)(xs)
    np.testing.assert_allclose(one, by_hand(across), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other, tf.transpose(by_hand(across[:, ::-1])), rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("kernels")
def test_several_outputs_of_several_dtypes() -> None:
    with Counted() as counted:
        mean, best, above = jit(ops.looked_at)(X)
    assert counted.launches == 1
    np.testing.assert_allclose(mean, X.mean(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(best, X.argmax(1))
    np.testing.assert_array_equal(above, X.mean(1, keepdims=True) < X)


@pytest.mark.usefixtures("kernels")
def test_a_size_that_is_an_input() -> None:
    """XLA knows its value, which the kernel was made for."""
    for columns in (2, 3):
        found = jit(ops.summed)(X, tf.constant(columns))
        np.testing.assert_allclose(found, X.reshape(-1, columns).sum(1), rtol=1e-5, atol=1e-5)


def test_keras() -> None:
    inputs = tf.keras.Input((96,))
    model = tf.keras.Model(inputs, tf.keras.layers.Lambda(dense)(inputs))
    layer = tf.keras.layers.Dense(1)
    model = tf.keras.Sequential([model, layer])
    model.compile("sgd", "mse", jit_compile=True)
    with composite.options(backend="tvm"), Counted() as counted:
        model.fit(X, X[:, :1], batch_size=16, epochs=1, verbose=0)
        found = model.predict(X[:16], batch_size=16, verbose=0)
    assert counted.launches >= 4
    np.testing.assert_allclose(found, layer(by_hand(X[:16])), rtol=1e-4, atol=1e-4)


def test_what_is_left_to_xla() -> None:
    """Elementwise ops and small calls: nobody is asked for a kernel."""
    before = composite.stats()["requests"]
    wide = np.ones((64, 64), np.float32)
    np.testing.assert_allclose(jit(ops.scaled)(wide), wide * 3)
    small = X[:4, :5]
    jit(lambda x: ops.dense(x, W[:5, :6], B[:6]))(small)
    assert composite.stats()["requests"] == before
    assert "elementwise" in composite.explain(ops.scaled, wide).xla
    assert "too small" in composite.explain(ops.dense, small, W[:5, :6], B[:6]).xla


@pytest.mark.usefixtures("kernels")
def test_random_numbers_are_those_of_xla() -> None:
    """They do not depend on whether a kernel is faster."""
    with Counted() as counted:
        found = jit(ops.dropped)(X, [1, 2])
    assert counted.kernels == 0
    with composite.options(xla="never"):
        np.testing.assert_array_equal(found, jit(ops.dropped)(X, [1, 2]))
    assert "random" in composite.explain(ops.dropped, X, [1, 2]).xla


def test_options() -> None:
    x = X[:40]
    choices: list[tuple[dict[str, Any], str]] = [
        ({"xla": "never"}, 'xla="never"'),
        ({"backend": "tf"}, 'backend="tf"'),
        ({"numerics": "strict"}, 'numerics="strict"'),
        ({"backend": "tvm", "xla": "never"}, 'xla="never"'),
    ]
    for options, why in choices:
        with composite.options(**options), Counted() as counted:
            jit(dense)(x)
            assert composite.explain(ops.dense, x, W, B).xla == f"expansion: {why}"
        assert (counted.nodes, counted.kernels) == (1, 0), options


@pytest.mark.parametrize("value", ["always", -1, "-2", "nan"])
def test_a_choice_that_there_is_not(value: Any) -> None:
    with pytest.raises(ValueError, match="seconds"), composite.options(xla=value):
        pass


def test_strict_kernels_are_exact_ones() -> None:
    with composite.options(backend="tvm", numerics="strict"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not promise"):
            jit(dense)(X)
        whole = (X * 10).astype(np.int32)
        with Counted() as counted:
            found = jit(ops.counted)(whole)
    assert counted.kernels == 1
    np.testing.assert_array_equal(found, whole.sum(1))


@pytest.mark.usefixtures("kernels")
def test_a_kernel_that_may_refuse_inputs_is_none_for_xla() -> None:
    """XLA gives an index out of range the nearest row; a kernel would ask for the expansion."""
    rows = tf.constant([0, 47, 99])
    with pytest.raises(tf.errors.FailedPreconditionError, match="leaves the call to the expansion"):
        jit(ops.chosen)(X, rows)
    with composite.options(backend="auto"), Counted() as counted:
        found = jit(ops.chosen)(X, rows)
    assert (counted.nodes, counted.kernels) == (1, 0)
    np.testing.assert_allclose(found[:2], X[[0, 47]].sum(1), rtol=1e-5, atol=1e-5)
    assert "index out of range" in composite.explain(ops.chosen, X, rows).xla


@pytest.mark.usefixtures("kernels")
def test_no_kernel_is_an_error_where_it_is_a_must() -> None:
    with pytest.raises(tf.errors.FailedPreconditionError, match='XlaNoKernel .*backend="tvm"'):
        jit(ops.without_kernel)(X)


@pytest.mark.usefixtures("kernels")
def test_a_new_body_and_the_one_before() -> None:
    one = defined("XlaKernelVersioned", "return tf.reduce_sum(x * 2.0, 1)")
    before = jit(lambda x: one(x) + 0.0)
    before(X)
    two = defined("XlaKernelVersioned", "return tf.reduce_sum(x * 3.0, 1)")
    for old in (before, jit(one)):
        np.testing.assert_allclose(old(X), 2 * X.sum(1), rtol=1e-4, atol=1e-4)
    with Counted() as counted:
        np.testing.assert_allclose(jit(two)(X), 3 * X.sum(1), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(before(X), 2 * X.sum(1), rtol=1e-4, atol=1e-4)
    assert counted.launches == 2


@pytest.mark.usefixtures("kernels")
def test_executables_that_threads_call() -> None:
    runs = [jit(lambda x, k=k: dense(dense(x * k))) for k in (1.0, 2.0)]
    expected = [by_hand(by_hand(tf.constant(X * k))) for k in (1.0, 2.0)]
    wrong: list[str] = []

    def call(number: int) -> None:
        for i in range(40):
            k = (number + i) % 2
            if not np.allclose(runs[k](X), expected[k], rtol=1e-4, atol=1e-4):
                wrong.append(f"thread {number}, call {i}")

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_compilations_leave_one_entry_a_kernel(count: int) -> None:
    jit(dense)(X)
    composite.wait()
    before = composite.stats()
    for i in range(count):
        jit(lambda x, i=i: dense(x) + float(i))(X)
    found = composite.stats() - before
    assert found["xla_kernel_nodes"] == count
    assert found["xla_kernels"] == found["requests"] == found["installed"] == 0


@pytest.mark.usefixtures("kernels")
def test_what_is_exported_calls_no_kernel() -> None:
    """What Python is given as text may run in another process, where no kernel is."""
    for stage in ("hlo", "stablehlo"):
        text = jit(dense).experimental_get_compiler_ir(X)(stage=stage)
        assert "custom" not in text, stage


_ENVIRONMENT = """
import numpy as np, tensorflow as tf, composite
from tests.composite import xla_kernel_ops as ops
from tests.composite.xla_counted import Counted
x, w, b = np.ones((48, 96), np.float32), np.ones((96, 96), np.float32), np.ones(96, np.float32)
run = tf.function(lambda x: ops.dense(x, w, b), jit_compile=True, autograph=False)
if {deterministic}:
    tf.config.experimental.enable_op_determinism()
run(x)
found = composite.stats()
assert (found["xla_nodes"], found["xla_kernel_nodes"], found["requests"]) == (1, 0, 0), found
assert {why!r} in composite.explain(ops.dense, x, w, b).xla
"""


@pytest.mark.parametrize(
    ("variables", "deterministic", "why"),
    [
        ({"COMPOSITE_XLA": "never"}, False, "never"),
        ({"COMPOSITE_JIT": "0"}, False, "no kernel covers this call"),
        ({}, True, "deterministic"),
    ],
)
def test_processes_without_kernels_in_xla(
    run_python: RunPython, variables: dict[str, str], deterministic: bool, why: str
) -> None:
    run_python(_ENVIRONMENT.format(deterministic=deterministic, why=why), env=variables)


def test_a_wrong_variable(run_python: RunPython) -> None:
    code = "from tests.composite import xla_ops"
    done = run_python(code, env={"COMPOSITE_XLA": "x"}, check=False)
    assert "COMPOSITE_XLA='x' in the environment is not 'never' or a number" in done.stderr


_CLUSTERED = """
import numpy as np, tensorflow as tf, composite
from tests.composite import xla_kernel_ops as ops
from tests.composite.xla_counted import Counted
tf.config.optimizer.set_jit("autoclustering")
x, w, b = np.ones((48, 96), np.float32), np.ones((96, 96), np.float32), np.ones(96, np.float32)
with composite.options(backend="tvm"):
    run = tf.function(lambda x: tf.tanh(ops.dense(x * 2, w, b)) * 3, autograph=False)
    y = run(x)
found = composite.stats()
assert found["xla_kernel_nodes"] == found["xla_kernel_launches"] == 1, found
expected = ops.dense.python_function(tf.constant(x * 2), tf.constant(w), tf.constant(b))
np.testing.assert_allclose(y, tf.tanh(expected) * 3, rtol=1e-5)
"""


def test_clusters_that_tensorflow_forms(run_python: RunPython) -> None:
    flags = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=2"
    run_python(_CLUSTERED, env={"TF_XLA_FLAGS": flags})
