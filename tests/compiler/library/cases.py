"""Inputs of the cases: made from a text such as "float32[3, 4]"."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tensorflow as tf


def made(spec: Any, seed: int = 0) -> Any:
    """Return an input: numbers around zero of a dtype and shape, or the array that is given."""
    if not isinstance(spec, str):
        return spec
    dtype, shape = re.fullmatch(r"(\w+)(\[.*\])", spec).groups()  # type: ignore[union-attr]
    random = np.random.default_rng(seed)
    dims = eval(shape)
    type_ = tf.as_dtype(dtype)
    if type_.is_bool:
        return random.integers(0, 2, dims).astype(bool)
    if type_.is_integer:
        return random.integers(0 if type_.is_unsigned else -5, 6, dims).astype(dtype)
    numbers = random.standard_normal(dims)
    if type_.is_complex:
        numbers = numbers + 1j * random.standard_normal(dims)
    return np.asarray(numbers).astype(type_.as_numpy_dtype)
