"""The test devices themselves: what the other files rely on."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.gpu.devices import GPU, OTHER_GPU, Devices, delete_kernels

pytestmark = pytest.mark.usefixtures("devices")


def test_tensorflow_has_two_gpus() -> None:
    assert [one.name for one in tf.config.list_logical_devices("GPU")] == [
        "/device:GPU:0",
        "/device:GPU:1",
    ]


@pytest.mark.parametrize("device", [GPU, OTHER_GPU])
def test_an_op_runs_on_the_device_that_it_is_placed_on(devices: Devices, device: str) -> None:
    number = int(device[-1])
    before = devices.launches("MatMul", number)
    with tf.device(device):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        y = tf.matmul(x, x, transpose_b=True)
    assert y.device.endswith(device[1:])
    assert devices.launches("MatMul", number) == before + 1
    np.testing.assert_array_equal(y, [[5, 11], [11, 25]])


def test_a_kernel_returns_before_its_work_is_done(devices: Devices) -> None:
    with tf.device(GPU):
        x = tf.constant([1.0, 2.0])
        with devices.held():
            y = x + x
        np.testing.assert_array_equal(y, [2, 4])


def test_a_kernel_may_be_deleted_before_its_work_is_done(devices: Devices) -> None:
    with tf.device(GPU):
        x = tf.constant([1.0, 4.0])
        with devices.held():
            y = tf.sqrt(x)
            delete_kernels()
        np.testing.assert_array_equal(y, [1, 2])


def test_tensors_go_from_one_device_to_the_other() -> None:
    with tf.device(GPU):
        x = tf.constant([1.0, 2.0]) * 2.0
    with tf.device(OTHER_GPU):
        y = x + 1.0
    np.testing.assert_array_equal(y, [3, 5])


@pytest.mark.parametrize("axis", [0, 1, -1, [0, 1], None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums(axis: int | list[int] | None, keepdims: bool) -> None:
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    with tf.device(GPU):
        summed = tf.reduce_sum(tf.constant(numbers), axis, keepdims)
    axes = tuple(axis) if isinstance(axis, list) else axis
    np.testing.assert_array_equal(summed, numbers.sum(axes, keepdims=keepdims))


def test_inputs_are_broadcast() -> None:
    x, y = np.arange(6, dtype=np.float32).reshape(2, 1, 3), np.ones((4, 1), np.float32)
    with tf.device(GPU):
        np.testing.assert_array_equal(tf.constant(x) - tf.constant(y), x - y)
