"""Kernels for GPUs, made just in time: nodes launch them on TensorFlow's own streams."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from composite.binding.kernel_record import KernelRecord
from composite.compiler.tvm.cuda import nvrtc
from composite.compiler.tvm.cuda.launch import Argument, Launch, LaunchPlan
from composite.compiler.tvm.cuda.preamble import PREAMBLE
from composite.kernels import gpu, verify
from tests.gpu.devices import GPU, OTHER_GPU, Counted, Devices, delete_kernels, with_kernels
from tests.unmeasured import kernels_serve

os.environ |= with_kernels()


@Composite("GpuKernelTwo", inputs=["x: float", "b: float"], outputs=["y: float", "z: float"])
def two(x, b):
    """Sums of columns behind what is computed element by element: two launches, a workspace."""
    y = tf.tanh(x * 2.0 + b)
    return y, tf.reduce_sum(y * y, 0)


@Composite("GpuKernelMeasured", inputs=["x: float"], outputs=["y: float"])
def measured(x):
    return tf.tanh(x * 2.0) + 1.0


@Composite("GpuKernelMeasuredAlone", inputs=["x: float"], outputs=["y: float"])
def measured_alone(x):
    """The device has no kernel of TensorFlow's for an op: the expansion runs it on the CPU."""
    return tf.sigmoid(x * 2.0)


@Composite("GpuKernelScalar", inputs=["x: float", "n: int64"], outputs=["y: float"])
def scaled(x, n):
    return x * tf.cast(n, tf.float32) + 1.0


@Composite("GpuKernelShifted", inputs=["x: float", "b: float"], outputs=["y: float"])
def shifted(x, b):
    return tf.tanh(x) + b


@Composite("GpuKernelNone", inputs=["x: float"], outputs=["y: float"])
def without(x):
    return tf.math.lgamma(x)


X = np.linspace(-1, 1, 60, dtype=np.float32).reshape(12, 5)
B = np.arange(5, dtype=np.float32) / 5


def expected(x: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y = np.tanh(x * 2 + b)
    return y, (y * y).sum(0)


def check(found: Any, x: np.ndarray = X, b: np.ndarray = B) -> None:
    for one, right in zip(found, expected(x, b), strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-5)


@pytest.fixture(scope="module", autouse=True)
def _kernel(devices: Devices) -> None:
    """The first call runs the expansion, and asks for a kernel."""
    counted = Counted(devices)
    with tf.device(GPU), kernels_serve():
        check(two(tf.constant(X), tf.constant(B)))
        assert counted()[:2] == (0, 1)
        assert composite.wait(60)


def test_an_eager_call(devices: Devices) -> None:
    counted = Counted(devices)
    with tf.device(GPU):
        x, b = tf.constant(X), tf.constant(B)
        found = two(x, b)
        explanation = composite.explain(two, x, b)
    assert [one.device[-5:] for one in found] == ["GPU:0"] * 2
    check(found)
    assert counted() == (1, 0, 2)
    assert (explanation.path, explanation.details["target"]) == (
        "kernel",
        f"cuda-{devices.level}-tf32",
    )
    with tf.device("/CPU:0"):  # whose kernels are others
        assert composite.explain(two, tf.constant(X), tf.constant(B)).kernel != explanation.kernel


@pytest.mark.parametrize("device", [GPU, OTHER_GPU, None])
def test_nodes_of_a_function(devices: Devices, device: str | None) -> None:
    """A kernel for one device serves all of its level; what names no device is on the first."""

    @tf.function
    def call(x: Any, b: Any) -> Any:
        with tf.device(device):
            y, _ = two(x, b)
            return two(y, b)

    counted = Counted(devices, int((device or GPU)[-1]))
    check(call(X, B), expected(X, B)[0])
    assert counted() == (2, 0, 4)


def test_work_of_the_stream_comes_before_the_kernel(devices: Devices) -> None:
    """Nobody waits for the device: neither for what gives the inputs, nor for the kernel.

    The node may be gone by then.
    """
    with tf.device(GPU):
        x, b = tf.constant(X), tf.constant(B)
        half, one = tf.constant(0.5), tf.constant(1.0)
        with devices.held():
            found = two(x * half, b + one)
            twice = found[0] + found[0]
            delete_kernels()
        check(found, X * 0.5, B + 1)
        np.testing.assert_allclose(twice, 2 * expected(X * 0.5, B + 1)[0], rtol=1e-5)


def test_gradients(devices: Devices) -> None:
    """The backward is a function, whose kernel is asked for as that of an op."""

    @tf.function
    def step(x: Any, b: Any) -> Any:
        with tf.device(GPU), tf.GradientTape() as tape:
            tape.watch([x, b])
            y, z = two(x, b)
            loss = tf.reduce_sum(y) + tf.reduce_sum(z)
        return tape.gradient(loss, [x, b])

    def right(x: Any, b: Any) -> Any:
        with tf.device("/CPU:0"), tf.GradientTape() as tape:
            tape.watch([x, b])
            y = tf.tanh(x * 2.0 + b)
            loss = tf.reduce_sum(y) + tf.reduce_sum(y * y)
        return tape.gradient(loss, [x, b])

    x, b = tf.constant(X), tf.constant(B)
    with kernels_serve():
        for _ in range(2):
            counted = Counted(devices)
            for one, wanted in zip(step(x, b), right(x, b), strict=True):
                np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)
            assert composite.wait(60)
    assert counted()[:2] == (2, 0)


