"""`composite.accelerate(..., wait=False)`: the switch, its errors, and threads that come and go."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.acceleration import comparing
from composite.acceleration.later import Accelerating
from composite.ops import call
from tests.conftest import RunPython


class Measured:
    """Stands in for the clock: measuring takes as long as the test wants it to."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.times = [2e-3, 1e-3]
        self.error: Exception | None = None

    def __call__(self, functions: Any, inputs: Any, gain: float) -> list[float]:
        assert self.may_end.wait(60)
        if self.error is not None:
            raise self.error
        return self.times


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Measured]:
    made = Measured()
    monkeypatch.setattr(comparing, "times", made)
    yield made
    made.may_end.set()


def layers(x: Any) -> Any:
    return tf.nn.softmax(tf.nn.gelu(x * 2.0) + 1.0)


X = tf.constant(np.linspace(-1, 1, 32).reshape(4, 8), tf.float32)


def test_calls_run_the_original_until_it_is_ready(measured: Measured) -> None:
    told: list[tuple[str, str]] = []
    count = [0]

    def counted(x: Any) -> Any:
        count[0] += 1
        return layers(x)

    def listener(event: composite.ProgressEvent) -> None:
        told.append((threading.current_thread().name, event.step))

    fast = composite.accelerate(counted, X, timeout=0.0, wait=False, progress=listener)
    assert isinstance(fast, Accelerating)
    assert not fast.wait(0.01)
    assert (fast.is_ready, fast.report, fast.error) == (False, None, None)
    before = count[0]
    np.testing.assert_array_equal(fast(X), layers(X))
    assert count[0] >= before + 1  # the original itself, and maybe a trace
    measured.may_end.set()
    assert fast.wait()
    assert fast.is_ready
    assert fast.report is not None
    assert fast.report.verdict == "runs with regions, 2.00 times as fast"
    before = count[0]
    np.testing.assert_allclose(fast(X), layers(X), rtol=1e-5)
    assert count[0] == before
    assert {name for name, _ in told} == {"composite-accelerate"}
    assert {"trace", "compare"} <= {step for _, step in told}


def test_what_gains_nothing_stays_the_original(measured: Measured) -> None:
    measured.times = [1e-3, 1e-3]
    measured.may_end.set()
    fast = composite.accelerate(layers, X, timeout=0.0, wait=False)
    assert fast.wait(60)
    assert fast.report is not None
    assert "runs the original" in fast.report.verdict
    np.testing.assert_allclose(fast(X), layers(X), rtol=1e-6)


def test_an_error_is_told_and_logged(measured: Measured, caplog: pytest.LogCaptureFixture) -> None:
    measured.error = RuntimeError("the clock\nis broken")
    measured.may_end.set()
    fast = composite.accelerate(layers, X, timeout=0.0, wait=False)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the clock"):
            fast.wait()
    with pytest.raises(RuntimeError, match="the clock"):
        assert fast.report
    assert fast.error is measured.error
    assert not fast.is_ready
    assert "layers is not accelerated: RuntimeError: the clock is broken" in caplog.text
    np.testing.assert_array_equal(fast(X), layers(X))


def test_an_error_of_the_listener_is_told(measured: Measured) -> None:
    def listener(event: composite.ProgressEvent) -> None:
        raise ValueError(f"no {event.step}")

    measured.may_end.set()
    fast = composite.accelerate(layers, X, timeout=0.0, wait=False, progress=listener)
    with pytest.raises(ValueError, match="no trace"):
        fast.wait()


def test_what_is_asked_wrongly_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="wait=False is for a function: a folder is written"):
        composite.accelerate("model", out="fast", wait=False)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="takes a function or a model"):
        composite.accelerate(3, X, wait=False)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="Softmaxx is no op"):
        composite.accelerate(layers, X, deny=["Softmaxx"], wait=False)
    with pytest.raises(ValueError, match="batches=2"):
        composite.accelerate(layers, tf.constant(1.0), batches=[2], wait=False)
    monkeypatch.setattr(call, "is_deterministic", lambda: True)
    with pytest.raises(ValueError, match="deterministic"):
        composite.accelerate(layers, X, wait=False)


