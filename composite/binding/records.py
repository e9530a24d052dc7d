"""NodeDef protos as records of named attributes: how Python and the runtime talk.

Not for graph nodes themselves; those are made by `call`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto

from composite.compiler.attr_values import attr_value_to_python as python_value

__all__ = [
    "BACKEND",
    "CHECKED",
    "CONSTANTS",
    "EAGER",
    "NUMERICS",
    "PLAIN",
    "PORTABLE",
    "PROGRAM",
    "UNCOUNTED",
    "XLA_WAIT",
    "AttrValue",
    "NodeDef",
    "TensorProto",
    "attr_value",
    "python_value",
    "python_values",
    "record",
    "serialize",
]


BACKEND = "_composite_backend"  # where a node is to run: "auto", "tvm" or "tf"
NUMERICS = "_composite_numerics"  # "fast", "strict" or "invariant"
XLA_WAIT = "_composite_xla_wait"  # seconds that XLA waits for the kernel of a node, or "never"
PORTABLE = "_composite_portable"  # a call of stock ops is made in place of the node: its values:
PLAIN, CHECKED = b"true", b"checked"  # as they are, or each number checked
EAGER = "_composite_eager"  # a node that stands for an eager call
UNCOUNTED = "_composite_uncounted"  # a node that composite.stats() leaves out
CONSTANTS = "_composite_constants"  # the inputs of a node that never change
PROGRAM = "_composite_program"  # the version of an op that a node, or a record of a call, means


def attr_value(value: Any) -> AttrValue:
    """An AttrValue of a Python value: the kind follows the type.

    Takes bool, int, float, str, bytes, DType, TensorShape, ndarray, TensorProto, AttrValue, and
    lists of those (an empty list is an empty list value). TypeError for anything else.
    """
    if isinstance(value, AttrValue):
        return value
    result = AttrValue()
    if isinstance(value, list | tuple):
        result.list.SetInParent()
        for element in value:
            _append(result.list, attr_value(element))
        return result
    _set(result, value)
    return result


def _set(result: AttrValue, value: Any) -> None:
    if isinstance(value, bool):  # before int: bool is one
        result.b = value
    elif isinstance(value, int):
        result.i = value
    elif isinstance(value, float):
        result.f = value
    elif isinstance(value, str):
        result.s = value.encode()
    elif isinstance(value, bytes):
        result.s = value
    elif isinstance(value, tf.DType):
        result.type = value.as_datatype_enum
    elif isinstance(value, tf.TensorShape):
        result.shape.CopyFrom(value.as_proto())
    elif isinstance(value, np.ndarray):
        result.tensor.CopyFrom(tf.make_tensor_proto(value))
    elif isinstance(value, TensorProto):
        result.tensor.CopyFrom(value)
    elif isinstance(value, TensorShapeProto):
        result.shape.CopyFrom(value)
    else:
        raise TypeError(f"no attribute value can hold a {type(value).__name__}: {value!r}")


def _append(values: Any, element: AttrValue) -> None:
    kind = element.WhichOneof("value")
    field = getattr(values, kind)
    if kind in ("shape", "tensor", "func"):
        field.add().CopyFrom(getattr(element, kind))
    else:
        field.append(getattr(element, kind))


def record(op: str = "", name: str = "", **attrs: Any) -> NodeDef:
    """A record: `op`, `name` and the named attributes, converted by `attr_value`."""
    node = NodeDef(op=op, name=name)
    for key, value in attrs.items():
        node.attr[key].CopyFrom(attr_value(value))
    return node


def python_values(node: NodeDef) -> dict[str, Any]:
    """All attributes of a record, as Python values, in the order of their names."""
    return {key: python_value(node.attr[key]) for key in sorted(node.attr)}


def serialize(node: Any) -> bytes:
    """The bytes of a proto, equal for equal content (maps are written in key order)."""
    return bytes(node.SerializeToString(deterministic=True))
