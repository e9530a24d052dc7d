"""Batch normalization and its gradient against the formula in float64, and against TF."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from tests.compiler.tvm.conftest import check

EPSILON = 1e-3
SHAPES = [(2, 5, 3, 8), (1, 1, 1, 3), (3, 4, 4, 17)]


def operands(shape: tuple[int, ...], dtype: Any = np.float32) -> list[np.ndarray]:
    random = np.random.default_rng(sum(shape))
    x = (random.standard_normal(shape) * 2 + 1).astype(dtype)
    return [x, *(random.uniform(0.5, 2, shape[-1:]).astype(np.float32) for _ in range(4))]


def inference(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    y = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=offset, mean=mean, variance=variance, epsilon=EPSILON,
        is_training=False,
    )  # fmt: skip
    return y[:3]


def training(x: Any, scale: Any, offset: Any) -> Any:
    y = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=offset, mean=[], variance=[], epsilon=EPSILON, is_training=True
    )
    return y[:5]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_inference(compiler: Any, shape: tuple[int, ...], dtype: Any) -> None:
    x, scale, offset, mean, variance = operands(shape, dtype)
    exact = x.astype(np.float64) - mean
    exact = exact * scale / np.sqrt(variance.astype(np.float64) + EPSILON) + offset
    loaded = compiler.compile(inference, [x, scale, offset, mean, variance])
    epsilon = float(ml_dtypes.finfo(dtype).eps)
    expected = [exact.astype(dtype), mean, variance]
    check(loaded, [x, scale, offset, mean, variance], expected, rtol=4 * epsilon, atol=4 * epsilon)


@pytest.mark.parametrize("batch", [None, "s0"])
@pytest.mark.parametrize("shape", SHAPES)
def test_training(compiler: Any, shape: tuple[int, ...], batch: str | None) -> None:
    arrays = operands(shape)[:3]
    shapes = [(batch or shape[0], *shape[1:]), shape[-1:], shape[-1:]]
    compiler.compare(training, *arrays, shapes=shapes, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bit_images_with_float32_parameters(compiler: Any, dtype: Any) -> None:
    """All that is of a channel is float32, the gradients of scale and offset included."""
    x, scale, offset, *_ = operands((2, 5, 3, 8), dtype)
    dy = np.random.default_rng(5).standard_normal(x.shape).astype(dtype)

    def function(dy: Any, x: Any, scale: Any, offset: Any) -> Any:
        y, mean, variance = training(x, scale, offset)[:3]
        moments = tf.nn.moments(tf.cast(x, tf.float32), [0, 1, 2])
        return y, mean, variance, *tf.raw_ops.FusedBatchNormGradV3(
            y_backprop=dy, x=x, scale=scale, reserve_space_1=moments[0],
            reserve_space_2=moments[1], reserve_space_3=0.0, epsilon=EPSILON,
        )[:3]  # fmt: skip

    epsilon = float(ml_dtypes.finfo(dtype).eps)
    compiler.compare(function, dy, x, scale, offset, rtol=4 * epsilon, atol=4 * epsilon)


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradient(compiler: Any, shape: tuple[int, ...], is_training: bool) -> None:
    x, scale, _, mean, variance = operands(shape)
    dy = np.random.default_rng(5).standard_normal(shape).astype(np.float32)

    def function(dy: Any, x: Any, scale: Any, mean: Any, variance: Any) -> Any:
        gradient = tf.raw_ops.FusedBatchNormGradV3(
            y_backprop=dy, x=x, scale=scale, reserve_space_1=mean, reserve_space_2=variance,
            reserve_space_3=0.0, epsilon=EPSILON, is_training=is_training,
        )  # fmt: skip
        return list(gradient)

    if is_training:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    compiler.compare(function, dy, x, scale, mean, variance, rtol=1e-4, atol=1e-4)


def test_it_joins_the_convolution_before_it(compiler: Any) -> None:
    x, *channels = operands((2, 5, 3, 8))
    kernel = np.random.default_rng(0).uniform(-1, 1, (3, 3, 8, 8)).astype(np.float32)

    def function(x: Any, f: Any, *channels: Any) -> Any:
        return tf.nn.relu(inference(tf.nn.conv2d(x, f, 1, "SAME"), *channels)[0])

    loaded = compiler.compare(function, x, kernel, *channels, rtol=1e-4, atol=1e-4)
    assert loaded.kernel.strategy.endswith("convolution")


def test_moving_averages_are_not_covered(compiler: Any) -> None:
    arrays = operands((2, 3, 3, 4))
    with pytest.raises(backend.NotCovered, match="exponential_avg_factor"):
        compiler.compile(
            lambda x, s, o, m, v: (
                tf.raw_ops.FusedBatchNormV3(
                    x=x, scale=s, offset=o, mean=m, variance=v, exponential_avg_factor=0.5
                ).y
            ),
            arrays,
        )
