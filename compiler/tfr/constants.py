"""Conversion of constants between Python, MLIR attributes and TensorFlow's AttrValue.

| Python | MLIR | AttrValue |
|---|---|---|
| None | unit | (nothing set) |
| UNDEFINED | @undefined | placeholder |
| bool | true, false | b |
| int (64 bits) | i64 | i |
| float | f64 | tensor, a DT_DOUBLE scalar |
| str | string | s |
| tf.DType | #tfr.type<"float32"> | type |
| NumPy array or scalar | dense elements, or #tfr.tensor_bytes | tensor |

A tuple of those is not a constant but a tfr.list.
Not for: the meaning of an operator on constants, which is the expansion's.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from composite.compiler.tfr import dialect
from composite.compiler.tfr.bindings import ir

INT64 = range(-(2**63), 2**63)

_SIMPLE = (ir.BoolAttr, ir.IntegerAttr, ir.FloatAttr, ir.StringAttr)

# Element types that survive the way from NumPy to MLIR's dense elements and back.
DENSE = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)


class _Undefined:
    """The type of UNDEFINED."""

    def __repr__(self) -> str:
        return "UNDEFINED"


# What a name that the front end adds holds before it is assigned; it is not read until then.
UNDEFINED = _Undefined()


class NotConstantError(TypeError):
    """The object cannot be a constant of the IR; the message says why."""


def is_dtype(value: object) -> bool:
    """Say whether `value` is a tf.DType."""
    import tensorflow as tf

    return isinstance(value, tf.DType)


def to_attribute(value: object) -> Any:
    """Return the MLIR attribute of a Python constant.

    Raises:
        NotConstantError: if there is none.
    """
    context = dialect.context()
    if value is None:
        return ir.UnitAttr.get(context)
    if value is UNDEFINED:
        return ir.FlatSymbolRefAttr.get("undefined", context)
    if isinstance(value, bool):
        return ir.BoolAttr.get(value, context)
    if isinstance(value, (np.ndarray, np.generic)):
        return _array_attribute(np.asarray(value))
    if isinstance(value, int):
        if value not in INT64:
            raise NotConstantError(f"the integer {value} does not fit in 64 bits")
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), value)
    if isinstance(value, float):
        return ir.FloatAttr.get(ir.F64Type.get(context), value, ir.Location.unknown(context))
    if isinstance(value, str):
        if not _is_unicode(value):
            raise NotConstantError(f"the string {value!r} cannot be encoded as UTF-8")
        return ir.StringAttr.get(value, context)
    if is_dtype(value):
        return _type_attribute(value.name)  # type: ignore[attr-defined]
    raise NotConstantError(f"a {type(value).__name__} cannot be a constant of an op")


def _is_unicode(text: str) -> bool:
    """Say whether a string has no half of a surrogate pair."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


@functools.cache
def _type_attribute(name: str) -> Any:
    return ir.Attribute.parse(f'#tfr.type<"{name}">', dialect.context())


def _array_attribute(array: np.ndarray) -> Any:
    context = dialect.context()
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if not _has_tensor_dtype(array.dtype):
        raise NotConstantError(
            f"a NumPy array of dtype {array.dtype} cannot be a constant of an op; "
            "numbers and booleans can"
        )
    if array.dtype.name in DENSE:
        with context:
            return ir.DenseElementsAttr.get(
                np.ascontiguousarray(array).reshape(array.shape), signless=False
            )
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    dims = ", ".join(str(dim) for dim in array.shape)
    parameters = (
        f'"{array.dtype.name}", array<i64{": " + dims if dims else ""}>, "{little.tobytes().hex()}"'
    )
    return ir.Attribute.parse(f"#tfr.tensor_bytes<{parameters}>", context)


def _has_tensor_dtype(dtype: np.dtype) -> bool:
    """Say whether tensors of this dtype can be made of bytes."""
    if dtype.kind in "OUSVM":
        return dtype.name in _extension_dtypes()
    if dtype.kind == "c":
        return dtype.itemsize <= 16
    return dtype.kind in "biuf" and dtype.itemsize <= 8


def _extension_dtypes() -> frozenset[str]:
    """Names of the NumPy dtypes that TensorFlow adds (bfloat16 and the float8s, kind V)."""
    import ml_dtypes

    return frozenset({"bfloat16", *(name for name in dir(ml_dtypes) if name.startswith("float8"))})


def result_type(attribute: Any) -> str:
    """Return the name of the tfr type that a tfr.constant of this attribute has."""
    return "tensor" if _is_tensor(attribute) else "attr"


def _is_tensor(attribute: Any) -> bool:
    if isinstance(attribute, _SIMPLE):
        return False
    return isinstance(attribute, ir.DenseElementsAttr) or _is_dynamic(attribute, "tensor_bytes")


def _is_dynamic(attribute: Any, name: str) -> bool:
    return str(attribute).startswith(f"#tfr.{name}<")


def _parameters(attribute: Any) -> list[Any]:
    return [one.maybe_downcast() for one in ir.DynamicAttr(attribute).params]


def to_python(attribute: Any) -> Any:
    """Return the Python constant of an MLIR attribute: the reverse of to_attribute."""
    if isinstance(attribute, ir.UnitAttr):
        return None
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return UNDEFINED
    if isinstance(attribute, _SIMPLE):
        return attribute.value
    if isinstance(attribute, ir.DenseElementsAttr):
        return np.array(attribute)
    if _is_dynamic(attribute, "type"):
        import tensorflow as tf

        return tf.as_dtype(_parameters(attribute)[0].value)
    if _is_dynamic(attribute, "tensor_bytes"):
        name, dims, data = _parameters(attribute)
        shape = tuple(dims)
        return np.frombuffer(bytes.fromhex(data.value), _numpy_dtype(name.value)).reshape(shape)
    raise NotConstantError(f"{attribute} is no constant of the tfr dialect")


def _numpy_dtype(name: str) -> Any:
    import tensorflow as tf

    return tf.as_dtype(name).as_numpy_dtype


def to_attr_value(attribute: Any) -> Any:
    """Return the tensorflow.AttrValue of an MLIR attribute."""
    from tensorflow.core.framework import attr_value_pb2

    value = to_python(attribute)
    if value is None:
        return attr_value_pb2.AttrValue()
    if value is UNDEFINED:
        return attr_value_pb2.AttrValue(placeholder="undefined")
    if isinstance(value, bool):
        return attr_value_pb2.AttrValue(b=value)
    if isinstance(value, int):
        return attr_value_pb2.AttrValue(i=value)
    if isinstance(value, str):
        return attr_value_pb2.AttrValue(s=value.encode())
    if is_dtype(value):
        return attr_value_pb2.AttrValue(type=value.as_datatype_enum)
    return attr_value_pb2.AttrValue(tensor=_tensor_proto(np.asarray(value)))


def _tensor_proto(array: np.ndarray) -> Any:
    """Encode by `tensor_content` alone: the bytes of the array are the bytes of the program."""
    import tensorflow as tf
    from tensorflow.core.framework import tensor_pb2, tensor_shape_pb2

    dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=dim) for dim in array.shape]
    return tensor_pb2.TensorProto(
        dtype=tf.as_dtype(array.dtype).as_datatype_enum,
        tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=dims),
        tensor_content=np.ascontiguousarray(array).tobytes(),
    )
