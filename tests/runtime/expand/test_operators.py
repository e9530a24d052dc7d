"""Operators against Python's own on known values, and against TensorFlow's on tensors."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.programs import Program, expand, run_expansion

pytestmark = pytest.mark.many_cases

_numbers = itertools.count()

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
BITS: dict[str, Callable[[Any, Any], Any]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}
ARITHMETIC = [name for name in BINARY if name not in {"eq", "ne", "lt", "le", "gt", "ge"}]
COMPARE = [name for name in BINARY if name not in ARITHMETIC]

INTS = st.one_of(st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1))
FLOATS = st.floats(width=32)


def known(name: str, left: str, right: str) -> str:
    """An op whose output says the type and the value of `a <operator> b` for known a and b."""
    op = f"Known{name.title().replace('_', '')}{left.title()}{right.title()}{next(_numbers)}"
    p = Program(op, [], [f"a: {left}", f"b: {right}"], ["o: double"])
    p.returns(o=p.binary(name, "a", "b"))
    p.register()
    return op


def value(op: str, a: Any, b: Any) -> Any:
    """The folded value, as Python: the one constant of the expansion."""
    (const,) = expand(op, a=a, b=b).function[0].node_def
    assert const.op == "Const"
    return tf.make_ndarray(const.attr["value"].tensor)[()]


def python(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Python's result, or None where it raises or leaves what attributes can hold."""
    try:
        result = function(a, b)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    if isinstance(result, complex):
        return None
    if isinstance(result, int) and not -(2**63) <= result < 2**63:
        return None
    return float(result)


def same(got: float, want: float) -> bool:
    return bool(np.array_equal(got, want, equal_nan=True)) and (
        np.isnan(want) or np.signbit(got) == np.signbit(want)
    )


@pytest.fixture(scope="module", params=ARITHMETIC)
def arithmetic(request: pytest.FixtureRequest) -> tuple[str, dict[tuple[str, str], str]]:
    """An operator, and its op for each pair of operand types."""
    kinds = [(a, b) for a in ("int", "float") for b in ("int", "float")]
    return request.param, {(a, b): known(request.param, a, b) for a, b in kinds}


def check_folded(name: str, op: str, a: Any, b: Any) -> None:
    want = python(BINARY[name], a, b)
    if want is None:
        with pytest.raises(tf.errors.InvalidArgumentError):
            value(op, a, b)
        return
    got = value(op, a, b)
    if name == "pow" and np.isfinite(want) and isinstance(want, float):
        np.testing.assert_allclose(got, want, rtol=1e-15)
    else:
        assert same(got, want), (a, b, got, want)


@settings(max_examples=150, deadline=None)
@given(a=INTS, b=INTS)
def test_ints(arithmetic: tuple[str, dict[tuple[str, str], str]], a: int, b: int) -> None:
    name, ops = arithmetic
    if name == "pow" and abs(a) > 1 and b > 200:
        return  # Python would compute a number of many digits before we can say it is too large
    check_folded(name, ops["int", "int"], a, b)


@settings(max_examples=150, deadline=None)
@given(a=FLOATS, b=FLOATS)
def test_floats(arithmetic: tuple[str, dict[tuple[str, str], str]], a: float, b: float) -> None:
    name, ops = arithmetic
    if name == "pow":
        return  # libm's pow against CPython's: see test_float_powers
    check_folded(name, ops["float", "float"], a, b)


@settings(max_examples=100, deadline=None)
@given(a=st.integers(-1000, 1000), b=FLOATS)
def test_mixed(arithmetic: tuple[str, dict[tuple[str, str], str]], a: int, b: float) -> None:
    name, ops = arithmetic
    if name == "pow":
        return
    check_folded(name, ops["int", "float"], a, b)
    check_folded(name, ops["float", "int"], b, a)


@pytest.mark.parametrize(
    ("a", "b"), [(2.0, 0.5), (-2.0, 3.0), (0.0, -1.0), (-8.0, 1 / 4), (2.0, -1.0), (1.0, np.inf)]
)
def test_float_powers(a: float, b: float) -> None:
    check_folded("pow", known("pow", "float", "float"), a, b)


