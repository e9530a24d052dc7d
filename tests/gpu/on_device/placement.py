"""What becomes of a node whose device has no kernels, and who decides about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from tests.gpu.devices import GPU, OTHER_GPU, Devices

pytestmark = pytest.mark.usefixtures("devices", "kernels_win")


@Composite("GpuPlaced", inputs=["x: float"], outputs=["y: float"])
def placed(x):
    return tf.tanh(x) * x + 1.0


@Composite("GpuVariable", inputs=["v: resource", "x: float"], outputs=["y: float"])
def of_variable(v, x):
    return tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32) * x


@pytest.fixture(scope="module", autouse=True)
def _kernel(kernels_win: None) -> None:
    """The op has a kernel, for the CPU."""
    with tf.device("/CPU:0"):
        for _ in range(2):
            placed(tf.constant(X))
            composite.wait()


X = np.linspace(-1, 1, 4096, dtype=np.float32)
EXPECTED = np.tanh(X) * X + 1


class Counted:
    """What composite.stats counted since."""

    def __init__(self) -> None:
        self._before = composite.stats()

    def __call__(self) -> tuple[int, int]:
        grown = composite.stats() - self._before
        return grown["kernel_launches"], grown["expansion_runs"]


def test_the_kernel_for_the_cpu_runs_on_the_cpu() -> None:
    counted = Counted()
    with tf.device("/CPU:0"):
        np.testing.assert_allclose(placed(X), EXPECTED, rtol=1e-5)
    assert counted() == (1, 0)


@pytest.mark.parametrize("device", [GPU, OTHER_GPU])
def test_it_does_not_run_on_another_device(devices: Devices, device: str) -> None:
    before = devices.launches("Tanh", int(device[-1]))
    counted = Counted()
    with tf.device(device):
        np.testing.assert_allclose(placed(X), EXPECTED, rtol=1e-5)
    assert counted() == (0, 1)
    assert devices.launches("Tanh", int(device[-1])) == before + 1


@pytest.mark.parametrize("device", [GPU, OTHER_GPU, None])
def test_the_ops_of_the_body_replace_the_node(devices: Devices, device: str | None) -> None:
    """Also of one that says nothing: TensorFlow places it on the first GPU."""

    @tf.function
    def call(x: Any) -> Any:
        with tf.device(device):
            return placed(x)

    number = int((device or GPU)[-1])
    before = devices.launches("Tanh", number)
    counted = Counted()
    np.testing.assert_allclose(call(X), EXPECTED, rtol=1e-5)
    assert counted() == (0, 0)
    assert devices.launches("Tanh", number) == before + 1


def test_a_node_on_the_cpu_keeps_its_kernel() -> None:
    @tf.function
    def call(x: Any) -> Any:
        with tf.device("/CPU:0"):
            return placed(x)

    counted = Counted()
    np.testing.assert_allclose(call(X), EXPECTED, rtol=1e-5)
    assert counted() == (1, 0)


def test_a_function_that_is_called_on_the_cpu_keeps_its_kernels() -> None:
    call = tf.function(placed)
    counted = Counted()
    with tf.device("/CPU:0"):
        np.testing.assert_allclose(call(X), EXPECTED, rtol=1e-5)
    assert counted() == (1, 0)


def test_a_kernel_that_must_be_is_an_error() -> None:
    with (
        tf.device(GPU),
        composite.options(backend="tvm"),
        pytest.raises(tf.errors.FailedPreconditionError, match="no kernels run on the device that"),
    ):
        placed(X)


@pytest.mark.parametrize("device", [GPU, OTHER_GPU])
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
def test_a_variable_is_read_where_it_lies(device: str, in_function: bool) -> None:
    with tf.device(device):
        v = tf.Variable([2.0, 3.0])

    def call(x: Any) -> Any:
        return of_variable(v.handle, x)

    for _ in range(2):
        y = (tf.function(call) if in_function else call)(tf.constant([1.0, 2.0]))
        np.testing.assert_array_equal(y, v.read_value() * [1.0, 2.0])
        v.assign([5.0, 6.0])


def test_an_error_has_the_authors_place() -> None:
    @Composite("GpuFails", inputs=["x: float", "y: float"], outputs=["z: float"])
    def fails(x, y):
        return tf.matmul(x, y)

    with tf.device(GPU), pytest.raises(tf.errors.InvalidArgumentError, match=r"placement\.py:\d+"):
        fails(tf.ones([2, 3]), tf.ones([2, 3]))


def test_tensorflow_moves_work_in_a_dataset_to_the_cpu() -> None:
    """Functions of a dataset run on the CPU, where the op has its kernel."""
    counted = Counted()
    for one in tf.data.Dataset.from_tensors(X).map(placed):
        np.testing.assert_allclose(one, EXPECTED, rtol=1e-5)
    assert sum(counted()) <= 1
