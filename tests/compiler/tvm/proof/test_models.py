"""Examples of what is known refute what is false, and nothing that holds."""

from __future__ import annotations

import pytest

from composite.compiler.tvm.ir.dims import Dim, Poly
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.proof.models import Models
from tests.compiler.tvm.proof.test_integers import known


def refutes(models: Models, p: Dim) -> bool:
    assert isinstance(p, Poly)
    return models.refute(p)


def test_what_is_false_somewhere_is_refuted() -> None:
    integers, a = known(rows=1, task=0, row=0)
    share = integers.quotient(a["rows"] + 7, 8)
    assert share is not None
    integers.learn(share - 1 - a["task"])
    integers.learn(a["rows"] - 1 - a["task"] * 8 - a["row"])
    models = Models(integers)
    assert refutes(models, a["row"] * -1)
    assert refutes(models, share - 2)
    assert refutes(models, a["rows"] - 2 - a["task"] * 8 - a["row"])
    assert not refutes(models, a["rows"] - 1 - a["task"] * 8 - a["row"])
    assert not refutes(models, a["rows"] + 7 - share * 8)


def test_nothing_is_refuted_where_nothing_is() -> None:
    integers, a = known(n=4)
    models = Models(integers)
    with integers.scope(), models.scope(is_case=False):
        integers.learn(a["n"] * -1 + 3)
        models.learned()
        assert not refutes(models, a["n"] * -1)
    assert refutes(models, a["n"] * -1)


@pytest.mark.parametrize("is_case", [True, False])
def test_values_follow_what_is_learned(*, is_case: bool) -> None:
    integers, a = known(n=0)
    models = Models(integers)
    assert refutes(models, a["n"] - 1) and refutes(models, a["n"] * -1 + 5)
    assert isinstance(above := a["n"] + 3, Poly) and models.least(above) == 3
    with integers.scope(), models.scope(is_case=is_case):
        integers.learn(a["n"] - 16)
        models.learned()
        assert not refutes(models, a["n"] - 16)
        assert refutes(models, a["n"] * -1 + 5)
    assert models.least(above) == 3


def test_one_of_two_values_is_one_whose_facts_hold() -> None:
    integers = Integers()
    n = integers.atom("n")
    integers.learn(n)
    chosen = integers.either([(n, [n - 5]), (5, [n * -1 + 4])])
    assert not isinstance(chosen, int)
    models = Models(integers)
    assert not refutes(models, chosen - 5)
    assert refutes(models, chosen - 6) and refutes(models, n - chosen)


def test_a_fact_about_a_square_bounds_its_side() -> None:
    integers, a = known(n=2)
    integers.learn(a["n"] * a["n"] - 9)
    models = Models(integers)
    assert refutes(models, a["n"] * -1 + 40)
    assert not refutes(models, a["n"] - 3)
    assert integers.is_at_least(a["n"] * a["n"], 9)
