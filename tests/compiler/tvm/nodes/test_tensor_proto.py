"""TensorProtos in each of their forms, read as TensorFlow reads them."""

from __future__ import annotations

import numpy as np
import pytest
from tensorflow.core.framework import tensor_pb2, types_pb2
from tensorflow.python.framework import tensor_util

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.nodes import node
from composite.compiler.tvm.nodes.tensor_proto import to_array

DTYPES = sorted(node.DTYPE_OF_ENUM)


def _same(proto: tensor_pb2.TensorProto) -> None:
    found, expected = to_array(proto), tensor_util.MakeNdarray(proto)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("enum", DTYPES)
def test_packed_and_listed_elements(enum: int) -> None:
    dtype = types_pb2.DataType.Name(enum)
    for values in (1, [], [[1, 0], [3, 1]], np.arange(12).reshape(3, 4), [5] * 40):
        _same(tensor_util.make_tensor_proto(np.array(values), enum))
        listed = tensor_util.make_tensor_proto(np.array(values), enum)
        field = {"DT_HALF": "half_val", "DT_BFLOAT16": "half_val"}.get(dtype)
        if listed.tensor_content and field is None:
            array = tensor_util.MakeNdarray(listed)
            name = {"float32": "float_val", "float64": "double_val"}
            few_bits = ("int8", "int16", "int32", "uint8", "uint16")
            name |= dict.fromkeys(few_bits, "int_val")
            field = name.get(array.dtype.name, f"{array.dtype.name}_val")
            listed.ClearField("tensor_content")
            getattr(listed, field).extend(array.ravel().tolist())
        _same(listed)


@pytest.mark.parametrize("enum", DTYPES)
def test_the_last_element_stands_for_the_rest(enum: int) -> None:
    proto = tensor_util.make_tensor_proto(np.array([1, 0]), enum)
    if proto.tensor_content:
        values = tensor_util.MakeNdarray(proto)
        proto = tensor_util.make_tensor_proto(values[0], enum, [])
    proto.tensor_shape.dim.add(size=3)
    del proto.tensor_shape.dim[1:]
    proto.tensor_shape.dim[0].size = 3
    _same(proto)


def test_other_dtypes_are_named_as_tensorflow_names_them() -> None:
    names = {n: e for n, e in types_pb2.DataType.items() if 0 < e < 100}
    for name, enum in names.items():
        if enum in node.DTYPE_OF_ENUM:
            continue
        with pytest.raises(NotCovered, match=f"^Op: dtype {name} is not covered"):
            node.dtype_name(enum, "Op")
