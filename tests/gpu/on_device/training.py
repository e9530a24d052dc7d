"""Gradients and training steps of composites on GPUs: forward, saving forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite
from tests.gpu.devices import GPU, OTHER_GPU, Devices

pytestmark = pytest.mark.usefixtures("devices")


@Composite("GpuTrained", inputs=["x: float", "w: float"], outputs=["y: float"])
def trained(x, w):
    """Keeps values for its backward."""
    return tf.tanh(tf.matmul(x, w)) * tf.exp(x)


@Composite("GpuTrainedOnBoth", inputs=["x: float", "n: int32"], outputs=["y: float"])
def on_both(x, n):
    """Half of it, and of its gradient, has no kernels on the devices; an int32 goes to both."""
    return tf.reshape(tf.math.lgamma(x * 2.0) * x, tf.stack([n, -1]))


X = np.arange(1, 5, dtype=np.float32).reshape(2, 2) * 0.3
W = X * 0.1


def gradient(op: Any, *inputs: Any, device: str | None = GPU) -> Any:
    """Of the sum of squares by the first input."""
    with tf.device(device), tf.GradientTape() as tape:
        tape.watch(inputs[0])
        y = tf.reduce_sum(op(*inputs) ** 2)
    return tape.gradient(y, inputs[0])


def second(op: Any, *inputs: Any, device: str | None = GPU) -> Any:
    with tf.device(device), tf.GradientTape() as tape:
        tape.watch(inputs[0])
        y = tf.reduce_sum(gradient(op, *inputs, device=device))
    return tape.gradient(y, inputs[0])


CASES = pytest.mark.parametrize(
    ("op", "inputs"), [(trained, (X, W)), (on_both, (X, 4))], ids=["trained", "on_both"]
)


@CASES
@pytest.mark.parametrize("order", [gradient, second])
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("device", [GPU, None], ids=["placed", "unplaced"])
def test_gradients(op: Any, inputs: Any, order: Any, in_function: bool, device: str | None) -> None:
    tensors = [tf.constant(one) for one in inputs]
    with tf.device("/CPU:0"):
        expected = order(op.python_function, *tensors, device="/CPU:0")

    def compute(*tensors: Any) -> Any:
        return order(op, *tensors, device=device)

    computed = (tf.function(compute) if in_function else compute)(*tensors)
    np.testing.assert_allclose(computed, expected, rtol=2e-5, atol=1e-5)


def step(w: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(trained(x, w) ** 2)
    change = tape.gradient(loss, w)
    w.assign(w - 0.1 * change)
    return loss


def steps_by_hand(x: Any, count: int) -> tuple[list[float], Any]:
    w, losses = tf.constant(W), []
    for _ in range(count):
        with tf.device("/CPU:0"), tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_sum(trained.python_function(x, w) ** 2)
        losses.append(float(loss))
        w -= 0.1 * tape.gradient(loss, w)
    return losses, w


def test_a_training_step(devices: Devices) -> None:
    with tf.device(GPU):
        w = tf.Variable(W)
    assert "GPU:0" in w.device
    before = devices.launches("MatMul")
    train = tf.function(step)
    losses = [float(train(w, tf.constant(X))) for _ in range(3)]
    expected, final = steps_by_hand(tf.constant(X), 3)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(w, final, rtol=1e-5)
    assert devices.launches("MatMul") > before


@pytest.mark.parametrize("reduction", [tf.distribute.ReductionToOneDevice, lambda: None])
def test_a_mirrored_strategy(devices: Devices, reduction: Any) -> None:
    strategy = tf.distribute.MirroredStrategy([GPU, OTHER_GPU], cross_device_ops=reduction())
    with strategy.scope():
        w = tf.Variable(W, aggregation=tf.VariableAggregation.MEAN)

    def replica() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(trained(tf.constant(X), w.read_value()) ** 2)
        change = tape.gradient(loss, w)
        w.assign(w.read_value() - 0.1 * change)
        return loss

    @tf.function
    def train() -> Any:
        return strategy.experimental_local_results(strategy.run(replica))

    before = [devices.launches("MatMul", number) for number in (0, 1)]
    losses = [[float(one) for one in train()] for _ in range(2)]
    expected, final = steps_by_hand(tf.constant(X), 2)
    np.testing.assert_allclose(losses, [[one, one] for one in expected], rtol=1e-5)
    for one in strategy.experimental_local_results(w):
        np.testing.assert_allclose(one, final, rtol=1e-5)
    assert all(devices.launches("MatMul", i) > one for i, one in enumerate(before))
