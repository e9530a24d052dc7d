"""Inputs that TensorFlow's kernels could not read, such as views made by DLPack.

TensorFlow's own ops abort the process for most of them: each test has a process of its own.
"""

from __future__ import annotations

import pytest

from tests.conftest import RunPython

_PRELUDE = """
import numpy as np
import tensorflow as tf
import composite

@composite.Composite("AlignedHere", inputs=["x: T"], derived_attrs=["T: {float}"], outputs=["y: T"])
def op(x):
    return tf.nn.softmax(tf.matmul(x, x)) + tf.tanh(x)

def body(x):
    return tf.nn.softmax(tf.matmul(x, x)) + tf.tanh(x)

def misaligned(numbers):
    room = np.zeros(numbers.size + 32, np.float32)
    first = next(i for i in range(16) if room[i:].ctypes.data % 64 == 4)
    view = room[first : first + numbers.size].reshape(numbers.shape)
    view[:] = numbers
    found = tf.experimental.dlpack.from_dlpack(view.__dlpack__())
    assert np.from_dlpack(found).ctypes.data % 64 == 4
    return found

numbers = np.linspace(-2, 2, 49, dtype=np.float32).reshape(7, 7)
wanted, x = body(tf.constant(numbers)), misaligned(numbers)

def check(f, *args):
    for i in range(8):
        np.testing.assert_allclose(f(*args), wanted, rtol=1e-4, atol=1e-5)
        if i == 5:
            composite.wait()
"""
_WAYS = {
    "an eager op": "check(op, x)",
    "an expansion": """
with composite.options(backend="tf"):
    check(op, x)
""",
    "a node": "check(tf.function(lambda x: op(x)), x)",
    "a captured tensor": "check(tf.function(lambda: op(x)))",
    "regions": """
with composite.options(regions=True):
    check(tf.function(body), x)
""",
    "an accelerated function": """
check(composite.accelerate(body, tf.ones((7, 7)), min_gain=0.0), x)
""",
    "a variable": """
v = tf.Variable(x)
check(tf.function(lambda: op(v)))
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("way", _WAYS)
def test_a_misaligned_input_is_read(run_python: RunPython, way: str) -> None:
    done = run_python(_PRELUDE + _WAYS[way] + "\nprint('read')", check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "read\n"