def test_a_launch_that_the_driver_refuses(devices: Devices) -> None:
    with tf.device(GPU):
        x, b = tf.constant(X), tf.constant(B)
        counted = Counted(devices)
        with devices.refusing():
            check(two(x, b))
            with (
                composite.options(backend="tvm"),
                pytest.raises(
                    tf.errors.InternalError,
                    match=r"kernel GpuKernelTwo_\w+ of GpuKernelTwo was not launched: "
                    r"GpuKernelTwo_\w+_0: cuLaunchKernel answers CUDA_ERROR_LAUNCH_FAILED \(719\)",
                ),
            ):
                two(x, b)
        assert counted() == (2, 1, 0)
        check(two(x, b))
        assert counted() == (3, 1, 2)


def test_must(devices: Devices) -> None:
    """A call waits for its kernel; one that can have none is refused."""
    counted = Counted(devices)
    with tf.device(GPU), composite.options(backend="tvm"):
        check(two(tf.constant(X[:7]), tf.constant(B)), X[:7])
        with pytest.raises(tf.errors.FailedPreconditionError, match="Lgamma"):
            without(tf.constant(X))
    assert counted()[:2] == (1, 0)


def test_a_scalar_among_the_inputs(devices: Devices) -> None:
    """Its check calls the kernel with a scalar, and not with a vector of one element."""
    counted = Counted(devices)
    with tf.device(GPU), kernels_serve():
        x, b = tf.constant(X), tf.constant(2.0)
        for _ in range(2):
            np.testing.assert_allclose(shifted(x, b), np.tanh(X) + 2, rtol=1e-5)
            assert composite.wait(60)
        assert composite.explain(shifted, x, b).error is not None  # it was checked
    assert counted()[:2] == (1, 1)


ARGUMENTS = (Argument("in", 0), Argument("out", 0))
WRONG = """
extern "C" __global__ void wrong_0(float* in0, float* out0) {
  out0[threadIdx.x + 1] = in0[threadIdx.x];
}
"""


def test_whole_numbers_on_the_device_are_not_read() -> None:
    """A scalar may be a size of a kernel, but only where the host can read it."""
    with tf.device(GPU):
        x, n = tf.constant(X), tf.constant(3, tf.int64)
        assert n.device.endswith("GPU:0")
        for _ in range(2):
            np.testing.assert_allclose(scaled(x, n), X * 3 + 1, rtol=1e-5)
            assert composite.wait(60)


def test_what_a_check_says_of_wrong_kernels(devices: Devices) -> None:
    plan: dict[str, Any] = LaunchPlan(
        (Launch("wrong_0", "1", 1, 64, 0, ARGUMENTS),), (), ()
    ).fields()
    record = KernelRecord(
        op="Wrong",
        name="wrong",
        program="p",
        in_shapes=((64,),),
        out_shapes=("64",),
        device=f"cuda:{devices.level}",
        **plan,
    )
    x = np.ones(64, np.float32)
    image = nvrtc.image(PREAMBLE + WRONG, devices.level, is_portable=False)
    with pytest.raises(verify.Mismatch, match="the kernel wrote outside its output"):
        gpu.call(record, image, [x], [x])
    with pytest.raises(RuntimeError, match=r"cuModuleLoadData answers CUDA_ERROR_INVALID_IMAGE"):
        gpu.call(record, b"no machine code, but some text", [x], [x])
    with pytest.raises(RuntimeError, match=r"kernel wrong is for \[64\] and not for \[32\]"):
        gpu.call(record, image, [x[:32]], [x])
    with pytest.raises(RuntimeError, match="no GPU is a cuda:sm_70"):
        gpu.call(replace(record, device="cuda:sm_70"), image, [x], [x])


def test_it_is_measured_on_the_device(devices: Devices) -> None:
    with tf.device(GPU):
        x = tf.constant(X)
        measured(x)
        assert composite.wait(60)
        explanation = composite.explain(measured, x)
        np.testing.assert_allclose(measured(x), np.tanh(X * 2) + 1, rtol=1e-5)
    assert explanation.kernel_us is not None, explanation.reason
    assert explanation.expansion_us is not None
    assert devices.launches("Tanh") > 16  # the expansion's, beside the kernel's


def test_it_is_measured_beside_ops_that_have_no_kernel_there() -> None:
    with tf.device(GPU):
        x = tf.constant(X)
        measured_alone(x)
        assert composite.wait(60)
        explanation = composite.explain(measured_alone, x)
        np.testing.assert_allclose(measured_alone(x), tf.sigmoid(X * 2), rtol=1e-5)
    assert explanation.kernel_us is not None, explanation.reason
