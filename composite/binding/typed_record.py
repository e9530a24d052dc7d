"""What the typed records have in common: they are parsed and written by a table of fields.

A field that the table does not have, one that is missing and one of another type are errors, so
that no side ever works with half of what the other one said.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto

from composite.binding.fields import RECORDS, VERSION, Field, Kind, Presence
from composite.binding.records import attr_value

if TYPE_CHECKING:
    from typing_extensions import Self

Dims = tuple[int | str, ...]  # "s0", "s1", ... are symbols


_TABLES = {kind: {one.wire: one for one in table} for kind, table in RECORDS.items()}


class MalformedRecord(ValueError):  # noqa: N818 - says what the record is
    """A record is not what its table of fields says; the message names the field."""


@dataclass(frozen=True, kw_only=True)
class TypedRecord:
    """A record of an op, in Python's types. Subclasses have an attribute for each field.

    Attributes:
        op: the op's name.
        name: what the record is known by: the ticket of a request, the C name of a kernel.
        attrs: the op's own attributes.
        version: of the record's table of fields.
    """

    KIND: ClassVar[str]  # its table's name in RECORDS

    op: str
    name: str = ""
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)
    version: int = VERSION

    @classmethod
    def table(cls) -> Mapping[str, Field]:
        """The fields by their names on the wire."""
        return _TABLES[cls.KIND]

    @classmethod
    def parse(cls, node: NodeDef) -> Self:
        """The record of a NodeDef. MalformedRecord if it is none."""
        table = cls.table()
        values: dict[str, Any] = {}
        for wire, value in node.attr.items():
            if not wire.startswith("_"):
                continue
            if wire not in table:
                raise cls._malformed(node, f"unknown field {wire}{_similar(wire, table)}")
            one = table[wire]
            if (found := _kind(value)) not in _accepted(one.kind):
                raise cls._malformed(node, f"{wire} is {found}, not {one.kind.wire}")
            values[one.name] = _to_python(one.kind, value)
        for one in table.values():
            if one.presence is Presence.REQUIRED and one.name not in values:
                raise cls._malformed(node, f"{one.wire} ({one.kind.wire}) is missing")
        if values.get("version", VERSION) != VERSION:
            raise cls._malformed(node, f"its _version is {values['version']}, not {VERSION}")
        own = {name: value for name, value in node.attr.items() if not name.startswith("_")}
        return cls(op=node.op, name=node.name, attrs=own, **values)

    def to_node_def(self) -> NodeDef:
        """The NodeDef that `parse` reads."""
        node = NodeDef(op=self.op, name=self.name)
        for name, value in self.attrs.items():
            node.attr[name].CopyFrom(value)
        for wire, one in self.table().items():
            value = getattr(self, one.name)
            # A dataclass has the default of an attribute as an attribute of the class.
            if one.presence is not Presence.OPTIONAL or value != getattr(type(self), one.name):
                node.attr[wire].CopyFrom(_to_attr(one.kind, value))
        return node

    def serialize(self) -> bytes:
        """The bytes of the NodeDef, equal for equal records."""
        return bytes(self.to_node_def().SerializeToString(deterministic=True))

    @classmethod
    def _malformed(cls, node: NodeDef, why: str) -> MalformedRecord:
        named = f" {node.name}" if node.name else ""
        return MalformedRecord(f"{cls.KIND}{named} of {node.op or 'no op'}: {why}")


def _similar(wire: str, table: Mapping[str, Field]) -> str:
    near = difflib.get_close_matches(wire, table, n=1)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(table)}"


def _kind(value: AttrValue) -> str:
    kind = value.WhichOneof("value")
    if kind != "list":
        return kind or "empty"
    found = [descriptor.name for descriptor, _ in value.list.ListFields()]
    return f"list({' and '.join(found)})"


def _accepted(kind: Kind) -> tuple[str, ...]:
    """An empty list has no type of its own."""
    return (kind.wire, "list()") if kind.wire.startswith("list") else (kind.wire,)


def _to_python(kind: Kind, value: AttrValue) -> Any:
    if kind is Kind.TEXT:
        return value.s.decode()
    if kind is Kind.BYTES:
        return value.s
    if kind is Kind.TEXTS:
        return tuple(text.decode() for text in value.list.s)
    if kind is Kind.DTYPES:
        return tuple(tf.as_dtype(dtype) for dtype in value.list.type)
    if kind is Kind.SHAPES:
        return tuple(tf.TensorShape(shape) for shape in value.list.shape)
    if kind is Kind.SHAPE_CLASS:
        return tuple(map(_dims, value.list.shape))
    if kind.wire.startswith("list"):
        return tuple(getattr(value.list, kind.wire.removeprefix("list(").removesuffix(")")))
    return getattr(value, kind.wire)


def _dims(shape: TensorShapeProto) -> Dims:
    return tuple(dim.size if dim.size >= 0 else f"s{-dim.size - 1}" for dim in shape.dim)


def _to_attr(kind: Kind, value: Any) -> AttrValue:
    if kind is Kind.NUMBER:
        return AttrValue(f=value)
    if kind is Kind.NUMBERS:
        return AttrValue(list=AttrValue.ListValue(f=value))
    if kind is not Kind.SHAPE_CLASS:
        return attr_value(value)
    result = AttrValue()
    result.list.SetInParent()
    for dims in value:
        shape = result.list.shape.add()
        for dim in dims:
            shape.dim.add(size=dim if isinstance(dim, int) else -1 - int(dim[1:]))
    return result
