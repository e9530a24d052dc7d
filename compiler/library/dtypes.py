"""Groups of dtypes that the library tells apart, as TensorFlow's own functions do.

Not for: conversions (shaping.py has tf.cast).
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

FLOATING = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
COMPLEX = (tf.complex64, tf.complex128)
INTEGER = (
    *(tf.int8, tf.int16, tf.int32, tf.int64),
    *(tf.uint8, tf.uint16, tf.uint32, tf.uint64),
)


def whole(number: Any) -> Any:
    """Return integers as a tensor of int32, whatever theirs are; TypeError for other numbers."""
    number = tf.convert_to_tensor(number)
    if number.dtype not in INTEGER:
        raise TypeError(f"an integer is needed, not {number.dtype}")
    return tf.cast(number, tf.int32)


def real_dtype(dtype: Any) -> Any:
    """Return the dtype of the parts of complex numbers; another dtype is itself."""
    if dtype == tf.complex64:
        return tf.float32
    if dtype == tf.complex128:
        return tf.float64
    return dtype