@pytest.fixture(scope="module", params=COMPARE)
def compared(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A comparison, and an op that gives it as a bool for an int and a float."""
    op = f"Compare{request.param.title()}{next(_numbers)}"
    p = Program(op, [], ["a: int", "b: float"], ["o: bool"])
    p.returns(o=p.compare(request.param, "a", "b"))
    p.register()
    return request.param, op


@settings(max_examples=100, deadline=None)
@given(a=INTS, b=st.one_of(FLOATS, INTS.map(float)))
def test_compare_int_with_float(compared: tuple[str, str], a: int, b: float) -> None:
    name, op = compared
    b = float(np.float32(b))
    assert value(op, a, b) == BINARY[name](a, b)


@pytest.mark.parametrize("name", BITS)
def test_bits(name: str) -> None:
    op = f"Bits{name.title()}{next(_numbers)}"
    p = Program(op, [], ["a: int", "b: int"], ["o: int64"])
    p.returns(o=p.binary(name, "a", "b"))
    p.register()
    for a, b in itertools.product([-7, -1, 0, 1, 6, 2**40, -(2**62)], [-3, 0, 1, 5, 62, 70]):
        want = python(BITS[name], a, b)
        if want is None:
            with pytest.raises(tf.errors.InvalidArgumentError):
                value(op, a, b)
        else:
            assert value(op, a, b) == BITS[name](a, b)


@pytest.mark.parametrize(
    ("name", "a", "b", "want"),
    [
        ("add", "ab", "c", "abc"),
        ("in", "b", "abc", True),
        ("not_in", "b", "abc", False),
        ("lt", "a", "b", True),
        ("eq", "a", "a", True),
        ("ne", None, "a", True),
        ("is", None, None, True),
        ("is_not", "a", None, True),
        ("eq", tf.float32, tf.float32, True),
        ("in", tf.float32, [tf.int32, tf.float32], True),
        ("eq", [1, 2], [1, 2.0], True),
        ("ne", [1, 2], [1], True),
        ("add", [1], [2], [1, 2]),
        ("mul", [1, 2], 2, [1, 2, 1, 2]),
        ("mul", 2, "ab", "abab"),
    ],
)
def test_other_known_values(name: str, a: Any, b: Any, want: Any) -> None:
    op = f"Other{next(_numbers)}"
    p = Program(op, [], [], ["o: bool"])

    def constant(v: Any) -> str:
        return p.list(*map(constant, v)) if isinstance(v, list) else p.const(v)

    result = p.binary(name, constant(a), constant(b))
    p.returns(o=result if isinstance(want, bool) else p.compare("eq", result, constant(want)))
    p.register()
    (const,) = expand(op).function[0].node_def
    assert bool(tf.make_ndarray(const.attr["value"].tensor)) is (
        want if isinstance(want, bool) else True
    )


def on_tensors(name: str, dtype: tf.DType, out: tf.DType) -> str:
    op = f"On{next(_numbers)}"
    p = Program(op, [f"x: {dtype.name}", f"y: {dtype.name}"], [], [f"o: {out.name}"])
    p.returns(o=p.binary(name, "x", "y"))
    p.register()
    return op


@pytest.mark.parametrize("dtype", [tf.int32, tf.int8, tf.float32, tf.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", [n for n in BINARY if n != "pow"])
def test_tensors_as_tensorflow_has_them(name: str, dtype: tf.DType) -> None:
    x = np.array([7, -7, 7, -7, 0], dtype.as_numpy_dtype)
    y = np.array([2, 2, -2, -2, 3], dtype.as_numpy_dtype)
    want = BINARY[name](tf.constant(x), tf.constant(y))
    got = run_expansion(expand(on_tensors(name, dtype, want.dtype)), x, y)[0]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["and", "or", "xor", "eq", "ne"])
def test_bool_tensors(name: str) -> None:
    x, y = np.array([[False, True], [False, True]]), np.array([[False, False], [True, True]])
    want = {**BINARY, **BITS}[name](tf.constant(x), tf.constant(y))
    got = run_expansion(expand(on_tensors(name, tf.bool, tf.bool)), x, y)[0]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_bits_of_tensors(name: str) -> None:
    x, y = np.array([6, -1, 0], np.int32), np.array([3, 8, 5], np.int32)
    got = run_expansion(expand(on_tensors(name, tf.int32, tf.int32)), x, y)[0]
    np.testing.assert_array_equal(got, BITS[name](x, y))


@pytest.mark.parametrize(
    ("name", "dtype", "x", "want"),
    [
        ("neg", tf.float32, 2.0, -2.0),
        ("pos", tf.float32, 2.0, 2.0),
        ("invert", tf.int32, 5, ~5),
        ("invert", tf.bool, True, False),
        ("not", tf.bool, True, False),
    ],
)
def test_unary_on_tensors(name: str, dtype: tf.DType, x: Any, want: Any) -> None:
    op = f"Unary{next(_numbers)}"
    p = Program(op, [f"x: {dtype.name}"], [], [f"o: {dtype.name}"])
    p.returns(o=p.unary(name, "x"))
    p.register()
    assert run_expansion(expand(op), x)[0] == want


def test_a_tensor_is_not_none() -> None:
    op = f"Is{next(_numbers)}"
    p = Program(op, ["x: float"], [], ["o: bool", "n: bool"])
    none = p.const(None)
    p.returns(o=p.compare("is", "x", none), n=p.compare("ne", "x", none))
    p.register()
    assert run_expansion(expand(op), 1.0) == [False, True]


@pytest.mark.parametrize("name", ["lshift", "rshift", "in"])
def test_without_a_meaning_on_tensors(name: str) -> None:
    op = on_tensors(name, tf.int32, tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no meaning on tensors"):
        expand(op)
