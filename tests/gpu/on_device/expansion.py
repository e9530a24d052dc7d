"""Nodes on a GPU run the ops of their bodies there, and the others wherever they have kernels."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from tests.gpu.devices import GPU, OTHER_GPU, Devices, delete_kernels

pytestmark = pytest.mark.usefixtures("devices")


@Composite("GpuDense", inputs=["x: float", "w: float"], outputs=["y: float"])
def dense(x, w):
    """Every op has a kernel on the devices."""
    return tf.tanh(tf.matmul(x, w)) * 2.0 + x


@Composite("GpuLgamma", inputs=["x: float"], outputs=["y: float"])
def lgamma(x):
    """One op has none."""
    return tf.math.lgamma(x * 2.0) + x


@Composite("GpuSplit", inputs=["x: float", "n: int32"], outputs=["y: float", "m: int32"])
def split(x, n):
    """The shape of the result is in the host's memory."""
    return tf.reshape(x, tf.stack([n, -1])) * 2.0, n + 1


@Composite("GpuCast", inputs=["x: float", "n: int32"], outputs=["y: float"])
def cast(x, n):
    """Every op has a kernel on the devices, one of which reads int32 in the device's memory."""
    return tf.cast(n, tf.float32) * x


@Composite("GpuJoin", inputs=["x: float", "s: string"], outputs=["y: float", "t: string"])
def join(x, s):
    return x * 2.0, tf.strings.join([s, s])


@Composite("GpuList", inputs=["x: T"], derived_attrs=["T: list(type)"], outputs=["y: T"])
def of_lists(x):
    return [tf.identity(one) for one in x]


@Composite(
    "GpuFive",
    inputs=["a: A", "b: B", "c: C", "d: D", "e: E", "n: int32"],
    derived_attrs=[f"{one}: {{float, int32, int64}}" for one in "ABCDE"],
    outputs=["v: A", "w: B", "x: C", "y: D", "z: E", "m: int32"],
)
def five(a, b, c, d, e, n):  # noqa: PLR0917
    return a + a, b, c + c, d, e + e, n + n


@Composite("GpuBranch", inputs=["x: float"], outputs=["y: float"])
def branch(x):
    if tf.reduce_sum(x) > 0.0:  # noqa: SIM108
        y = tf.math.lgamma(x)
    else:
        y = x * 2.0
    return y


@Composite("GpuLoop", inputs=["x: float", "n: int32"], outputs=["y: float"])
def loop(x, n):
    for _ in range(n):
        x = x * 2.0 + 1.0
    return x


@Composite("GpuFactors", inputs=["x: float", "y: float"], outputs=["z: float"])
def factors(x, y):
    return (x * 2.0) * 3.0 + y


@Composite("GpuSteps", inputs=["x: float"], outputs=["y: float"])
def steps(x):
    """Its node stays while the number of rows is unknown, and runs on two devices."""
    y = x
    for _ in range(x.shape[0]):
        y = tf.math.lgamma(y + 1.5)
    return y


X = np.arange(1, 5, dtype=np.float32).reshape(2, 2)
W = X * 0.1


def eager(op: Any, *inputs: Any) -> Any:
    with tf.device(GPU):
        return op(*inputs)


def traced(op: Any, *inputs: Any) -> Any:
    @tf.function
    def call(*inputs: Any) -> Any:
        with tf.device(GPU):
            return op(*inputs)

    return call(*inputs)


def unplaced(op: Any, *inputs: Any) -> Any:
    """TensorFlow places what says nothing on the first GPU."""
    return tf.function(op)(*inputs)


WAYS = pytest.mark.parametrize("way", [eager, traced, unplaced])


@WAYS
def test_ops_of_the_body_run_on_the_device(devices: Devices, way: Callable[..., Any]) -> None:
    before = devices.launches("Tanh")
    y = way(dense, tf.constant(X), tf.constant(W))
    assert devices.launches("Tanh") == before + 1
    np.testing.assert_allclose(y, np.tanh(X @ W) * 2 + X, rtol=1e-6)


@WAYS
def test_an_op_without_a_kernel_there_runs_on_the_cpu(
    devices: Devices, way: Callable[..., Any]
) -> None:
    before = devices.launches("AddV2")
    y = way(lgamma, tf.constant(X))
    assert devices.launches("AddV2") == before + 1
    np.testing.assert_allclose(y, tf.math.lgamma(X * 2).numpy() + X, rtol=1e-6)


