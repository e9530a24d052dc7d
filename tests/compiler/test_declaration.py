from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from composite.compiler.declaration import check
from composite.compiler.schema import OpSchema
from composite.compiler.source import CompositeSyntaxError, Source

ACT = (
    'name: "act" type: "string" default_value { s: "" } allowed_values { list { s: "" s: "RELU" } }'
)
RATE = 'name: "rate" type: "float" default_value { f: 0.1 }'
SIZE = 'name: "size" type: "int" has_minimum: true minimum: 1'

OpDef = Callable[..., Any]
Define = Callable[..., Any]


MISTAKES = {
    "wrong name": ("def body(y, act):\n    return y\n", 1, 10),
    "wrong order": ("def body(act, x):\n    return x\n", 1, 10),
    "one too many": ("def body(x, act, more):\n    return x\n", 1, 18),
    "one missing": ("def body(x):\n    return x\n", 1, 1),
    "derived as parameter": ("def body(x, T):\n    return x\n", 1, 13),
    "variadic": ("def body(x, *act):\n    return x\n", 1, 14),
    "keyword-only": ("def body(x, *, act):\n    return x\n", 1, 16),
    "default of an input": ("def body(x=1, act=''):\n    return x\n", 1, 10),
    "another default": ("def body(x, act='RELU'):\n    return x\n", 1, 13),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_parameters_that_do_not_match(mistake: str, op_def: OpDef, define: Define) -> None:
    text, line, column = MISTAKES[mistake]
    schema = OpSchema.from_op_def(op_def("Mix", attrs=[ACT]))
    with pytest.raises(CompositeSyntaxError) as caught:
        check(schema, Source.of(define(text)))
    assert (caught.value.lineno, caught.value.offset) == (line, column)


def test_a_default_that_is_not_declared(op_def: OpDef, define: Define) -> None:
    schema = OpSchema.from_op_def(op_def("Mix", attrs=[SIZE]))
    with pytest.raises(CompositeSyntaxError, match='declare it, "size: int = 3"'):
        check(schema, Source.of(define("def body(x, size=3):\n    return x\n")))


def test_equal_defaults_pass(op_def: OpDef, define: Define) -> None:
    schema = OpSchema.from_op_def(op_def("Mix", attrs=[ACT, RATE]))
    check(schema, Source.of(define("def body(x, act='', rate=0.1):\n    return x\n")))


DECLARED = """
declare = lambda *args, **kwargs: lambda function: function

@declare(
    "Mix",
    inputs=["x: T"],
    derived_attrs=["T: type", "U: type"],
)
def body(x):
    return x
"""


def test_a_derived_attribute_that_no_input_uses(op_def: OpDef, define: Define) -> None:
    declared = op_def("Mix", attrs=['name: "U" type: "type"'])
    schema = OpSchema.from_op_def(declared, derived=("T", "U"))
    with pytest.raises(CompositeSyntaxError, match=r"no input determines .* `U`") as caught:
        check(schema, Source.of(define(DECLARED)))
    assert (caught.value.lineno, caught.value.offset) == (6, 31)


def test_an_attribute_that_should_be_derived(op_def: OpDef, define: Define) -> None:
    schema = OpSchema.from_op_def(op_def("Mix"), derived=())
    with pytest.raises(CompositeSyntaxError, match="`T` is determined by an input; move it"):
        check(schema, Source.of(define(DECLARED)))


def test_a_name_that_is_declared_twice(op_def: OpDef, define: Define) -> None:
    schema = OpSchema.from_op_def(op_def("Mix", ["x: T", "x: T"]))
    with pytest.raises(CompositeSyntaxError, match="`x` is declared twice"):
        check(schema, Source.of(define("def body(x):\n    return x\n")))


def test_name_is_taken(op_def: OpDef, define: Define) -> None:
    schema = OpSchema.from_op_def(op_def("Mix", attrs=['name: "name" type: "string"']))
    with pytest.raises(CompositeSyntaxError, match="`name` is the argument that names a node"):
        check(schema, Source.of(define("def body(x, name):\n    return x\n")))


def test_all_mistakes_of_a_declaration_are_shown(op_def: OpDef, define: Define) -> None:
    declared = op_def("Mix", ["x: T", "x: T"], attrs=['name: "U" type: "type"'])
    schema = OpSchema.from_op_def(declared, derived=("U",))
    with pytest.raises(CompositeSyntaxError) as caught:
        check(schema, Source.of(define(DECLARED)))
    assert [(one.mistake.code, one.lineno) for one in caught.value.parts] == [
        ("C014", 5),
        ("C015", 6),
        ("C015", 6),
    ]
