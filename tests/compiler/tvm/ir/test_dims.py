"""Sizes: canonical polynomials, and what cannot be decided."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composite.compiler.tvm import NotCovered
from composite.compiler.tvm.ir import dims

S0, S1 = dims.parse("s0"), dims.parse("s1")
VALUES = {"s0": 7, "s1": 5}


def number(dim: dims.Dim) -> int:
    """Return the value of a size for ``VALUES``."""
    return dims.evaluate(dims.postfix(dim), VALUES, int)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[dims.Dim, int]:
    """Draw a size and its value."""
    dim, value = draw(st.sampled_from([(S0, 7), (S1, 5), (3, 3), (0, 0), (1, 1)]))
    for _ in range(draw(st.integers(0, 4))):
        other, number_of_other = draw(st.sampled_from([(S0, 7), (S1, 5), (2, 2), (-1, -1)]))
        if draw(st.booleans()):
            dim, value = dim + other, value + number_of_other
        else:
            dim, value = dim * other, value * number_of_other
    return dim, value


@given(sizes())
def test_arithmetic_and_postfix_agree_with_numbers(pair: tuple[dims.Dim, int]) -> None:
    dim, value = pair
    assert number(dim) == value


def test_equal_sizes_are_equal_objects() -> None:
    assert (S0 + 1) * 2 == S0 * 2 + 2
    assert S0 * S1 == S1 * S0
    assert S0 - S0 == 0
    assert dims.product([S0, 3, S1]) == S1 * S0 * 3
    assert hash(S0 + S1) == hash(S1 + S0)


def test_division() -> None:
    assert dims.divide(S0 * 12, 4) == S0 * 3
    assert dims.divide(S0 * S1, S0) == S1
    assert dims.divide(S0 + 1, 2) is None
    assert number(dims.floordiv(S0, 2)) == 3
    assert number(dims.floordiv(S0, 2) * 4 + 1) == 13
    assert dims.floordiv(9, 2) == 4


@given(sizes(), st.integers(-9, 9))
def test_a_size_that_a_dim_cannot_have(pair: tuple[dims.Dim, int], size: int) -> None:
    dim, value = pair
    assert dims.may_be(dim, value)
    assert dims.may_be(dim * 6, size) == (size % 6 == 0 and dims.may_be(dim, size // 6))
    assert [n for n in range(8) if dims.may_be(S0 * 2 + S1 * 4 + 1, n)] == [1, 3, 5, 7]


def test_records_carry_postfix_tokens() -> None:
    assert dims.shape_text((S0, 1024)) == "s0,1024"
    assert dims.postfix(S0 * 2) == "s0 2 *"
    assert dims.postfix(0) == "0"


def test_broadcasting_is_decided_or_refused() -> None:
    assert dims.broadcast_shapes([(S0, 1), (3,)], "Add") == (S0, 3)
    assert dims.broadcast_shapes([(S0, 3), (S0, 1)], "Add") == (S0, 3)
    with pytest.raises(NotCovered, match="AddV2: whether sizes s0 and s1 broadcast is not known"):
        dims.broadcast(S0, S1, "AddV2")
    with pytest.raises(NotCovered, match="sizes 2 and 3 do not broadcast"):
        dims.broadcast(2, 3, "AddV2")


def test_bad_symbol() -> None:
    with pytest.raises(ValueError, match="write an int or a symbol"):
        dims.parse("batch")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (S0, "s0"),
        (S0 * 4, "s0*4"),
        (S0 * S1 * 2 + S0 + 1, "1 + s0 + s0*s1*2"),
        (S0 - S1 - 3, "-3 + s0 - s1"),
        (dims.floordiv(S0 + 1, 2) * 3, "((1 + s0) // 2)*3"),
    ],
)
def test_sizes_are_told_as_people_write_them(size: dims.Dim, text: str) -> None:
    assert f"{size}" == text
    assert f"{(size, 3)}" == f"({text}, 3)"
    with pytest.raises(NotCovered, match=f"sizes {re.escape(text)} and 7 broadcast is not known"):
        dims.broadcast(size, 7, "Add")