@WAYS
def test_int32(way: Callable[..., Any]) -> None:
    y, m = way(split, tf.constant(X), tf.constant(4))
    np.testing.assert_array_equal(y, X.reshape(4, 1) * 2)
    assert m.numpy() == 5


@WAYS
def test_int32_that_an_op_reads_in_the_memory_of_the_device(way: Callable[..., Any]) -> None:
    n = np.arange(4, dtype=np.int32).reshape(2, 2)
    for _ in range(20):  # those that optimizers change come after 16
        np.testing.assert_array_equal(way(cast, tf.constant(X), tf.constant(n)), X * n)


@WAYS
def test_strings(way: Callable[..., Any]) -> None:
    y, t = way(join, tf.constant(X), tf.constant("ab"))
    np.testing.assert_array_equal(y, X * 2)
    assert t.numpy() == b"abab"


@WAYS
def test_lists_of_types(way: Callable[..., Any]) -> None:
    x, n, s = way(of_lists, [tf.constant(X), tf.constant([4, 5]), tf.constant("ab")])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(n, [4, 5])
    assert s.numpy() == b"ab"


@WAYS
def test_five_type_attributes(way: Callable[..., Any]) -> None:
    dtypes = [tf.float32, tf.int32, tf.int32, tf.int64, tf.float32]
    *rest, m = way(five, *(tf.constant([1, 2], dtype) for dtype in dtypes), tf.constant(7))
    factors = [2, 1, 2, 1, 2]
    for one, factor in zip(rest, factors, strict=True):
        np.testing.assert_array_equal(one, [factor, 2 * factor])
    assert m.numpy() == 14


@WAYS
@pytest.mark.parametrize("sign", [1, -1])
def test_branches(way: Callable[..., Any], sign: int) -> None:
    y = way(branch, tf.constant(sign * X))
    expected = tf.math.lgamma(X).numpy() if sign > 0 else -2 * X
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)


@WAYS
def test_loops(way: Callable[..., Any]) -> None:
    y = way(loop, tf.constant(X), tf.constant(3))
    np.testing.assert_array_equal(y, X * 8 + 7)


def test_an_expansion_that_runs_often_is_what_grappler_makes_of_it(devices: Devices) -> None:
    """The constants are one factor then; with numerics="strict" it stays as it is written."""

    def launches() -> int:
        before = devices.launches("Mul")
        np.testing.assert_allclose(eager(factors, X, W), X * 6 + W, rtol=1e-6)
        return devices.launches("Mul") - before

    assert [launches() for _ in range(16)] == [2] * 16
    end = time.monotonic() + 60
    while launches() == 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert launches() == 1
    with composite.options(numerics="strict"):
        assert launches() == 2
    np.testing.assert_allclose(eager(factors, X[:1], W), X[:1] * 6 + W, rtol=1e-6)


def test_two_nodes_that_run_the_same_expansion_at_once() -> None:
    """They are ready at the same time, and each sends to the CPU and back under the same names."""

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def both(x: tf.Tensor) -> Any:
        with tf.device(GPU):
            return [steps(x + float(i)) for i in range(6)]

    expected = [steps.python_function(tf.constant(X + i)) for i in range(6)]
    before = composite.stats()
    for _ in range(5):
        for one, right in zip(both(X), expected, strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-5)
    assert (composite.stats() - before)["expansion_runs"] == 30


def test_a_node_of_each_device(devices: Devices) -> None:
    @tf.function
    def both(x: tf.Tensor, w: tf.Tensor) -> Any:
        with tf.device(GPU):
            y = dense(x, w)
        with tf.device(OTHER_GPU):
            return dense(y, w)

    before = [devices.launches("MatMul", number) for number in (0, 1)]
    y = both(tf.constant(X), tf.constant(W))
    assert [devices.launches("MatMul", number) for number in (0, 1)] == [one + 1 for one in before]
    once = np.tanh(X @ W) * 2 + X
    np.testing.assert_allclose(y, np.tanh(once @ W) * 2 + once, rtol=1e-6)


def test_nobody_waits_for_the_device(devices: Devices) -> None:
    with tf.device(GPU):
        x, w = tf.constant(X), tf.constant(W)
        dense(x, w)
        with devices.held():
            y = dense(x, w)
            delete_kernels()
        np.testing.assert_allclose(y, np.tanh(X @ W) * 2 + X, rtol=1e-6)
