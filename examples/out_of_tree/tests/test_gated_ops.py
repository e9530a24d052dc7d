"""The installed wheel, where nothing can be compiled. Run as `pytest tests`."""

import sys

import numpy as np
import tensorflow as tf

import composite
from gated_ops import gated_tanh
from gated_ops.library.gated import library

X = np.linspace(-3, 3, 7 * 64, dtype=np.float32).reshape(7, 64)
GATE = X[::-1].copy()


def test_values_and_gradient():
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = gated_tanh(x, GATE, alpha=2.0)
    np.testing.assert_allclose(y, np.tanh(X) / (1 + np.exp(-2 * GATE)), rtol=1e-5, atol=1e-6)
    slope = (1 - np.tanh(X) ** 2) / (1 + np.exp(-2 * GATE))
    np.testing.assert_allclose(tape.gradient(y, x), slope, rtol=1e-4, atol=1e-5)


def test_it_is_one_node():
    graph = tf.function(gated_tanh).get_concrete_function(X, GATE).graph
    assert "GatedTanh" in [op.type for op in graph.get_operations()]


def test_the_kernel_that_came_along_runs():
    with composite.options(backend="tvm"):
        y = gated_tanh(X, GATE)
    np.testing.assert_allclose(y, np.tanh(X) / (1 + np.exp(-GATE)), rtol=1e-5, atol=1e-6)
    told = composite.explain(library.gated_tanh, X, GATE)
    assert told.kernel, told


def test_no_compiler_takes_part():
    gated_tanh(X, GATE)
    assert composite.stats()["answered"] == 0
    assert not {"tvm", "torch_mlir", "mlir"} & {name.partition(".")[0] for name in sys.modules}
    with open("/proc/self/maps") as maps:
        assert "libtvm" not in maps.read()
