"""Other sizes, dtypes and values for the inputs of a call.

Not for: what is done with them (bodies.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

_SIZES = (0, 1, 2, 3, 5, 8, 16, 17, 33, 65)
_FLOATS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
_INTEGERS = (np.int32, np.int64, np.int8, np.uint8)
_MOST = 1 << 13  # elements of an input


def changed(inputs: Sequence[Array], random: np.random.Generator) -> tuple[list[Array], str]:
    """The inputs, some of them changed, and what was changed."""
    arrays, label = list(inputs), []
    if random.random() < 0.5:
        arrays = _resized(arrays, random)
        label.append("resized")
    if random.random() < 0.4:
        arrays = _converted(arrays, random)
        label.append("converted")
    if random.random() < 0.7:
        name = str(random.choice(list(_VALUES)))
        arrays = [_with_values(x, name, random) for x in arrays]
        label.append(name)
    return arrays, ", ".join(label) or "as it is"


def _resized(arrays: Sequence[Array], random: np.random.Generator) -> list[Array]:
    """Dims of one size become another size in all inputs, so that they still fit."""
    sizes = sorted({dim for x in arrays for dim in x.shape if dim})
    other = {size: int(random.choice(_SIZES)) if random.random() < 0.5 else size for size in sizes}
    taken = []
    for array in arrays:
        found = array
        for axis, dim in enumerate(array.shape):
            if dim:
                found = np.take(found, np.arange(other[dim]) % dim, axis)
        taken.append(found)
    return taken if max(x.size for x in taken) <= _MOST else list(arrays)


def _converted(arrays: Sequence[Array], random: np.random.Generator) -> list[Array]:
    """All floating inputs, and all integers, in one other dtype."""
    floating = _FLOATS[random.integers(len(_FLOATS))]
    whole = _INTEGERS[random.integers(len(_INTEGERS))] if random.random() < 0.3 else None
    kinds = []
    for array in arrays:
        if _is_floating(array):
            kinds.append(array.astype(floating))
        else:
            is_whole = array.dtype.kind in "iu" and whole is not None
            kinds.append(array.astype(whole) if is_whole else array)
    return kinds


def _is_floating(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16


def _with_values(array: Array, name: str, random: np.random.Generator) -> Array:
    if _is_floating(array):
        with np.errstate(over="ignore"):
            return np.asarray(_VALUES[name](array.shape, array.dtype, random)).astype(array.dtype)
    if array.dtype.kind in "iu" and name == "extreme":
        kind = np.iinfo(array.dtype)
        return random.choice(np.array([kind.min, kind.max, 0, 1], array.dtype), array.shape)
    return array


def _specials(shape: Any, dtype: Any, random: np.random.Generator) -> Array:
    ordinary = random.standard_normal(shape)
    kind = ml_dtypes.finfo(dtype)
    few = [np.nan, np.inf, -np.inf, -0.0, 0.0, float(kind.tiny) / 4]
    special = random.choice(few, shape) if random.random() < 0.5 else random.choice(few)
    return np.where(random.random(shape) < random.choice([0.05, 0.3, 1.0]), special, ordinary)


def _extreme(shape: Any, dtype: Any, random: np.random.Generator) -> Array:
    kind = ml_dtypes.finfo(dtype)
    ends = [float(kind.max), float(kind.tiny), float(kind.max) ** 0.5, 1.0, float(kind.eps)]
    return np.asarray(random.choice([*ends, *(-x for x in ends)], shape))


def _scaled(shape: Any, dtype: Any, random: np.random.Generator) -> Array:
    kind = ml_dtypes.finfo(dtype)
    scale = random.choice([float(kind.max) ** 0.25, float(kind.tiny) ** 0.25, 30.0, 1e-3])
    return np.asarray(random.standard_normal(shape) * scale)


_VALUES: dict[str, Callable[..., Array]] = {
    "ordinary": lambda shape, _, random: random.standard_normal(shape),
    "positive": lambda shape, _, random: random.uniform(0.1, 2, shape),
    "whole numbers": lambda shape, _, random: random.integers(-3, 4, shape).astype(float),
    "one number": lambda shape, _, random: np.full(shape, random.choice([0.0, 1.0, -2.0, 0.5])),
    "scaled": _scaled,
    "specials": _specials,
    "extreme": _extreme,
}
