"""Attribute values and types as Python source, for wrappers, stubs and documentation."""

from __future__ import annotations

import math
from typing import Any

from composite.compiler.declared_text import written
from composite.compiler.schema import ArgSpec, AttrSpec

_ANNOTATIONS = {
    "string": "str",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "type": "tf.DType",
    "shape": "tf.TensorShape",
    "tensor": "Any",
    "func": "Any",
}


def literal(value: Any) -> str:
    """The source of a default. ValueError for a kind of value that has none."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    kind = type(value).__name__
    if kind == "DType":
        return f"tf.{value.name}"
    if kind == "TensorShape":
        return f"tf.TensorShape({None if value.rank is None else value.as_list()!r})"
    if kind == "TensorProto":  # its text is what TensorFlow takes for one
        from google.protobuf import text_format

        return repr(text_format.MessageToString(value, as_one_line=True))
    raise ValueError(f"a default of type {kind} has no Python literal: {value!r}")


def parameter(attr: AttrSpec, annotation: str = "") -> str:
    """An attribute as a parameter: "act: str = ''", or "act=''" without annotation."""
    if not attr.has_default:
        return attr.name + (f": {annotation}" if annotation else "")
    if annotation:
        return f"{attr.name}: {annotation} = {literal(written(attr))}"
    return f"{attr.name}={literal(written(attr))}"


def annotation(attr: AttrSpec) -> str:
    """The type of an attribute; a closed set of strings or ints is a Literal."""
    kind = attr.type
    if kind.startswith("list("):
        return f"Sequence[{_ANNOTATIONS[kind[5:-1]]}]"
    if attr.allowed and kind in ("string", "int"):
        return f"Literal[{', '.join(map(repr, attr.allowed))}]"
    return _ANNOTATIONS[kind]


def type_text(arg: ArgSpec) -> str:
    """The type of an input or output as the declaration writes it: "T", "N * float"."""
    if arg.type_list_attr:
        return arg.type_list_attr
    kind = arg.type_attr
    if not kind:
        import tensorflow as tf

        kind = tf.as_dtype(arg.dtype).name
    return f"{arg.number_attr} * {kind}" if arg.number_attr else kind