def test_calls_of_many_threads_are_right_during_the_switch(measured: Measured) -> None:
    wanted = layers(X).numpy()
    fast = composite.accelerate(layers, X, timeout=0.0, wait=False)
    is_over = threading.Event()
    wrong: list[Any] = []
    seen = [0, 0]

    def calls() -> None:
        while not is_over.is_set():
            seen[fast.is_ready] += 1
            found = fast(X).numpy()
            if not np.allclose(found, wanted, rtol=1e-5):
                wrong.append(found)

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    measured.may_end.set()
    assert fast.wait(60)
    time.sleep(0.3)
    is_over.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert min(seen) > 10


@pytest.mark.slow
def test_a_model_that_is_trained_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "times", lambda functions, inputs, gain: [2e-3, 1e-3])
    model = tf.keras.Sequential(
        [tf.keras.Input((8,)), tf.keras.layers.Dense(16, "gelu"), tf.keras.layers.Dense(8)]
    )
    model.compile("adam", "mse")
    model.train_on_batch(X, X)  # traced
    fast = composite.accelerate(model, X, wait=False)
    steps = 0
    while not fast.wait(0.0):
        model.train_on_batch(X, X)
        np.testing.assert_allclose(fast(X), model(X), rtol=1e-4, atol=1e-5)
        steps += 1
    assert steps > 5
    assert fast.report is not None
    assert fast.report.verdict == "runs with regions, 2.00 times as fast"
    for _ in range(50):
        model.train_on_batch(X, X)
        np.testing.assert_allclose(fast(X), model(X), rtol=1e-4, atol=1e-5)


def test_a_model_that_is_not_built_is_built_once(measured: Measured) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.ReLU()])
    fast = composite.accelerate(model, X, timeout=0.0, wait=False)
    assert len(model.weights) == 2
    np.testing.assert_array_equal(fast(X), model(X))
    measured.may_end.set()
    assert fast.wait(60)
    np.testing.assert_allclose(fast(X), model(X), rtol=1e-5)


def test_options_of_the_caller_hold_in_the_thread(measured: Measured) -> None:
    from composite.binding import settings

    chosen: list[dict[str, Any]] = []

    def observed(x: Any) -> Any:
        chosen.append(settings.of_thread())
        return layers(x)

    measured.may_end.set()
    with composite.options(numerics="strict"):
        mine = settings.of_thread()
        fast = composite.accelerate(observed, X, timeout=0.0, wait=False)
    assert fast.wait(60)
    assert {one["numerics"] for one in chosen} == {"strict"} == {mine["numerics"]}
    assert settings.of_thread()["numerics"] is None


_BEGIN = """
import os, sys, time
import tensorflow as tf
import composite

def layers(x):
    for _ in range(3):
        x = tf.nn.softmax(tf.nn.gelu(tf.matmul(x, x) * 2.0) + 1.0)
    return x

x = tf.ones([96, 96])
steps = []
fast = composite.accelerate(layers, x, wait=False, progress=lambda event: steps.append(event.step))
"""


@pytest.mark.parametrize("until", ["trace", "compile", "measure"])
def test_a_process_may_end_meanwhile(until: str, run_python: RunPython) -> None:
    done = run_python(
        _BEGIN
        + f"""
while {until!r} not in steps:
    time.sleep(0.001)
assert fast.error is None and not fast.is_ready
y = fast(x)
print(time.time())
""",
        bare=True,
    )
    assert time.time() - float(done.stdout.split()[-1]) < 20
    assert "Traceback" not in done.stderr


def test_a_forked_child_goes_on_with_the_original(run_python: RunPython) -> None:
    done = run_python(
        _BEGIN
        + """
if (child := os.fork()) == 0:
    try:
        fast.wait()
    except RuntimeError as error:
        assert "when this process was forked" in str(error), error
        os._exit(0 if not fast.is_ready else 2)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
assert fast.wait(120)
print("done")
"""
    )
    assert done.stdout.split() == ["done"]
