"""The end of a process while daemon threads call ops: it must be quiet, with exit code 0."""

from __future__ import annotations

import pytest

from tests.conftest import RunPython

_CALLED = {
    "op": """
@composite.Composite("EndsOp", inputs=["x: T"], derived_attrs=["T: {float}"], outputs=["y: T"])
def called(x):
    return tf.tanh(x) * 2.0 + x
""",
    "function": """
called = composite.accelerate(lambda x: tf.tanh(tf.matmul(x, x)) + x, tf.ones((64, 64)))
""",
}
_ENDS = """
import threading, time
import tensorflow as tf
import composite
{called}
x = tf.ones((64, 64))
called(x)
composite.wait()
calls = [0] * 3
def call(i):
    while True:
        called(x)
        calls[i] += 1
for i in range(len(calls)):
    threading.Thread(target=call, args=[i], daemon=True).start()
while min(calls) < 100:
    time.sleep(0.01)
print("ends")
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", _CALLED)
def test_a_process_may_end_while_daemon_threads_call(run_python: RunPython, kind: str) -> None:
    code = _ENDS.format(called=_CALLED[kind])
    for _ in range(2):
        done = run_python(code, bare=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "ends\n"
        assert "terminate" not in done.stderr
