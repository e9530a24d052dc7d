"""Layers with dilations train with kernels."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import composite
from tests.unmeasured import kernels_serve

layers = keras.layers
STACKS = {
    "images": (
        (13, 11, 5),
        lambda: [layers.Conv2D(8, 3, dilation_rate=2), layers.Conv2D(7, 3, dilation_rate=(2, 1))],
    ),
    "volumes": ((7, 8, 9, 3), lambda: [layers.Conv3D(4, 2, dilation_rate=2, padding="same")]),
}


def trained(shape: tuple[int, ...], stack: Any) -> list[np.ndarray]:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input(shape), *stack(), layers.Flatten(), layers.Dense(3)])
    model.compile("sgd", "mse", jit_compile=False)
    x = np.random.default_rng(1).standard_normal((4, *shape)).astype(np.float32)
    for _ in range(3):
        model.train_on_batch(x, np.ones((4, 3), np.float32))
        composite.wait(60)
    return [np.asarray(weights) for weights in model.get_weights()]


@pytest.mark.slow
@pytest.mark.parametrize("case", STACKS.values(), ids=STACKS.keys())
def test_dilated_convolutions_train_with_kernels(case: Any) -> None:
    wanted = trained(*case)
    with kernels_serve(), composite.options(regions=True):
        before = composite.stats()
        found = trained(*case)
        counts = composite.stats() - before
    assert counts["regions"] > 0
    assert counts["answered"] == counts["requests"] > 0
    assert counts["kernel_launches"] > 0
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
