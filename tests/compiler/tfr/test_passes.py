from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from composite.compiler import tfr
from composite.compiler.tfr.canonicalize import settled

Define = Callable[..., Any]
OpDef = Callable[..., Any]

K = 'name: "k" type: "int" default_value { i: 0 }'


def optimized(text: str) -> str:
    module = tfr.parse(text)
    tfr.optimize(module)
    return str(module)


def test_equal_pure_calls_are_merged_and_unused_ones_dropped(
    compile_body: Any, define: Define
) -> None:
    text = """
    def body(x):
        a = tf.raw_ops.Mul(x=x, y=x)
        b = tf.raw_ops.Mul(y=x, x=x)
        tf.sin(a)
        return a + b
    """
    assert compile_body(define(text), optimize=False).called == ["Mul", "Mul", "Sin"]
    assert compile_body(define(text)).called == ["Mul"]


def test_calls_with_state_stay_where_they_are(compile_body: Any, define: Define) -> None:
    text = """
    def body(x):
        tf.raw_ops.PrintV2(input=x)
        tf.raw_ops.PrintV2(input=x)
        tf.raw_ops.Assert(condition=x, data=[x])
        y = tf.raw_ops.Sin(x=x)
        tf.raw_ops.PrintV2(input=y)
        return x
    """
    compiled = compile_body(define(text))
    assert compiled.called == ["PrintV2", "PrintV2", "Assert", "Sin", "PrintV2"]
    assert tfr.is_stateful(compiled.module)


def test_state_in_a_branch_is_kept(compile_body: Any, define: Define, op_def: OpDef) -> None:
    text = """
    def body(x, k):
        if k:
            tf.raw_ops.PrintV2(input=x)
        if k > 1:
            unused = tf.sin(x)
        return x
    """
    compiled = compile_body(define(text), op_def("Test", attrs=[K]))
    assert compiled.called == ["PrintV2"]
    assert compiled.kinds.count("tfr.if") == 1


def test_nodes_of_different_names_are_two(compile_body: Any, define: Define) -> None:
    text = "def body(x):\n    return tf.sin(x, name='a') + tf.sin(x, name='b') + tf.sin(x)\n"
    assert compile_body(define(text)).called == ["Sin", "Sin", "Sin"]


def test_constant_conditions_are_decided(compile_body: Any, define: Define) -> None:
    text = """
    DEBUG, MODE, SIZES, NOTHING = False, "fast", (1, 2), None

    def body(x):
        if DEBUG:
            tf.raw_ops.PrintV2(input=x)
        if MODE == "slow" or not SIZES or NOTHING is not None:
            return tf.cos(x)
        y = x if len(SIZES) > 1 and SIZES[-1] == 2 else -x
        return tf.sin(y)
    """
    compiled = compile_body(define(text))
    assert compiled.called == ["Sin"]
    assert compiled.kinds == ["tfr.call"]
    assert not compiled.program.function[0].signature.is_stateful


def test_rests_that_nothing_reaches_go(compile_body: Any, define: Define, op_def: OpDef) -> None:
    text = """
    DEBUG = False

    def body(x, k):
        if DEBUG:
            if k:
                return x
            elif k > 2:
                if k > 3:
                    return -x
                x = tf.cosh(x)
            else:
                x = tf.cos(x)
            return tf.tan(x)
        return tf.sin(x)
    """
    compiled = compile_body(define(text), op_def("Test", attrs=[K]))
    assert compiled.called == ["Sin"]
    assert len(compiled.program.function) == 1


def test_an_error_is_kept_though_its_value_is_not_used() -> None:
    text = optimized(
        """
        func.func @Test() {
          %0 = "tfr.constant"() {value = "no"} : () -> !tfr.attr
          %1 = "tfr.cast"(%0) : (!tfr.attr) -> !tfr.any
          %2 = "tfr.raise"(%1) {error = "ValueError"} : (!tfr.any) -> !tfr.any
          return
        }
        """
    )
    assert "tfr.raise" in text


def test_a_list_that_becomes_known_has_a_truth(compile_body: Any, define: Define) -> None:
    text = """
    def body(x):
        y, (values, z) = x, ([x], x)
        empty, y = (not values) | (1 >= 0.0), y
        if empty:
            return x
        return y
    """
    assert compile_body(define(text)).called == []


def test_an_index_out_of_range_is_left_to_the_expansion(compile_body: Any, define: Define) -> None:
    compiled = compile_body(define("def body(x):\n    return (x, x)[2]\n"))
    assert compiled.kinds == ["tfr.list", "tfr.constant", "tfr.item"]


def test_unpacking_another_number_is_left_to_the_expansion(
    compile_body: Any, define: Define
) -> None:
    compiled = compile_body(define("def body(x):\n    a, b = pair = x, x, x\n    return a\n"))
    assert compiled.kinds == ["tfr.list", "tfr.unpack"]


def test_constants_are_not_computed_with(compile_body: Any, define: Define) -> None:
    """What 1 + 2 is beside a tensor, and when it overflows, is the expansion's to say."""
    compiled = compile_body(define("def body(x):\n    return x * (1 + 2)\n"))
    assert compiled.kinds.count("tfr.binary") == 2


@pytest.mark.parametrize(
    ("name", "left", "right", "answer"),
    [
        ("eq", 1, 1, True),
        ("eq", "a", "b", False),
        ("eq", 1, True, None),  # equal in Python; not worth a rule
        ("eq", 0.1, 0.1, None),  # float attributes are float32
        ("ne", None, None, False),
        ("lt", -1, 0, True),
        ("ge", "a", "b", False),
        ("lt", 1, 1.5, None),
        ("is", None, 0, False),
        ("is_not", 1, None, True),
        ("is", 1, 1, None),
    ],
)
def test_comparisons_of_constants(
    name: str, left: object, right: object, answer: bool | None
) -> None:
    assert settled(name, left, right) is answer
