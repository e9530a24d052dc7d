"""tf.TensorArray: tensors of one dtype, written and read one by one, as a list in a variant tensor.

An array is the list [handle, [dtype, shape of its elements, whether it grows]]; a write gives a new
handle.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


@public("tf.TensorArray", gives="tf.TensorArray")
def tensor_array(
    dtype: Any,
    size: Any = None,
    dynamic_size: Any = None,
    clear_after_read: Any = None,
    tensor_array_name: Any = None,
    handle: Any = None,
    flow: Any = None,
    infer_shape: Any = True,
    element_shape: Any = None,
    colocate_with_first_write_call: Any = True,
    name: Any = None,
) -> Any:
    """`size` elements of a dtype and of element_shape, in which None is any size; all unwritten."""
    if handle is not None or flow is not None:
        raise ValueError("tf.TensorArray: give `size`; `handle` and `flow` are not supported")
    grows = False if dynamic_size is None else dynamic_size
    if size is None and not grows:
        raise ValueError("tf.TensorArray: give `size`, or dynamic_size=True")
    dims = -1 if element_shape is None else _dims(element_shape)
    count = 0 if size is None else size
    made = tf.raw_ops.TensorListReserve(
        element_shape=_vector(dims),
        num_elements=count,
        element_dtype=dtype,
        name=name,
    )
    return [made, [dtype, dims, grows]]


def _dims(shape: Any) -> Any:
    """Return a shape as TensorFlow's lists take it."""
    return [-1 if dim is None else dim for dim in shape]


def _vector(dims: Any) -> Any:
    return tf.convert_to_tensor(dims, tf.int32)


@public("tf.TensorArray.write", gives="tf.TensorArray")
def write(self: Any, index: Any, value: Any, name: Any = None) -> Any:
    """The array with another element at the index."""
    handle, (dtype, _, grows) = self
    return tf.raw_ops.TensorListSetItem(
        input_handle=handle,
        index=index,
        item=tf.convert_to_tensor(value, dtype),
        resize_if_index_out_of_bounds=grows,
        name=name,
    )


@public("tf.TensorArray.read")
def read(self: Any, index: Any, name: Any = None) -> Any:
    """The element at the index, zeros if it was never written."""
    handle, (dtype, dims, _) = self
    return tf.raw_ops.TensorListGetItem(
        input_handle=handle,
        index=index,
        element_shape=_vector(dims),
        element_dtype=dtype,
        name=name,
    )


@public("tf.TensorArray.stack")
def stack(self: Any, name: Any = None) -> Any:
    """All elements along a new first axis."""
    handle, (dtype, dims, _) = self
    return tf.raw_ops.TensorListStack(
        input_handle=handle,
        element_shape=_vector(dims),
        element_dtype=dtype,
        name=name,
    )


@public("tf.TensorArray.unstack", gives="tf.TensorArray")
def unstack(self: Any, value: Any, name: Any = None) -> Any:
    """The array of the parts of a tensor along its first axis."""
    _, (dtype, _, grows) = self
    dims = value.shape[1:]
    made = tf.raw_ops.TensorListFromTensor(
        tensor=tf.convert_to_tensor(value, dtype),
        element_shape=_vector(dims),
        name=name,
    )
    return [made, [dtype, dims, grows]]


@public("tf.TensorArray.size")
def size_(self: Any, name: Any = None) -> Any:
    """How many elements there are."""
    return tf.raw_ops.TensorListLength(input_handle=self[0], name=name)
