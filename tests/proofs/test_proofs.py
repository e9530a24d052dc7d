"""What the prover says of random integers and functions is so; `make soak` asks for more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm.sym import Analyzer

from tests.proofs import expressions, functions


def test_questions_follow_from_their_seed() -> None:
    assert str(functions.Drawn(3).function()) == str(functions.Drawn(3).function())
    assert str(expressions.Drawn(3).integer()) == str(expressions.Drawn(3).integer())
    assert str(expressions.Drawn(3).integer()) != str(expressions.Drawn(4).integer())


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32))
def test_what_is_said_of_integers_is_so(seed: int) -> None:
    counts = expressions.Counts()
    expressions.run(seed, counts)
    assert counts.false == []


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32))
def test_what_is_said_of_functions_is_so(seed: int) -> None:
    counts = expressions.Counts()
    functions.run(seed, counts)
    assert counts.false == []


def test_most_of_what_is_so_is_proven() -> None:
    counts = expressions.Counts()
    for seed in range(40):
        expressions.run(seed, counts)
    for what in ("the least", "the most", "no divisor is 0"):
        assert counts.proven[what] > 0.75 * counts.asked[what] > 10


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_multiples_are_those_that_the_analyzer_of_tvm_says(seed: int) -> None:
    """Widths of vectors on GPUs rely on it; sizes are any integers."""
    drawn = expressions.Drawn(seed)
    values = expressions.Values(drawn.lowest)
    asked = drawn.integer()
    found = values.of(asked)[~values.fails]
    if found.size:  # it raises for a divisor that is the constant 0
        known = Analyzer().modular_set(asked)
        coeff, base = int(known.coeff), int(known.base)
        assert (found == base).all() if coeff == 0 else ((found - base) % coeff == 0).all()
