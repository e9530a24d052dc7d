"""`==` and `!=` of shapes that do not fit are a scalar: their rank follows from dims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.runtime.programs import Program, expand, ops_of, run_expansion

Unique = Callable[[str], str]


def any_differs(op: str, operator: str = "ne", other: str = "y") -> None:
    """An op that reduces `x <operator> y` over all of its axes, or `x <operator> -x`."""
    p = Program(op, ["x: float", "y: float"], [], ["o: bool"])
    compared = p.binary(operator, "x", other if other == "y" else p.unary("neg", "x"))
    axes = p.call("Range", start=0, limit=p.emit("tfr.rank", [compared]), delta=1)
    p.returns(o=p.call("Any", input=compared, reduction_indices=axes))
    p.register()


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(("operator", "unfit"), [("eq", False), ("ne", True)])
def test_an_expansion_of_shapes_that_fit_serves_no_others(
    operator: str, unfit: bool, unique: Unique
) -> None:
    op = unique("Differs")
    any_differs(op, operator)
    # The first is made of ranks 2 and 2, as the second is.
    cases = [((4, 3), (4, 3), not unfit), ((4, 3), (2, 3), unfit), ((4, 3), (1, 3), not unfit)]
    for first, second, want in cases:
        expansion = expand(op, [first, second])
        assert "Rank" not in ops_of(expansion)
        assert run_expansion(expansion, zeros(*first), zeros(*second)) == [want]


def test_dims_that_are_unknown_may_not_fit(unique: Unique) -> None:
    op = unique("Differs")
    any_differs(op)
    cases: list[Any] = [[(None, 3), (None, 3)], [(None, None), (3, None)], [(3,), (None, None)]]
    for shapes in cases:
        assert "Rank" in ops_of(expand(op, shapes)), shapes
    unknown = expand(op, [(None, 3), (None, 3)])
    assert run_expansion(unknown, zeros(4, 3), zeros(2, 3)) == [True]
    assert run_expansion(unknown, zeros(4, 3), zeros(4, 3)) == [False]


def test_a_dim_fits_itself_and_one(unique: Unique) -> None:
    op = unique("Negated")
    any_differs(op, other="-x")
    expansions = [expand(op, [(rows, 3), (1,)]) for rows in (2, 7, None)]
    assert all("Rank" not in ops_of(expansion) for expansion in expansions)
    # Ranks alone decide it.
    assert len({expansion.function[0].signature.name for expansion in expansions}) == 1
    one = unique("Differs")
    any_differs(one)
    assert "Rank" not in ops_of(expand(one, [(1, 1), (None, None)]))
    assert "Rank" not in ops_of(expand(one, [(), (None, None)]))
