"""The dtypes of tensors, and in which of them values are computed."""

from __future__ import annotations

import numpy as np

# Integers that are moved, compared and cast; TensorFlow's models seldom compute in them.
STORED_INTEGERS = ("int8", "int16", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "bool", *STORED_INTEGERS)
NARROW_FLOATS = ("float16", "bfloat16")
ITEM_SIZE = {
    "float64": 8,
    "int64": 8,
    "float32": 4,
    "int32": 4,
    "float16": 2,
    "bfloat16": 2,
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
}


def fits(dtype: str, zero: int, other: str) -> bool:
    """Return whether all integers of a dtype, less a zero point, are in the range of another."""
    own, most = np.iinfo(dtype), np.iinfo(other)
    return bool(most.min <= own.min - zero and own.max - zero <= most.max)


def compute_dtype(dtype: str) -> str:
    """Return the dtype in which values of ``dtype`` are computed: 16-bit floats in float32."""
    return "float32" if dtype in NARROW_FLOATS else dtype
