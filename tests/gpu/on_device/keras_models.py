"""Keras models with composites on GPUs: `fit` and `predict`, mixed precision, and XLA."""

from __future__ import annotations

import os
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from tests.gpu.devices import GPU, IS_REAL, Devices, with_kernels
from tests.unmeasured import kernels_serve

os.environ |= with_kernels()

pytestmark = pytest.mark.usefixtures("devices")


@Composite(
    "GpuKerasGate",
    inputs=["x: T", "b: T"],
    outputs=["y: T"],
    derived_attrs=["T: {float, half, bfloat16}"],
)
def gate(x, b):
    return tf.tanh(x + b) * x


class Gated(keras.layers.Layer):
    """An op in the call of a layer that somebody wrote."""

    def build(self, shape: Any) -> None:
        self.shift = self.add_weight(shape=(shape[-1],), initializer="ones", name="shift")

    def call(self, x: Any) -> Any:
        return gate(x, tf.cast(self.shift, x.dtype))


class Descent(keras.optimizers.SGD):
    """Assigns what Keras adds.

    For a device of a plugin that brings no kernel for it, TensorFlow takes one that adds on the
    host, to memory of the device.
    """

    def assign_sub(self, variable: Any, value: Any) -> None:
        variable.assign(variable - value)


X = np.linspace(-1, 1, 60, dtype=np.float32).reshape(12, 5)


def model(policy: str, *, jit_compile: bool | str = False) -> Any:
    """Two calls of the op, between products, with the same first weights each time."""
    keras.utils.set_random_seed(3)
    shift = {"b": {"shape": [("x", -1)], "initializer": "ones"}}
    x = keras.Input((5,))
    y = keras.layers.Dense(8, dtype=policy)(x)
    y = Gated(dtype=policy)(y)
    y = gate.as_layer(shift, dtype=policy)(y)
    made = keras.Model(x, keras.layers.Dense(1, dtype="float32")(y))
    made.compile(Descent(0.05), "mse", jit_compile=jit_compile)
    return made


def trained(policy: str, device: str) -> tuple[Any, list[np.ndarray]]:
    """Losses, weights and predictions after two epochs on a device."""
    with tf.device(device):
        made = model(policy)
        history = made.fit(X, X[:, :1], epochs=2, batch_size=4, shuffle=False, verbose=0)
        predicted = made.predict(X, batch_size=12, verbose=0)
    assert all(device in v.value.device for v in made.trainable_variables)
    return made, [np.array(history.history["loss"]), *made.get_weights(), predicted]


# One rounding of the dtype that the layers compute in, some ops deep.
POLICIES = {"float32": 1e-5, "mixed_bfloat16": 3e-2, "mixed_float16": 4e-3}


@pytest.mark.usefixtures("float32_is_not_rounded")
@pytest.mark.parametrize("policy", POLICIES)
def test_a_model_is_trained_and_predicts(devices: Devices, policy: str) -> None:
    """On the expansion, and when the kernels for the device have come, with these."""
    _, wanted = trained(policy, "CPU:0")
    with kernels_serve():
        for has_kernels in (False, True):
            before, launches = composite.stats(), devices.kernels()
            made, found = trained(policy, GPU[1:])
            for one, right in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, right, rtol=POLICIES[policy], atol=POLICIES[policy])
            if not has_kernels:
                assert composite.wait(100)
        assert {layer.compute_dtype for layer in made.layers[2:4]} == {
            policy.removeprefix("mixed_")
        }
        assert (composite.stats() - before)["kernel_launches"] > 0
        assert IS_REAL or devices.kernels() > launches


@pytest.mark.usefixtures("float32_is_not_rounded")
@pytest.mark.parametrize("jit_compile", [True, "auto"])
def test_xla_is_as_for_ops_of_tensorflow(jit_compile: bool | str) -> None:
    """A device of a plugin has no compiler: TensorFlow says so, whatever the ops are."""
    with tf.device(GPU):
        made = model("float32", jit_compile=jit_compile)
        if IS_REAL:
            compiled = made.predict(X, verbose=0)
            made.compile(Descent(0.05), "mse", jit_compile=False)
            np.testing.assert_allclose(compiled, made.predict(X, verbose=0), rtol=1e-5, atol=1e-6)
            return
        with pytest.raises(tf.errors.UnimplementedError, match="Could not find compiler for platf"):
            made.predict(X, verbose=0)
        made.compile(Descent(0.05), "mse", jit_compile=False)  # what docs/gpu.md says
        assert np.isfinite(made.predict(X, verbose=0)).all()


@pytest.mark.parametrize("op", [gate, gate.python_function], ids=["composite", "stock"])
def test_a_function_for_xla(op: Any) -> None:
    """Is refused on the device of a plugin, and compiled elsewhere."""
    compiled = tf.function(op, jit_compile=True, autograph=False)
    if not IS_REAL:
        refused = pytest.raises(tf.errors.UnimplementedError, match="Could not find comp")
        with tf.device(GPU), refused:
            compiled(tf.constant(X), tf.ones([5]))
    with tf.device(GPU if IS_REAL else "/CPU:0"):
        found = compiled(tf.constant(X), tf.ones([5]))
    np.testing.assert_allclose(found, np.tanh(X + 1) * X, rtol=1e-5)


def test_clusters_of_xla_leave_nodes_on_the_device() -> None:
    """With clusters that TensorFlow chooses itself, what has no compiler is not in one."""
    before = tf.config.optimizer.get_jit()
    tf.config.optimizer.set_jit("autoclustering")
    try:
        with tf.device(GPU):
            found = tf.function(lambda x, b: gate(x, b) * 2.0)(tf.constant(X), tf.ones([5]))
    finally:
        tf.config.optimizer.set_jit(before or False)
    np.testing.assert_allclose(found, np.tanh(X + 1) * X * 2, rtol=1e-5)
