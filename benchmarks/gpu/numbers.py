"""Arrays as a GPU has them: dtypes by name, bfloat16 as the upper halves of float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def stored(array: Array, dtype: str) -> Array:
    """An input as it lies in memory: floats rounded to a dtype, all else as it is."""
    if array.dtype.kind != "f":
        return np.asarray(array, order="C")
    with np.errstate(over="ignore"):
        if dtype != "bfloat16":
            return np.asarray(array.astype(dtype), order="C")
        bits = np.asarray(array.astype(np.float32), order="C").view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(array), 0x7FC0, rounded).astype(np.uint16)


def widened(array: Array, dtype: str) -> Array:
    """What lies in memory, floats as float64."""
    if dtype == "bfloat16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def memory_dtype(dtype: str) -> str:
    """The dtype of an array that holds elements of a dtype."""
    return "uint16" if dtype == "bfloat16" else dtype


def worst(found: Array, exact: Array) -> float:
    """The largest error, of 1 and of the exact value; infinite where NaN or infinity differ."""
    if found.dtype.kind != "f":
        return 0.0 if np.array_equal(found, exact) else float("inf")
    same = (found == exact) | (np.isnan(found) & np.isnan(exact))
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(found - exact) / np.maximum(1.0, np.abs(exact))
    error = np.where(same, 0.0, np.where(np.isfinite(error), error, np.inf))
    return float(error.max(initial=0.0))
