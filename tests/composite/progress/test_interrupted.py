"""Ctrl-C in each call that takes long: at each of its steps, and at any time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RunPython

_BEGIN = """
import os, signal, sys, threading, time, traceback
import numpy as np
import tensorflow as tf
import composite
from composite.binding import settings
from composite.ops.registry import OPS
from tests.composite.dense_ops import dense

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
random = np.random.default_rng(0)
def inputs(rows):
    shapes = (rows, 40), (56, 40), (56,)
    return [tf.constant(random.standard_normal(one), tf.float32) for one in shapes]

keras = tf.keras.Sequential([
    tf.keras.Input((24,)), tf.keras.layers.Dense(32, "gelu"), tf.keras.layers.LayerNormalization()
])
"""

_CALLS = {
    "accelerate": """
def call(rows, progress):
    x = tf.constant(random.standard_normal((rows, 24)), tf.float32)
    fast = composite.accelerate(keras, x, progress=progress)
    np.testing.assert_allclose(fast(x), keras(x), rtol=1e-3, atol=1e-4)
    assert fast.report.is_complete
    return x
""",
    "wait": """
def call(rows, progress):
    given = inputs(rows)
    dense(*given, act="RELU")
    assert composite.wait(60, progress=progress)
""",
    "tune": """
def call(rows, progress):
    file = f"tuned{rows}.json"
    found = composite.tune(
        dense, *inputs(rows), act="RELU", trials=2, database=file, progress=progress
    )
    assert len(found.trials) == 2
""",
    "build": """
def call(rows, progress):
    stated = {"dense": [{"input_": ("float32", (rows, 40)), "filter_": ("float32", (56, 40)),
                         "bias": ("float32", (56,)), "act": "RELU"}]}
    out = composite.build([dense], "out", name="lib", signatures=stated, progress=progress)
    assert (out / "manifest.json").is_file()
    assert not [one for one in os.listdir() if one.startswith(".out")]
""",
    "check": """
def call(rows, progress):
    ways = ["eager", "kernel", "kernel, unaligned"]
    assert composite.check(
        dense, *inputs(rows), act="RELU", ways=ways, samples=2, progress=progress
    ).ok
""",
}

_INTERRUPTED = """
events = []

def interrupting(event):
    is_new = all(one.step != event.step for one in events)
    events.append(event)
    if is_new:
        os.kill(os.getpid(), signal.SIGINT)

def completed(rows, progress, before=lambda: None):
    interruptions = 0
    while True:
        before()
        try:
            call(rows, progress)
            return interruptions
        except KeyboardInterrupt:
            interruptions += 1
        except SystemError as error:  # what a list of TensorFlow 2.21's makes of an interrupt
            *_, (frame, _) = traceback.walk_tb(error.__traceback__)
            if os.sep + "tensorflow" + os.sep not in frame.f_code.co_filename:
                raise
            interruptions += 1

def usable(rows):
    assert not settings.chosen() and not settings.ENTERED
    given = inputs(rows)
    expected = dense.python_function(*given, "RELU")
    np.testing.assert_allclose(dense(*given, act="RELU"), expected, rtol=1e-4, atol=1e-4)
    assert composite.wait(120)
    told = composite.explain(dense, *given, act="RELU")
    assert told.kernel_us and told.expansion_us, told  # it was made, and measured
    with composite.options(backend="tvm"):
        np.testing.assert_allclose(dense(*given, act="RELU"), expected, rtol=1e-4, atol=1e-4)

count = completed(24, interrupting)
print(*dict.fromkeys(event.step for event in events), sep="|")
assert count == len({event.step for event in events}), count
usable(24)

delay, main = [0.02], threading.main_thread().ident
timers = []
def timed():
    for timer in timers:
        timer.cancel()
        timer.join()
    timers[:] = [threading.Timer(delay[0], signal.pthread_kill, (main, signal.SIGINT))]
    delay[0] *= 2.5
    timers[0].start()

while True:
    try:
        print(completed(25, None, timed) > 0)
        for timer in timers:
            timer.cancel()
            timer.join()
        break
    except KeyboardInterrupt:  # it came when the call was done
        pass
usable(25)
"""

_STEPS = {
    "accelerate": {"trace", "compile", "check", "measure", "compare"},
    "wait": {"compile", "check", "measure"},
    "tune": {"compile", "check", "compare"},
    "build": {"import", "compile", "check", "measure", "link"},
    "check": {"eager", "kernel", "kernel, unaligned"},
}


@pytest.mark.parametrize("name", _CALLS)
def test_everything_is_usable_afterwards(name: str, run_python: RunPython, tmp_path: Path) -> None:
    env = {"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")}
    done = run_python(_BEGIN + _CALLS[name] + _INTERRUPTED, env=env)
    steps, was_interrupted = done.stdout.splitlines()[-2:]
    assert _STEPS[name] <= set(steps.split("|"))
    assert was_interrupted == "True"
