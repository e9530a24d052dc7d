"""Records with fields that they may not have, or not of that type: refused by name.

The runtime's tables are generated from those that Python reads; here both are held against each
other, field by field, in the compiled library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.node_def_pb2 import NodeDef

from composite.binding.fields import CALL, KERNEL_RECORD, VERSION, Field, Presence
from composite.binding.kernel_request import KernelRequest
from tests.runtime import kernel_support as k


def _kernel_record(**changes: Any) -> NodeDef:
    return k.record("k_fields", "RtFields", "0" * 32, [(-1,)], ["s0"], **changes)


def _call(**changes: Any) -> NodeDef:
    return k.node("", "RtFields", **{"_in_shapes": [(1,)]} | changes)


CASES = [("composite_install", _kernel_record, one) for one in KERNEL_RECORD]
CASES += [("composite_expand", _call, one) for one in CALL]
CASES += [("composite_explain", _call, one) for one in CALL]


@pytest.mark.parametrize(
    ("function", "make", "field"),
    CASES,
    ids=lambda x: getattr(x, "wire", getattr(x, "__name__", x)),
)
def test_each_field_has_the_type_that_python_declares(
    function: str, make: Callable[..., NodeDef], field: Field
) -> None:
    wrong, found = (AttrValue(i=1), "i") if field.kind.wire != "i" else (AttrValue(s=b"1"), "s")
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        k.request(function, make(**{field.wire: wrong}))
    assert f"{field.wire} is {found}, not {field.kind.wire}" in error.value.message


@pytest.mark.parametrize(
    "wire", [one.wire for one in KERNEL_RECORD if one.presence is Presence.REQUIRED]
)
def test_a_required_field_is_missed_by_name(wire: str) -> None:
    record = _kernel_record()
    del record.attr[wire]
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"{wire} \(.*\) is missing"):
        k.request("composite_install", record)


@pytest.mark.parametrize(
    ("function", "record"),
    [
        ("composite_install", _kernel_record(_minimum=[1], _Isa="x86-64")),
        ("composite_expand", _call(_minimum=[1], _Isa="x86-64")),
    ],
)
def test_unknown_fields_are_named(function: str, record: NodeDef) -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="of RtFields: unknown field _Isa, _minimum"
    ):
        k.request(function, record)


def test_a_list_of_two_types_is_none() -> None:
    both = AttrValue(list=AttrValue.ListValue(i=[1], f=[1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"_sizes is list\(i and f\), not"):
        k.request("composite_install", _kernel_record(_sizes=both))


def test_another_version_is_refused() -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=f"kernel record k_fields of RtFields: its _version is {VERSION + 1}, not {VERSION}",
    ):
        k.request("composite_install", _kernel_record(_version=VERSION + 1))
    # The version that it is of passes, and the next thing that is wrong is told.
    with pytest.raises(tf.errors.NotFoundError, match="RtFields"):
        k.request("composite_install", _kernel_record(_version=VERSION))


def test_an_op_has_attributes_of_its_own() -> None:
    with pytest.raises(tf.errors.NotFoundError, match="RtFields"):
        k.request("composite_expand", _call(minimum=[1]))


@pytest.mark.usefixtures("kernel_ops")
def test_what_the_runtime_asks_for_is_a_request(unique: Callable[[str], str]) -> None:
    op = unique("RtAsked")
    k.register(k.dense(op))
    with k.Worker(lambda asked: ("failed", "a test")) as worker:
        k.call(op, k.dense_inputs(3))
        worker.wait()
    (asked,) = worker.requests
    request = KernelRequest.parse(asked)
    assert (request.op, request.name, request.must) == (op, asked.name, False)
    assert len(request.in_shapes) == 3
    assert request.to_node_def() == asked
