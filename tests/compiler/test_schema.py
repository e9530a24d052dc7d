from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from composite.compiler.schema import OpSchema

ACT = (
    'name: "act" type: "string" default_value { s: "" } allowed_values { list { s: "" s: "RELU" } }'
)
RATE = 'name: "rate" type: "float" default_value { f: 0.1 }'
SIZE = 'name: "size" type: "int" has_minimum: true minimum: 1'

OpDef = Callable[..., Any]
Define = Callable[..., Any]


def test_inputs_attributes_and_what_inputs_determine(op_def: OpDef) -> None:
    schema = OpSchema.from_op_def(op_def("Mix", ["x: T", "xs: N * T"], ["y: T"], [ACT, SIZE]))
    assert schema.parameters == ("x", "xs", "act", "size")
    assert [attr.name for attr in schema.derived] == ["N", "T"]
    assert [arg.is_list for arg in schema.inputs] == [False, True]
    assert schema.inputs[1].bound_attrs == ("T", "N")
    act, size = schema.attrs
    assert (act.type, act.default, act.allowed) == ("string", "", ("", "RELU"))
    assert (size.has_default, size.minimum) == (False, 1)
    assert schema.derived[1].allowed == (tf.float32, tf.float64)


def test_bytes_and_proto_give_the_same_schema(op_def: OpDef) -> None:
    declared = op_def("Mix", attrs=[ACT])
    assert OpSchema.from_op_def(declared.SerializeToString()) == OpSchema.from_op_def(declared)


def test_schemas_are_hashable(op_def: OpDef) -> None:
    defaults = 'name: "k" type: "list(int)" default_value { list { i: 1 i: 2 } }'
    assert isinstance(hash(OpSchema.from_op_def(op_def("Mix", attrs=[defaults]))), int)


def test_the_signature_of_a_call(op_def: OpDef) -> None:
    schema = OpSchema.from_op_def(op_def("Mix", attrs=[ACT, SIZE]))
    assert str(schema.signature()) == "(x, *, act='', size, name=None)"


def test_float_defaults_are_float32(op_def: OpDef) -> None:
    (rate,) = OpSchema.from_op_def(op_def("Mix", attrs=[RATE])).attrs
    assert rate.default == pytest.approx(0.1)
    assert rate.default != 0.1


@pytest.mark.parametrize(
    ("proto", "type_", "expected"),
    [
        ("default_value { type: DT_INT32 }", "type", tf.int32),
        ("default_value { shape { dim { size: -1 } dim { size: 3 } } }", "shape", [None, 3]),
        ("default_value { list { i: 1 i: 2 } }", "list(int)", [1, 2]),
        ("default_value { list { } }", "list(int)", []),
        ("default_value { list { type: DT_HALF } }", "list(type)", [tf.half]),
        ("default_value { b: true }", "bool", True),
    ],
)
def test_defaults_as_python_values(op_def: OpDef, proto: str, type_: str, expected: object) -> None:
    declared = op_def("Mix", attrs=[f'name: "k" type: "{type_}" {proto}'])
    (attr,) = OpSchema.from_op_def(declared).attrs
    value = attr.default.as_list() if type_ == "shape" else attr.default
    assert value == expected


def test_every_op_of_tensorflow_has_a_schema() -> None:
    from tensorflow.python.framework import op_def_registry

    names = [name for name in dir(tf.raw_ops) if not name.startswith("_")]
    assert len(names) > 1300
    for name in names:
        schema = OpSchema.from_op_def(op_def_registry.get(name))
        assert schema.op_name == name
        assert len(schema.attrs) + len(schema.derived) == len(schema.op_def.attr)


def test_importing_declarations_and_sources_imports_no_compiler(
    run_python: Callable[..., Any],
) -> None:
    run_python(
        "import sys; import composite.compiler.declaration, composite.compiler.source\n"
        "heavy = {'tensorflow', 'tvm', 'mlir', 'torch_mlir'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)",
        bare=True,
    )
