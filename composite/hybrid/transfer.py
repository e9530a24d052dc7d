"""Tensors between TVM and TensorFlow, which share memory where they can.

A TensorFlow tensor that TVM has no dtype for, a string for one, passes through TVM as an Opaque.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_ALIGNMENT = 64  # bytes: TensorFlow's kernels rely on it and end the process otherwise

_SHARED = frozenset(
    {
        *(
            tf.bool,
            tf.int8,
            tf.int16,
            tf.int32,
            tf.int64,
            tf.uint8,
            tf.uint16,
            tf.uint32,
            tf.uint64,
        ),
        *(tf.half, tf.bfloat16, tf.float32, tf.float64),
    }
)


class Opaque:
    """A TensorFlow tensor that TVM passes on as it is."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        """Hold a tensor, of any dtype."""
        self.tensor = tensor


def is_shared(dtype: tf.DType) -> bool:
    """Whether TVM has tensors of a dtype."""
    return dtype in _SHARED


def to_tvm(tensor: Any) -> Any:
    """An eager tensor for TVM: the same memory, or an Opaque."""
    import tvm_ffi

    if not is_shared(tensor.dtype):
        return Opaque(tensor)
    return tvm_ffi.from_dlpack(tf.experimental.dlpack.to_dlpack(on_cpu(tensor)))


def on_cpu(tensor: Any) -> Any:
    """An eager tensor itself, or a copy of one that is on another device."""
    if "CPU" in tensor.device:
        return tensor
    with tf.device("CPU:0"):
        return tf.identity(tensor)


def to_tensorflow(value: Any) -> Any:
    """An eager tensor of what TVM has: the same memory where it is aligned and has no gaps."""
    if isinstance(value, Opaque):
        return value.tensor
    aligned = value.data_ptr() % _ALIGNMENT == 0
    if not aligned or not value.is_contiguous():
        return tf.constant(value.numpy())
    return tf.experimental.dlpack.from_dlpack(value.__dlpack__())
