"""Regions in functions that XLA compiles: where, with which numbers, and for how long."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import composite
from composite.measuring import xla
from composite.measuring.decisions import Times
from tests.composite.xla_counted import Counted
from tests.conftest import RunPython

RANDOM = np.random.default_rng(11)
X = RANDOM.standard_normal((48, 96)).astype(np.float32)
W, V = ((RANDOM.standard_normal(s) / 10).astype(np.float32) for s in ((96, 96), (96, 64)))


def jit(function: Callable[..., Any]) -> Any:
    return tf.function(function, jit_compile=True, autograph=False)


def layers(x: Any, w: Any = W, v: Any = V) -> Any:
    """Two products with epilogues, a norm, and a softmax."""
    x = tf.nn.gelu(tf.matmul(x, w) + 0.5)
    x = (x - tf.reduce_mean(x, -1, keepdims=True)) * 3.0
    return tf.nn.softmax(tf.matmul(x, v))


@pytest.fixture(autouse=True)
def _faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kernel is faster than XLA's code."""
    monkeypatch.setattr(xla, "measured", lambda *_: Times(10.0, 20.0, 0.5, 0.4, 0.6))


@pytest.fixture
def regions() -> Iterator[None]:
    """Functions that are traced get regions."""
    with composite.options(regions=True):
        yield


def assert_close(found: Any, expected: Any) -> None:
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


@pytest.mark.usefixtures("regions")
def test_a_region_calls_its_kernel() -> None:
    run = jit(layers)
    with Counted() as counted:
        found = [run(X) for _ in range(3)]
    assert (counted.regions, counted.kernels, counted.launches) == (1, 1, 3)
    assert_close(found[2], layers(X))


@pytest.mark.usefixtures("regions")
def test_other_functions_stay_as_they_are() -> None:
    concrete = tf.function(layers, autograph=False).get_concrete_function(tf.constant(X))
    assert "_with_regions" not in concrete.inference_fn.name.decode()
    assert "_XlaMustCompile" not in concrete.inference_fn.cached_definition.attr


def test_only_where_regions_are_asked_for() -> None:
    for options in ({}, {"regions": False}, {"regions": True, "xla": "never"}):
        with composite.options(**options), Counted() as counted:
            jit(layers)(X)
        assert (counted.regions, counted.kernels) == (0, 0), options


@pytest.mark.usefixtures("regions")
def test_what_is_faster_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """A region is no gradient, which has terms in common with its forward."""
    for rows, ratio in ((31, 0.8), (30, 1.1)):
        times = Times(20.0 * ratio, 20.0, ratio, ratio - 0.02, ratio + 0.02)
        monkeypatch.setattr(xla, "measured", lambda *_, times=times: times)
        with Counted() as counted:
            jit(layers)(X[:rows])
        assert (counted.regions, counted.kernels) == (1, ratio < 1)


@pytest.mark.usefixtures("regions")
def test_elementwise_ops_are_left_to_xla() -> None:
    with Counted() as counted:
        found = jit(lambda x: tf.tanh(x * 2.0) + tf.exp(x))(X)
    assert counted.regions == 0
    assert_close(found, np.tanh(X * 2) + np.exp(X))


