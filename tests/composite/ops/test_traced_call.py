"""Eager calls that run elsewhere: on other threads, and on the devices of a cluster."""

from __future__ import annotations

import json
from typing import Any

import tensorflow as tf

import composite
from composite import Composite

# What `launches` prints for a call is how many kernels it launched, or the error that it raised.
SCRIPT = """
import json, sys
import tensorflow as tf
import composite
from composite import Composite
from composite.binding import native
from composite.binding.records import record

@Composite("ElsewhereWave", inputs=["x: float"], outputs=["y: float"])
def wave(x):
    return tf.tanh(x * 1.1 * 1.3) / (x * x + 1.0)  # grappler would make one factor of two

@Composite("ElsewhereUncovered", inputs=["x: int32"], outputs=["y: int32"])
def uncovered(x):
    return tf.raw_ops.Invert(x=x) * 2

X = tf.random.stateless_normal([999], [1, 2])
STRICT = wave.python_function(X).numpy()
with composite.options(backend="tvm"):
    wave(X)

def process(backend):
    native.call("composite_set_options", record(backend=backend, numerics="", thread=False))

def launches(op, x, **options):
    before = composite.stats()
    try:
        with composite.options(**options):
            y = op(x)
        value = y.numpy()
    except tf.errors.OpError as error:
        return type(error).__name__
    if "numerics" in options:
        assert (value == STRICT).all()
    return (composite.stats() - before)["kernel_launches"]

def answers():
    process("tvm")
    told = [launches(wave, X), launches(wave, X, backend="tf")]
    told.append(launches(wave, X, backend="auto", numerics="strict"))
    process("tf")
    told += [launches(wave, X), launches(wave, X, backend="tvm")]
    told.append(launches(uncovered, tf.range(9), backend="tvm"))
    tf.experimental.async_clear_error()
    process("")
    return told
"""
EXPECTED = [1, 0, 0, 0, 1, "FailedPreconditionError"]


def answers(done: Any) -> Any:
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_options_on_other_threads(run_python: Any) -> None:
    code = (
        SCRIPT
        + """
told = [answers()]
with tf.experimental.async_scope():
    told.append(answers())
tf.config.experimental.set_synchronous_execution(False)
told.append(answers())
print(json.dumps(told))
"""
    )
    assert answers(run_python(code)) == [EXPECTED] * 3


def test_options_on_devices_of_a_cluster(run_python: Any) -> None:
    code = (
        SCRIPT
        + """
server = tf.distribute.Server.create_local_server()
tf.config.experimental_connect_to_host(server.target)
told = [answers()]
with tf.device("/job:worker/replica:0/task:0/device:CPU:0"):
    y = wave(X)
    assert "worker" in y.device
    y.numpy()  # waits for it
    told.append(answers())
print(json.dumps(told))
"""
    )
    assert answers(run_python(code)) == [EXPECTED] * 2


def test_a_worker_without_the_op_says_so(run_python: Any) -> None:
    code = (
        SCRIPT
        + """
import subprocess
server = subprocess.Popen(
    [sys.executable, "-c", "import sys, tensorflow as tf\\n"
     "print(tf.distribute.Server.create_local_server().target, flush=True)\\nsys.stdin.read()"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
tf.config.experimental_connect_to_host(server.stdout.readline().strip())
told = []
for options in ({}, {"backend": "tf"}):
    try:
        with composite.options(**options), tf.device("/job:worker/replica:0/task:0/device:CPU:0"):
            wave(X).numpy()
    except tf.errors.OpError as error:
        told.append([type(error).__name__, error.message])
server.kill()
print(json.dumps(told))
"""
    )
    told = answers(run_python(code))
    assert [name for name, _ in told] == ["NotFoundError"] * 2
    assert all("'ElsewhereWave'" in text and "registered in the binary" in text for _, text in told)


@Composite("ElsewhereSlope", inputs=["x: float"], outputs=["y: float"])
def slope(x):
    return tf.tanh(x) / (x * x + 1.0)


def test_gradients_take_the_options_of_their_caller(kernels_win: None) -> None:
    x = tf.linspace(-3.0, 3.0, 777)

    def launches(backend: str | None = None) -> int:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = slope(x)
        y.numpy()  # waits for it
        before = composite.stats()
        with composite.options(backend=backend):
            tape.gradient(y, x).numpy()  # waits for it
        return (composite.stats() - before)["kernel_launches"]

    for _ in range(4):  # from the third on, the call keeps what its gradient reads
        launches()
        composite.wait()
    assert (launches(), launches(backend="tf")) == (1, 0)
    tf.config.experimental.set_synchronous_execution(False)
    try:
        assert (launches(), launches(backend="tf")) == (1, 0)
    finally:
        tf.config.experimental.set_synchronous_execution(True)
