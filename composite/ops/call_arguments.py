"""The arguments of a call as its OpDef declares them: bound to tensors and attributes, and back.

TensorFlow's own code for its ops does it (op_def_library, private in TF 2.21): what converts, what
is derived and what is an error are as there. tests/composite/ops/test_call_arguments.py pins it.

Not for: making the call (call.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.python.framework import op_def_library

from composite.binding.records import python_value


class Bound(NamedTuple):
    """A call's arguments as TensorFlow will see them."""

    inputs: list[Any]  # tensors, lists flattened
    input_types: list[Any]
    attrs: dict[str, AttrValue]  # every attribute, derived ones included
    structure: list[int | None]  # for each output: None for a tensor, n for a list of n


def attr_value(value: Any, kind: str, name: str) -> AttrValue:
    """A Python value as the AttrValue of an attribute of type `kind`. TypeError if it is none."""
    result: AttrValue = op_def_library.value_to_attr_value(value, kind, name)
    return result


def bind(definition: Any, arguments: Mapping[str, Any]) -> Bound:
    """Converts inputs to tensors, derives the derived attributes and checks all of them.

    `arguments` maps each input and each given attribute to its value. TypeError and ValueError as
    TensorFlow's own ops raise them. Creates conversion nodes when a graph is current.
    """
    name, keywords = definition.name, _with_tensor_attrs(definition, arguments)
    attrs: dict[str, Any] = {}
    protos: dict[str, AttrValue] = {}
    defaults: dict[str, Any] = {}
    allowed: dict[str, Any] = {}
    inputs: list[Any] = []
    input_types: list[Any] = []
    structure: list[int | None] = []
    lib = op_def_library
    lib._ExtractDefaultTypesAndAllowedTypes(definition, defaults, allowed)
    lib._ExtractInputsAndAttrs(
        name, definition, allowed, keywords, defaults, attrs, inputs, input_types
    )
    for attr in definition.attr:
        if attr.name not in attrs:
            keywords.setdefault(attr.name, None if attr.HasField("default_value") else ...)
            if keywords[attr.name] is ...:
                raise TypeError(f"{name}: attribute '{attr.name}' has no value and no default")
    lib._ExtractRemainingAttrs(name, definition, keywords, defaults, attrs)
    lib._ExtractAttrProto(name, definition, attrs, protos)
    lib._ExtractOutputStructure(name, definition, protos, structure)
    lib._CheckAllInputsUsed(name, keywords)
    return Bound(inputs, input_types, protos, structure)


def resource(value: Any) -> Any:
    """The handle of a variable, of each in a list, where an op takes a resource; others as given.

    A variable of Keras holds one of TensorFlow, private in Keras 3; its public `value` is a tensor
    under mixed precision.
    """
    if isinstance(value, (list, tuple)):
        return [resource(one) for one in value]
    variable = getattr(value, "_value", value)
    return getattr(variable, "handle", value)


def read(value: Any) -> Any:
    """What a variable holds, TensorFlow's or Keras's; anything else as given."""
    is_variable = isinstance(getattr(value, "_value", value), tf.Variable)
    return tf.convert_to_tensor(value) if is_variable else value


def _with_tensor_attrs(definition: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with attributes that are tensors as protos: arrays and numbers are taken."""
    given = dict(arguments)
    for attr in definition.attr:
        value = given.get(attr.name)
        if attr.type == "tensor" and value is not None:
            given[attr.name] = _tensor_proto(value)
        if attr.type == "list(tensor)" and isinstance(value, (list, tuple)):
            given[attr.name] = [_tensor_proto(one) for one in value]
    return given


def _tensor_proto(value: Any) -> Any:
    if isinstance(value, TensorProto):
        return value
    if isinstance(value, str):  # the text of a proto, as in TensorFlow's own wrappers
        return text_format.Parse(value, TensorProto())
    constant = tf.get_static_value(value) if tf.is_tensor(value) else value
    if constant is None:
        raise TypeError(f"an attribute is known when the op is called, and {value} is not")
    return tf.make_tensor_proto(constant)


def keywords(
    definition: Any, derived: Sequence[str], attrs: Mapping[str, Any], flat: Sequence[Any]
) -> dict[str, Any]:
    """The keyword arguments of a call from flattened inputs and attribute values (AttrValue)."""
    result: dict[str, Any] = {}
    position = 0
    for arg in definition.input_arg:
        if arg.number_attr:
            count = int(attrs[arg.number_attr].i)
        elif arg.type_list_attr:
            count = len(attrs[arg.type_list_attr].list.type)
        else:
            result[arg.name] = flat[position]
            position += 1
            continue
        result[arg.name] = list(flat[position : position + count])
        position += count
    for attr in definition.attr:
        if attr.name in attrs and attr.name not in derived:
            result[attr.name] = python_value(attrs[attr.name])
    return result


def inferred(definition: Any) -> list[str]:
    """The attributes that TensorFlow derives from the inputs, in the OpDef's order."""
    used = {
        name
        for arg in definition.input_arg
        for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)
    }
    return [attr.name for attr in definition.attr if attr.name in used]


def length(arg: Any, attrs: Mapping[str, AttrValue]) -> int:
    """How many tensors an argument of an OpDef is."""
    if arg.number_attr:
        return int(attrs[arg.number_attr].i)
    if arg.type_list_attr:
        return len(attrs[arg.type_list_attr].list.type)
    return 1


def structured(outputs: Sequence[Any], structure: Sequence[int | None]) -> Any:
    """Flat outputs as the op's Python value: a tensor, a list, a tuple of those, or None."""
    values: list[Any] = []
    position = 0
    for count in structure:
        if count is None:
            values.append(outputs[position])
        else:
            values.append(list(outputs[position : position + count]))
        position += 1 if count is None else count
    if len(values) == 1:
        return values[0]
    return tuple(values) if values else None
