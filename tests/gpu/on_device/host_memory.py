"""Kernels for GPUs with tensors that TensorFlow keeps in the host's memory: int32, and others."""

from __future__ import annotations

import gc
import os
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from tests.gpu.devices import GPU, Counted, Devices, delete_kernels, with_kernels
from tests.unmeasured import kernels_serve

os.environ |= with_kernels()


@Composite("GpuInt32Plus", inputs=["x: int32"], outputs=["y: int32"])
def plus(x):
    return x * 3 + 1


@Composite("GpuInt32Scale", inputs=["x: float", "n: int32"], outputs=["y: float"])
def scaled(x, n):
    return tf.tanh(x) * tf.cast(n, tf.float32)


@Composite("GpuInt32Both", inputs=["x: float", "n: int32"], outputs=["y: float", "most: int32"])
def both(x, n):
    return x + tf.cast(n, tf.float32), tf.reduce_max(n, -1)


@Composite("GpuInt32List", inputs=["xs: T"], derived_attrs=["T: list(type)"], outputs=["y: float"])
def summed(xs):
    return tf.cast(xs[0], tf.float32) * 0.5 + tf.cast(xs[1], tf.float32)


@Composite("GpuInt32Sized", inputs=["x: float", "n: int32"], outputs=["y: float"])
def ramp(x, n):
    """What has as many elements as the value of an input says."""
    return tf.cast(tf.range(n), tf.float32) * x + 1.0


@Composite("GpuInt32Bag", inputs=["table: float", "ids: int32"], outputs=["y: float"])
def bag(table, ids):
    return tf.reduce_sum(tf.gather(table, ids), 1)


X = np.linspace(-1, 1, 60, dtype=np.float32).reshape(12, 5)
N = np.arange(60, dtype=np.int32).reshape(12, 5) - 7


def made(function: Any, *inputs: Any, **attrs: Any) -> Any:
    """What a call gives when its kernel is there."""
    with tf.device(GPU), kernels_serve():
        function(*inputs, **attrs)
        assert composite.wait(60)
        explanation = composite.explain(function, *inputs, **attrs)
        assert explanation.path == "kernel", explanation
        return function(*inputs, **attrs)


def test_inputs_and_outputs(devices: Devices) -> None:
    made(plus, N)
    counted = Counted(devices)
    with tf.device(GPU):
        found = plus(tf.constant(N))
    np.testing.assert_array_equal(found, N * 3 + 1)
    assert counted() == (1, 0, 1)


def test_beside_tensors_of_the_device(devices: Devices) -> None:
    y, most = made(both, X, N)
    np.testing.assert_allclose(y, X + N, rtol=1e-6)
    np.testing.assert_array_equal(most, N.max(-1))
    assert y.device.endswith("GPU:0")

    @tf.function
    def twice(x: Any, n: Any) -> Any:
        with tf.device(GPU):
            y, most = both(x, n)
            return both(y, n + most[:, None])

    counted = Counted(devices)
    y, most = twice(X, N)
    np.testing.assert_allclose(y, X + 2 * N + N.max(-1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(most, 2 * N.max(-1))
    assert counted()[:2] == (2, 0)


def test_nobody_waits_for_copies_to_the_device(devices: Devices) -> None:
    """What is copied stays until the stream has read it, whatever becomes of the input."""
    made(scaled, X, N)
    with tf.device(GPU):
        x = tf.constant(X)
        with devices.held():
            found = []
            for i in range(20):
                n = tf.constant(N + i)
                found.append(scaled(x, n))
                del n
                gc.collect()
            others = [tf.constant(np.full_like(N, -1000)) for _ in range(20)]
            delete_kernels()
        for i, one in enumerate(found):
            np.testing.assert_allclose(one, np.tanh(X) * (N + i), rtol=1e-5)
        del others


def test_all_tensors_of_a_list_that_has_int32(devices: Devices) -> None:
    found = made(summed, [N, X])
    np.testing.assert_allclose(found, N * 0.5 + X, rtol=1e-6)
    counted = Counted(devices)
    with tf.device(GPU):
        found = summed([tf.constant(N), tf.constant(X)])
    np.testing.assert_allclose(found, N * 0.5 + X, rtol=1e-6)
    assert counted()[:2] == (1, 0)


def test_a_launch_that_the_driver_refuses(devices: Devices) -> None:
    made(both, X, N)
    counted = Counted(devices)
    with tf.device(GPU), devices.refusing():
        y, most = both(tf.constant(X), tf.constant(N))
    np.testing.assert_allclose(y, X + N, rtol=1e-6)
    np.testing.assert_array_equal(most, N.max(-1))
    assert counted() == (1, 1, 0)


def test_a_scalar_that_is_a_size(devices: Devices) -> None:
    with tf.device(GPU), kernels_serve():
        for n in (5, 9, 5, 9):
            found = ramp(tf.constant(0.5), tf.constant(n))
            np.testing.assert_allclose(found, np.arange(n) * 0.5 + 1)
            assert composite.wait(60)
        counted = Counted(devices)
        np.testing.assert_allclose(ramp(tf.constant(2.0), tf.constant(7)), np.arange(7) * 2 + 1)
        assert counted()[:2] == (1, 0)


def test_an_index_that_is_out_of_range(devices: Devices) -> None:
    """The row is 0, as of TensorFlow's own gathers on GPUs; this device has none, so it raises."""
    table, ids = X, np.array([[0, 11], [3, 4]], np.int32)
    np.testing.assert_allclose(made(bag, table, ids), X[ids].sum(1), rtol=1e-5)
    ids[1, 0] = 12
    counted = Counted(devices)
    with tf.device(GPU):
        found = bag(tf.constant(table), tf.constant(ids))
    np.testing.assert_allclose(found, [X[0] + X[11], X[4]], rtol=1e-5)
    assert counted()[:2] == (1, 0)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_sizes(rows: int) -> None:
    with tf.device(GPU), kernels_serve():
        for _ in range(2):
            y, most = both(tf.constant(X[:rows]), tf.constant(N[:rows]))
            np.testing.assert_allclose(y, X[:rows] + N[:rows], rtol=1e-6)
            np.testing.assert_array_equal(most, N[:rows].max(-1))
            assert composite.wait(60)


def test_gradients(devices: Devices) -> None:
    made(scaled, X, N)
    with tf.device(GPU), kernels_serve():
        x, n = tf.constant(X), tf.constant(N)
        for _ in range(2):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = scaled(x, n)
            gradient = tape.gradient(y, x)
            np.testing.assert_allclose(gradient, (1 - np.tanh(X) ** 2) * N, rtol=1e-4, atol=1e-6)
            assert composite.wait(60)
