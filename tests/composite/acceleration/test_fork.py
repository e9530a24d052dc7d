"""Accelerated functions in children that were forked when TensorFlow had run."""

from __future__ import annotations

import pytest

from tests.conftest import RunPython

_CODE = """
import os, signal, sys, time
import tensorflow as tf
import composite

w = tf.random.normal((16, 16))
body = lambda x: tf.nn.relu(tf.matmul(x, w)) + tf.tanh(x)
f = composite.accelerate(body, tf.ones((16, 16)), min_gain=float(sys.argv[1]))
x = tf.random.normal((16, 16))
for _ in range(5):
    f(x)
wanted = body(x).numpy()

def gradient(called):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = called(x)
    return tape.gradient(y, x)

CALLS = {
    "the same": lambda: f(x),
    "another batch": lambda: f(x[:3]),
    "an array": lambda: f(x.numpy()),
    "a named argument": lambda: f(x=x),
}
slopes = gradient(body).numpy()
for name, call in CALLS.items():
    child = os.fork()
    if child == 0:
        y = call().numpy()
        is_close = abs(y - wanted[: len(y)]).max() < 1e-4
        is_close = is_close and abs(gradient(f).numpy() - slopes).max() < 1e-4
        os._exit(0 if is_close else 3)
    end = time.monotonic() + 60
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            sys.exit(f"{name}: the child hangs")
        time.sleep(0.01)
    assert status == 0, (name, status)
f(x)  # here nothing has changed
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("min_gain", ["0", "1000"], ids=["regions", "the original"])
def test_a_forked_child_calls_an_accelerated_function(run_python: RunPython, min_gain: str) -> None:
    done = run_python(_CODE, min_gain, check=False, timeout=280)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
