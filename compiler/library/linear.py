"""Matrix products, and tf.nn.bias_add."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.dtypes import COMPLEX
from composite.compiler.library.names import public

_SPARSE_TYPES = (tf.bfloat16, tf.float32)


@public("tf.matmul", "tf.linalg.matmul")
def matmul(
    a: Any,
    b: Any,
    transpose_a: Any = False,
    transpose_b: Any = False,
    adjoint_a: Any = False,
    adjoint_b: Any = False,
    a_is_sparse: Any = False,
    b_is_sparse: Any = False,
    output_type: Any = None,
    grad_a: Any = False,
    grad_b: Any = False,
    name: Any = None,
) -> Any:
    """The product a @ b over the last two axes of each; the others are batches, and broadcast.

    float32 beside bfloat16, which TensorFlow multiplies as sparse matrices, is an error here unless
    one of them is said to be sparse.
    """
    a = tf.convert_to_tensor(a)
    if adjoint_a and transpose_a:
        raise ValueError("tf.matmul: only one of transpose_a and adjoint_a can be True")
    if adjoint_b and transpose_b:
        raise ValueError("tf.matmul: only one of transpose_b and adjoint_b can be True")
    sparse = a_is_sparse or b_is_sparse
    wide = output_type is not None and (output_type != a.dtype or output_type != b.dtype)
    if not sparse and (a.shape.rank > 2 or b.shape.rank > 2):
        a = _conjugate(a) if transpose_a else a
        b = _conjugate(b) if transpose_b else b
        adjoint_a = bool(adjoint_a or transpose_a)
        adjoint_b = bool(adjoint_b or transpose_b)
        if wide:
            return _wide(a, b, adjoint_a, adjoint_b, output_type, grad_a, grad_b, name)
        return tf.raw_ops.BatchMatMulV2(
            x=a, y=b, adj_x=adjoint_a, adj_y=adjoint_b, grad_x=grad_a, grad_y=grad_b, name=name
        )
    a = _conjugate(a) if adjoint_a else a
    b = _conjugate(b) if adjoint_b else b
    transpose_a = bool(adjoint_a or transpose_a)
    transpose_b = bool(adjoint_b or transpose_b)
    if sparse and a.dtype in _SPARSE_TYPES and b.dtype in _SPARSE_TYPES:
        return _sparse(a, b, transpose_a, transpose_b, a_is_sparse, b_is_sparse, name)
    if wide:
        return _wide(a, b, transpose_a, transpose_b, output_type, grad_a, grad_b, name)
    return tf.raw_ops.MatMul(
        a=a,
        b=b,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        grad_a=grad_a,
        grad_b=grad_b,
        name=name,
    )


def _conjugate(x: Any) -> Any:
    return tf.raw_ops.Conj(input=x) if x.dtype in COMPLEX else x


def _wide(
    a: Any, b: Any, adj_x: Any, adj_y: Any, dtype: Any, grad_x: Any, grad_y: Any, name: Any
) -> Any:
    """Multiply with a result of another dtype than the factors'."""
    return tf.raw_ops.BatchMatMulV3(
        x=a, y=b, Tout=dtype, adj_x=adj_x, adj_y=adj_y, grad_x=grad_x, grad_y=grad_y, name=name
    )


def _sparse(
    a: Any, b: Any, transpose_a: Any, transpose_b: Any, sparse_a: Any, sparse_b: Any, name: Any
) -> Any:
    """Multiply matrices with many zeros; the op's result is float32."""
    product = tf.raw_ops.SparseMatMul(
        a=a,
        b=b,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        a_is_sparse=sparse_a,
        b_is_sparse=sparse_b,
        name=name,
    )
    if a.dtype == tf.bfloat16 and b.dtype == tf.bfloat16:
        return tf.cast(product, tf.bfloat16)
    return product


@public("tf.linalg.matvec")
def matvec(
    a: Any,
    b: Any,
    transpose_a: Any = False,
    adjoint_a: Any = False,
    a_is_sparse: Any = False,
    b_is_sparse: Any = False,
    name: Any = None,
) -> Any:
    """Multiply matrices with vectors: the last axis of b is summed over."""
    column = tf.raw_ops.ExpandDims(input=b, axis=-1)
    product = matmul(
        a,
        column,
        transpose_a=transpose_a,
        adjoint_a=adjoint_a,
        a_is_sparse=a_is_sparse,
        b_is_sparse=b_is_sparse,
    )
    return tf.raw_ops.Squeeze(input=product, axis=[-1], name=name)


@public("tf.nn.bias_add")
def bias_add(value: Any, bias: Any, data_format: Any = None, name: Any = None) -> Any:
    """Add a bias, a vector along the channels: the last axis, or the second with "NC..."."""
    if data_format is None:
        return tf.raw_ops.BiasAdd(value=value, bias=bias, name=name)
    if len(data_format) < 2 or data_format[0] != "N":
        raise ValueError(f"tf.nn.bias_add: data_format is 'N...C' or 'NC...', not {data_format}")
    if data_format[1] == "C":
        return tf.raw_ops.BiasAdd(value=value, bias=bias, data_format="NCHW", name=name)
    if data_format[len(data_format) - 1] != "C":
        raise ValueError(f"tf.nn.bias_add: data_format is 'N...C' or 'NC...', not {data_format}")
    return tf.raw_ops.BiasAdd(value=value, bias=bias, data_format="NHWC", name=name)
