"""Loops on GPUs: recurrent layers as one launch, whose blocks wait for each other."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from examples.lstm import ops
from tests.gpu.devices import GPU, IS_REAL, Devices, with_kernels
from tests.unmeasured import kernels_serve

os.environ |= with_kernels()

pytestmark = pytest.mark.usefixtures("float32_is_not_rounded")


def numbers(batch: int, steps: int, gates: int, units: int = 12) -> list[np.ndarray]:
    random = np.random.default_rng(batch)
    shapes = [(batch, steps, 5), (batch, units), (5, gates * units), (units, gates * units)]
    return [random.uniform(-0.5, 0.5, shape).astype(np.float32) for shape in shapes]


def of_lstm(batch: int, steps: int) -> list[np.ndarray]:
    x, h, k, r = numbers(batch, steps, 4)
    return [x, h, h * 2.0, k, r, k[0]]


def of_gru(batch: int, steps: int) -> list[np.ndarray]:
    x, h, k, r = numbers(batch, steps, 3)
    return [x, h, k, r, k[:2]]


def layer(op: Any, arrays: list[Any], *, gradients: bool, **attrs: Any) -> list[Any]:
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        results = tf.nest.flatten(op(*arrays, [], **attrs))
        total = tf.add_n([tf.reduce_sum(y * y) for y in results])
    return tape.gradient(total, arrays) if gradients else results


def exact(op: Any, arrays: list[np.ndarray], *, gradients: bool) -> list[Any]:
    values = {spec.name: spec.default for spec in op.schema.attrs} | {"return_sequences": True}

    @tf.function
    def body(*inputs: Any) -> Any:
        return op.python_function(*inputs, [], **values)

    with tf.device("/CPU:0"):
        wide = [tf.constant(a.astype(np.float64)) for a in arrays]
        return layer(lambda *given: body(*given[:-1]), wide, gradients=gradients)


def check(op: Any, arrays: list[np.ndarray], *, gradients: bool = False) -> None:
    @tf.function
    def step(*inputs: Any) -> Any:
        with tf.device(GPU):
            return layer(op, [*inputs], gradients=gradients, return_sequences=True)

    found = step(*map(tf.constant, arrays))
    for one, right in zip(found, exact(op, arrays, gradients=gradients), strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-4, atol=1e-5)


LAYERS = pytest.mark.parametrize(("op", "draw"), [(ops.lstm, of_lstm), (ops.gru, of_gru)])


@LAYERS
def test_a_layer(devices: Devices, op: Any, draw: Any) -> None:
    """The kernel of sizes that vary serves those that come later."""
    with kernels_serve():
        for size in ((3, 4), (1, 6), (5, 1), (2, 7)):
            check(op, draw(*size))
            assert composite.wait(100)
        before, launches = composite.stats(), devices.kernels()
        for size in ((4, 9), (3, 0)):
            check(op, draw(*size))
    grown = composite.stats() - before
    assert (grown["kernel_launches"], grown["expansion_runs"]) == (2, 0)
    assert IS_REAL or devices.kernels() - launches >= 4  # each has one that zeroes the counter
    with tf.device(GPU):
        inputs = map(tf.constant, draw(4, 9))
        explanation = composite.explain(op, *inputs, [], return_sequences=True)
    assert "recurrence" in explanation.details["strategy"]


@LAYERS
def test_its_gradient(op: Any, draw: Any) -> None:
    """The loop that goes back through the steps, too."""
    with kernels_serve():
        check(op, draw(3, 4), gradients=True)
        assert composite.wait(100)
        before = composite.stats()
        check(op, draw(3, 4), gradients=True)
    grown = composite.stats() - before
    assert (grown["kernel_launches"], grown["expansion_runs"]) == (2, 0)


def test_more_blocks_than_the_device_runs_at_a_time(devices: Devices) -> None:
    """The driver refuses the launch, and the expansion runs; nothing waits for ever."""
    arrays = of_lstm(40, 3)
    with kernels_serve():
        check(ops.lstm, arrays)
        assert composite.wait(100)
        before = composite.stats()
        with devices.allowing(1):
            check(ops.lstm, arrays)
            with (
                tf.device(GPU),
                composite.options(backend="tvm"),
                pytest.raises(
                    tf.errors.InternalError,
                    match=r"cuLaunchCooperativeKernel answers "
                    r"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE \(720\)",
                ),
            ):
                ops.lstm(*map(tf.constant, arrays), [], return_sequences=True)
        check(ops.lstm, arrays)
    grown = composite.stats() - before
    assert (grown["kernel_launches"], grown["expansion_runs"]) == (3, 1)
