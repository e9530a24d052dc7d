"""16-bit results that are cut off are told from those that are rounded to nearest."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from composite.reference.directed import Sides

DTYPES: list[Any] = [np.float16, ml_dtypes.bfloat16]


def is_one_sided(*runs: tuple[np.ndarray, np.ndarray, np.ndarray]) -> bool:
    """Of results, the exact numbers, and TensorFlow's."""
    sides = Sides()
    for run in runs:
        sides.add(*run)
    return sides.is_one_sided


def exact(size: int = 2000) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(size)


def cut(x: np.ndarray, dtype: Any) -> np.ndarray:
    """Towards zero."""
    nearest = x.astype(dtype)
    beyond = np.abs(nearest.astype(np.float64)) > np.abs(x)
    return np.where(beyond, np.nextafter(nearest, dtype(0)), nearest).astype(dtype)


def raised(x: np.ndarray, dtype: Any) -> np.ndarray:
    """Towards infinity."""
    nearest = x.astype(dtype)
    below = nearest.astype(np.float64) < x
    return np.where(below, np.nextafter(nearest, dtype(np.inf)), nearest).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [cut, raised])
def test_results_of_one_side_are_told(dtype: Any, wrong: Any) -> None:
    x = exact()
    assert is_one_sided((wrong(x, dtype), x, x.astype(dtype)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_that_are_rounded_to_nearest_are_not(dtype: Any) -> None:
    x = exact()
    noisy = (x * (1 + exact() * 1e-7)).astype(dtype)
    assert not is_one_sided((noisy, x, x.astype(dtype)))
    assert not is_one_sided((x.astype(dtype), x, cut(x, dtype)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_says_nothing_about_a_side(dtype: Any) -> None:
    """Few numbers, numbers that the dtype has, and a bias that TensorFlow's result has as well."""
    x = exact()
    few, held = np.tile(x[:100], 9), x.astype(dtype).astype(np.float64)
    assert not is_one_sided((cut(few, dtype), few, few.astype(dtype)))
    assert not is_one_sided((cut(held, dtype), held, held.astype(dtype)))
    assert not is_one_sided((cut(x, dtype), x, cut(x, dtype)))
    assert not is_one_sided((x.astype(np.float32), x, x.astype(np.float32)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_runs_of_few_numbers_are_told_together(dtype: Any) -> None:
    parts = np.split(exact(), 40)
    assert is_one_sided(*((cut(x, dtype), x, x.astype(dtype)) for x in parts))
    assert not is_one_sided(*((x.astype(dtype), x, x.astype(dtype)) for x in parts))