@pytest.mark.usefixtures("regions")
def test_ops_that_keep_kernels_from_xla_stay_outside() -> None:
    """Indices that may be out of range, divisors that may be zero, random numbers."""
    rows = tf.constant(RANDOM.integers(0, 48, 40))

    def run(x: Any) -> Any:
        noise = tf.random.stateless_uniform([40, 64], [1, 2])
        picked = tf.gather(layers(tf.gather(x, rows // 1)) * tf.round(noise + 0.5), rows[:4] // 4)
        return layers(picked, V.T[:64, :64], W[:64])

    with Counted() as counted:
        found = jit(run)(X)
    assert (counted.regions, counted.kernels) == (2, 2)
    with composite.options(regions=False):
        assert_close(found, jit(run)(X))


@pytest.mark.usefixtures("regions")
def test_inner_functions_branches_and_loops() -> None:
    inner, inner_jit = tf.function(layers, autograph=False), jit(layers)

    def run(x: Any) -> Any:
        y = inner(x) + inner_jit(x * 2.0)
        x = tf.while_loop(
            lambda i, _: i < 3, lambda i, x: (i + 1, tf.nn.softmax(tf.matmul(x, W))), [0, x]
        )[1]
        return tf.cond(tf.reduce_sum(x) > 1e9, lambda: y, lambda: y - layers(x))

    def plain(x: Any) -> Any:
        y = layers(x) + layers(x * 2.0)
        for _ in range(3):
            x = tf.nn.softmax(tf.matmul(x, W))
        return y - layers(x)

    with Counted() as counted:
        found = jit(run)(X)
    assert counted.regions >= 3
    assert counted.launches >= 3
    assert_close(found, plain(X))
    assert_close(inner_jit(X), layers(X))


@pytest.mark.usefixtures("regions")
def test_a_function_that_another_one_calls() -> None:
    """The graph pass forms the regions, in the function that XLA compiles."""
    inner = jit(layers)
    outer = tf.function(lambda x: inner(x) + 1.0, autograph=False)
    with Counted() as counted:
        found = [outer(X) for _ in range(2)]
    assert (counted.kernels, counted.launches) == (1, 2)
    assert_close(found[1], layers(X) + 1)


@pytest.mark.usefixtures("regions")
def test_a_shape_that_is_an_argument() -> None:
    """XLA compiles the function for each of its values, and has to find the ops that read it."""
    run = jit(lambda x, shape: tf.reshape(layers(x), shape * 2) + 1.0)
    for shape in ([24, 32], [32, 24], [48, 16]):
        found = run(X, tf.constant(shape))
        assert_close(found, np.reshape(layers(X), [2 * n for n in shape]) + 1)


@pytest.mark.usefixtures("regions")
def test_variables_are_read_and_written() -> None:
    w, steps = tf.Variable(W), tf.Variable(0.0)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layers(x, w)[:, 0])
        slope = tape.gradient(loss, w)
        w.assign_sub(slope * 0.1)
        steps.assign_add(1.0)
        return loss, tf.reduce_sum(layers(x, w)[:, 0])

    expected = [step(X) for _ in range(3)]
    held = w.numpy()
    w.assign(W)
    run = jit(step)
    with Counted() as counted:
        found = [run(X) for _ in range(3)]
    assert counted.launches >= 3
    assert_close(found, expected)
    assert_close(w, held)
    assert float(steps) == 6


@pytest.mark.usefixtures("regions")
def test_gradients_of_a_function() -> None:
    """They are those of the function as it was traced."""
    run = jit(layers)
    x = tf.constant(X)
    slopes = []
    for function in (layers, run):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(function(x)[:, :3] ** 2)
        slopes.append(tape.gradient(y, x))
    assert_close(slopes[1], slopes[0])
    assert_close(run(x), layers(X))


@pytest.mark.usefixtures("regions")
def test_what_is_saved_has_no_regions(tmp_path: Path, run_python: RunPython) -> None:
    module = tf.Module()
    module.run = tf.function(
        layers, jit_compile=True, input_signature=[tf.TensorSpec([None, 96])], autograph=False
    )
    with Counted() as counted:
        module.run(X)
    assert counted.kernels == 1
    tf.saved_model.save(module, tmp_path / "model")
    np.save(tmp_path / "x.npy", X)
    run_python(
        "import sys, numpy as np, tensorflow as tf\n"
        "model = tf.saved_model.load(sys.argv[1] + '/model')\n"
        "np.save(sys.argv[1] + '/y.npy', model.run(np.load(sys.argv[1] + '/x.npy')))\n"
        "assert 'composite' not in sys.modules\n",
        str(tmp_path),
    )
    assert_close(np.load(tmp_path / "y.npy"), layers(X))


@pytest.mark.usefixtures("regions")
def test_copies_go_with_their_functions() -> None:
    def names() -> set[str]:
        return {n for n in context.context().list_function_names() if "_with_regions" in n}

    gc.collect()
    before = names()

    def called() -> None:
        inner = tf.function(layers, autograph=False)
        run = jit(lambda x: inner(x) * 2.0)
        run(X)
        assert len(names() - before) == 2

    called()
    gc.collect()
    assert names() <= before


@pytest.mark.usefixtures("regions")
def test_keras_training_and_inference() -> None:
    def trained() -> tuple[Any, Any]:
        tf.keras.utils.set_random_seed(3)
        model = tf.keras.Sequential(
            [
                tf.keras.Input((96,)),
                tf.keras.layers.Dense(64, "gelu"),
                tf.keras.layers.LayerNormalization(),
                tf.keras.layers.Dense(32, "softmax"),
            ]
        )
        model.compile("adam", "mse", jit_compile=True)
        model.fit(X, np.ones((48, 32), np.float32) / 32, batch_size=24, epochs=2, verbose=0)
        return model.predict(X, batch_size=48, verbose=0), model.get_weights()

    with Counted() as counted:
        found = trained()
    assert counted.launches >= 5
    with composite.options(regions=False), Counted() as counted:
        expected = trained()
    assert counted.launches == 0
    assert_close(found, expected)


@pytest.mark.usefixtures("regions")
def test_recurrent_loops() -> None:
    inputs = tf.keras.Input((7, 32))
    model = tf.keras.Model(inputs, tf.keras.layers.LSTM(64)(inputs))
    x = RANDOM.standard_normal((16, 7, 32)).astype(np.float32)
    run = jit(lambda x: model(x, training=False))
    with Counted() as counted:
        found = run(x)
    assert counted.launches >= 1
    assert_close(found, model(x, training=False))


@pytest.mark.usefixtures("regions")
def test_threads_that_trace_and_call() -> None:
    wrong: list[str] = []

    def call(number: int) -> None:
        run = jit(lambda x: layers(x) * float(number))
        with composite.options(regions=True):
            for _ in range(5):
                if not np.allclose(run(X), layers(X) * number, rtol=1e-3, atol=1e-4):
                    wrong.append(f"thread {number}")

    threads = [threading.Thread(target=call, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


_PROCESS = """
import numpy as np, tensorflow as tf, composite
x = np.ones((48, 96), np.float32)
run = tf.function(lambda x: tf.nn.softmax(tf.matmul(x, x, transpose_b=True)), jit_compile=True)
run(x)
assert composite.stats()["regions"] == 1, composite.stats()
"""


def test_a_process_that_asks_for_regions(run_python: RunPython) -> None:
    run_python(_PROCESS, env={"COMPOSITE_REGIONS": "1"})


def test_trips_of_loops_have_no_regions() -> None:
    """XLA moves what it makes of weights out of the loop. This loop is no region as a whole."""

    def doubled(x: Any) -> Any:
        return tf.while_loop(
            lambda i, x: tf.logical_and(i < 5, tf.reduce_sum(x) < 1e6),
            lambda i, x: (i + 1, tf.nn.softmax(tf.matmul(x, W)) * 2.0),
            [0, layers(x, W, W)],
        )[1]

    with composite.options(regions=True, backend="tvm"), Counted() as counted:
        found = jit(doubled)(X)
    assert (counted.regions, counted.kernels) == (1, 1)  # in front of the loop
    assert_close(found, doubled(tf.constant(X)))
