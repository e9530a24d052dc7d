"""Samples whose results would leave the range of their numbers are milder ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.kernels.samples import Sample, Samples
from tests.compiler.tvm.conftest import library_of

SHAPE = (6, 8)
TINY = float(np.finfo(np.float32).tiny)


def of_small(factors: int, dtype: Any = tf.float32) -> Sample:
    """The sample of small inputs of a product of so many of them."""

    def body(x: Any) -> Any:
        result = x
        for _ in range(factors - 1):
            result = result * x
        return result

    library = library_of(body, [tf.TensorSpec(SHAPE, dtype)])
    samples = Samples(lambda _: library, [[SHAPE]])
    return next(sample for sample in samples if sample.draw.kind == "small inputs")


@pytest.mark.parametrize("factors", [2, 3])
def test_results_are_small(factors: int) -> None:
    sample = of_small(factors)
    assert np.abs(sample.inputs[0]).max() < 1e-8
    assert np.abs(sample.references[0].exact).max() >= TINY


@pytest.mark.parametrize("factors", [5, 9, 16])
def test_results_are_normal_numbers(factors: int) -> None:
    sample = of_small(factors)
    assert np.abs(sample.references[0].exact).max() >= TINY
    assert np.abs(sample.inputs[0]).max() < 0.1


def test_results_that_are_zero_stay() -> None:
    library = library_of(lambda x: x * 0.0, [tf.TensorSpec(SHAPE)])
    small = [s for s in Samples(lambda _: library, [[SHAPE]]) if s.draw.kind == "small inputs"]
    assert np.abs(small[0].inputs[0]).max() < 1e-8
