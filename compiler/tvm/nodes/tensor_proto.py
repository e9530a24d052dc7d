"""The elements of a TensorProto, without TensorFlow: the process that compiles has none.

The same as `tensor_util.MakeNdarray`, for the dtypes that kernels compute in. Not for others.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from composite.compiler.tvm.nodes.node import dtype_name

# Where each dtype's elements lie if they are not packed into `tensor_content`.
_FIELDS = {
    "float32": "float_val",
    "float64": "double_val",
    "float16": "half_val",
    "bfloat16": "half_val",
    "int32": "int_val",
    "int64": "int64_val",
    "bool": "bool_val",
    **dict.fromkeys(("int8", "int16", "uint8", "uint16"), "int_val"),
    "uint32": "uint32_val",
    "uint64": "uint64_val",
}


def to_array(proto: Any) -> np.ndarray[Any, Any]:
    """Return the elements, in the shape and dtype of the proto. NotCovered for another dtype."""
    name = dtype_name(proto.dtype, "Const")
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    shape = [dim.size for dim in proto.tensor_shape.dim]
    if proto.tensor_content:
        return np.frombuffer(proto.tensor_content, dtype).reshape(shape)
    field = _FIELDS[name]
    # 16-bit floats are held as their bits.
    held = np.array(getattr(proto, field), np.uint16 if field == "half_val" else dtype)
    values = held.view(dtype)
    if values.size == 0:
        return np.zeros(shape, dtype)
    missing = int(np.prod(shape, dtype=np.int64)) - values.size
    # The last one stands for all that follow.
    return np.concatenate([values, np.repeat(values[-1:], missing)]).reshape(shape)
