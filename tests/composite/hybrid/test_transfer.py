"""Tensors between TVM and TensorFlow: shared where they can be, copied where they must be."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from composite.hybrid.transfer import Opaque, is_shared, to_tensorflow, to_tvm

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
]


@pytest.mark.parametrize("name", DTYPES)
def test_memory_is_shared(name: str) -> None:
    for shape in ([2, 3], [0, 3], []):
        tensor = tf.cast(tf.ones(shape), name)
        passed = to_tvm(tensor)
        back = to_tensorflow(passed)
        assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
        assert tf.reduce_all(back == tensor)
        if tensor.shape.num_elements():
            assert to_tvm(back).data_ptr() == passed.data_ptr()


def test_what_tvm_has_no_dtype_for_passes_as_it_is() -> None:
    for tensor in (tf.constant(["a"]), tf.constant(1j)):
        assert not is_shared(tensor.dtype)
        passed = to_tvm(tensor)
        assert isinstance(passed, Opaque)
        assert to_tensorflow(passed) is tensor


def test_memory_that_tensorflow_does_not_take_is_copied() -> None:
    import tvm_ffi

    numbers = np.arange(66, dtype=np.float32)
    for part in (numbers[1:65], numbers[2:66]):  # one of them at least is not aligned
        tensor = to_tensorflow(tvm_ffi.from_dlpack(part))
        np.testing.assert_array_equal(tensor[:3] * 2.0, part[:3] * 2.0)
