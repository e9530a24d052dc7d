"""Typed records: what comes back, and what is refused by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from composite.binding.call_request import CallRequest
from composite.binding.fields import RECORDS, Kind, Presence
from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.binding.records import NodeDef, attr_value, record, serialize
from composite.binding.typed_record import MalformedRecord, TypedRecord

CLASSES: tuple[type[TypedRecord], ...] = (CallRequest, KernelRequest, KernelRecord)

_sizes = st.integers(0, 2**40)
_dims = st.one_of(_sizes, st.integers(0, 9).map("s{}".format))
_numbers = st.floats(width=32, allow_nan=False)
_shapes = st.one_of(
    st.just(tf.TensorShape(None)),
    st.lists(st.one_of(st.none(), st.integers(0, 99)), max_size=4).map(tf.TensorShape),
)
_tensors = st.lists(st.integers(-9, 9), max_size=3).map(lambda x: tf.make_tensor_proto(x, tf.int32))


def _tuples(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(elements, max_size=4).map(tuple)


VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.TEXT: st.text(),
    Kind.BYTES: st.binary(),
    Kind.FLAG: st.booleans(),
    Kind.SIZE: _sizes,
    Kind.NUMBER: _numbers,
    Kind.TEXTS: _tuples(st.text()),
    Kind.FLAGS: _tuples(st.booleans()),
    Kind.SIZES: _tuples(_sizes),
    Kind.NUMBERS: _tuples(_numbers),
    Kind.DTYPES: _tuples(st.sampled_from([tf.float32, tf.int64, tf.bool, tf.bfloat16])),
    Kind.TENSORS: _tuples(_tensors),
    Kind.SHAPES: _tuples(_shapes),
    Kind.SHAPE_CLASS: _tuples(_tuples(_dims)),
}


@st.composite
def records(draw: st.DrawFn, cls: type[TypedRecord]) -> TypedRecord:
    values = {
        one.name: draw(VALUES[one.kind])
        for one in cls.table().values()
        if one.name != "version" and (one.presence is Presence.REQUIRED or draw(st.booleans()))
    }
    own = draw(st.dictionaries(st.sampled_from(["T", "act", "N"]), _sizes.map(attr_value)))
    return cls(op=draw(st.text(min_size=1)), name=draw(st.text()), attrs=own, **values)


@pytest.mark.parametrize("cls", CLASSES)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_a_record_comes_back(cls: type[TypedRecord], data: st.DataObject) -> None:
    made = data.draw(records(cls))
    node = made.to_node_def()
    assert cls.parse(NodeDef.FromString(serialize(node))) == made
    assert cls.parse(node).serialize() == serialize(node)


@pytest.mark.parametrize("cls", CLASSES)
def test_the_attributes_are_the_fields_of_the_table(cls: type[TypedRecord]) -> None:
    declared = {one.name for one in cls.table().values()}
    own = {one.name for one in dataclasses.fields(cls)} - {"op", "name", "attrs"}
    assert own == declared
    required = {one.name for one in dataclasses.fields(cls) if one.default is dataclasses.MISSING}
    for one in cls.table().values():
        assert (one.presence is Presence.REQUIRED) == (one.name in required)


def test_each_table_has_a_class() -> None:
    assert {cls.KIND for cls in CLASSES} == set(RECORDS)


def _request(**changes: Any) -> NodeDef:
    return record(
        "Op",
        "7",
        **{"T": tf.float32, "_composite_program": "abc", "_in_shapes": [tf.TensorShape([2])]}
        | changes,
    )


def test_a_request_has_pythons_types() -> None:
    found = KernelRequest.parse(_request(_hint=[3], _must=True))
    assert (found.op, found.name, found.program) == ("Op", "7", "abc")
    assert (found.in_shapes, found.hint, found.must, found.constants) == (((2,),), (3,), True, ())
    assert list(found.attrs) == ["T"]


def test_an_unknown_field_is_named_with_what_it_may_have_meant() -> None:
    with pytest.raises(
        MalformedRecord,
        match="kernel request 7 of Op: unknown field _hints; did you mean _hint[?]",
    ):
        KernelRequest.parse(_request(_hints=[3]))


def test_a_missing_field_is_named_with_its_type() -> None:
    node = _request()
    del node.attr["_in_shapes"]
    with pytest.raises(MalformedRecord, match=r"of Op: _in_shapes \(list\(shape\)\) is missing"):
        KernelRequest.parse(node)


@pytest.mark.parametrize(
    ("value", "found"), [("3", "s"), (3, "i"), ([3.5], r"list\(f\)"), (["3"], r"list\(s\)")]
)
def test_a_field_of_another_type_is_named_with_both(value: Any, found: str) -> None:
    with pytest.raises(MalformedRecord, match=rf"of Op: _hint is {found}, not list\(i\)"):
        KernelRequest.parse(_request(_hint=value))


def test_an_empty_list_has_the_type_of_its_field() -> None:
    assert KernelRequest.parse(_request(_hint=[])).hint == ()
    with pytest.raises(MalformedRecord, match=r"_must is list\(\), not b"):
        KernelRequest.parse(_request(_must=[]))


def test_another_version_is_refused() -> None:
    assert KernelRequest.parse(_request(_version=1)).version == 1
    with pytest.raises(MalformedRecord, match="its _version is 2, not 1"):
        KernelRequest.parse(_request(_version=2))


def test_a_node_becomes_the_call_without_what_else_it_carries() -> None:
    node = record("Op", T=tf.float32, _composite_program="abc", _class=["loc:@x"])
    call = CallRequest.of_node(node.op, node.attr)
    assert (call.op, call.program, list(call.attrs)) == ("Op", "abc", ["T"])
    assert sorted(call.to_node_def().attr) == ["T", "_composite_program", "_in_shapes"]
