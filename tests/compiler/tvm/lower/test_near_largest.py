"""Gradients of largest elements in volumes, of elements that TensorFlow takes for equal."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf


def gradient(window: tuple[int, ...], strides: tuple[int, ...], padding: str) -> Any:
    how = {"ksize": [1, *window, 1], "strides": [1, *strides, 1], "padding": padding}

    def function(x: Any, dy: Any) -> Any:
        y = tf.raw_ops.MaxPool3D(input=x, **how)
        return tf.raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y, grad=dy, **how)

    return function


def operands(
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    size: tuple[int, ...],
    scale: float,
) -> list[np.ndarray]:
    random = np.random.default_rng(5)
    x = (random.standard_normal((2, *size, 3)) * scale).astype(np.float32)
    how = {"ksize": [1, *window, 1], "strides": [1, *strides, 1], "padding": padding}
    y = tf.raw_ops.MaxPool3D(input=x, **how)
    return [x, random.uniform(-1, 1, y.shape).astype(np.float32)]


@pytest.mark.parametrize("scale", [1.0, 1e-5, 1e-10])
@pytest.mark.parametrize(
    ("window", "strides", "padding"),
    [
        ((2, 2, 2), (2, 2, 2), "VALID"),
        ((3, 3, 3), (2, 2, 2), "SAME"),
        ((1, 2, 3), (2, 1, 2), "SAME"),
        ((2, 1, 3), (3, 2, 3), "VALID"),
    ],
)
def test_elements_near_the_largest(
    compiler: Any, window: Any, strides: Any, padding: str, scale: float
) -> None:
    arrays = operands(window, strides, padding, (5, 6, 7), scale)
    compiler.compare(gradient(window, strides, padding), *arrays, rtol=1e-6, atol=1e-6)


def test_infinities_are_given_nothing(compiler: Any) -> None:
    window = strides = (2, 2, 2)
    x, dy = operands(window, strides, "SAME", (4, 4, 4), 1.0)
    x[0, 1, 1, 1, 0], x[1, 2, 2, 2, 1] = np.inf, -np.inf
    compiler.compare(gradient(window, strides, "SAME"), x, dy, rtol=1e-6, atol=1e-6)


def test_bfloat16(compiler: Any) -> None:
    window = strides = (2, 2, 2)
    arrays = operands(window, strides, "SAME", (4, 5, 4), 1e-4)
    narrow = [x.astype(ml_dtypes.bfloat16) for x in arrays]
    compiler.compare(gradient(window, strides, "SAME"), *narrow)


def test_many_windows_around_an_element(compiler: Any) -> None:
    """The largest ones are found again."""
    window, strides = (3, 3, 3), (1, 1, 1)
    arrays = operands(window, strides, "SAME", (4, 5, 4), 1.0)
    compiler.compare(gradient(window, strides, "SAME"), *arrays, rtol=1e-5, atol=1e-5)
