"""Proofs about integers: what they find, and that they find nothing which is not so."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from composite.compiler.tvm.ir.dims import Dim, Poly
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.proof.polynomials import divide, long_division, rounded


def known(**at_least: int) -> tuple[Integers, dict[str, Poly]]:
    integers = Integers()
    atoms = {name: integers.atom(name) for name in at_least}
    for name, least in at_least.items():
        integers.learn(atoms[name] - least)
    return integers, atoms


def test_the_last_element_of_a_row_is_inside() -> None:
    integers, a = known(rows=0, columns=0, row=0, column=0)
    integers.learn(a["rows"] - 1 - a["row"])
    integers.learn(a["columns"] - 1 - a["column"])
    index = a["row"] * a["columns"] + a["column"]
    size = a["rows"] * a["columns"]
    assert integers.is_at_least(index)
    assert integers.is_at_least(size - 1, index)
    assert not integers.is_at_least(size - 2, index)


def test_a_fact_is_forgotten_with_its_scope() -> None:
    integers, a = known(n=0)
    with integers.scope():
        integers.learn(a["n"] - 16)
        assert integers.is_at_least(a["n"], 16)
    assert not integers.is_at_least(a["n"], 1)


def test_fractions_are_rounded() -> None:
    integers, a = known(n=1, v=0)
    vectors = integers.quotient(a["n"] + 15, 16)
    assert vectors is not None
    integers.learn(vectors - 1 - a["v"])
    assert integers.is_at_least(a["n"] - 1, a["v"] * 16)  # a vector begins inside
    assert not integers.is_at_least(a["n"] - 16, a["v"] * 16)  # but need not end there


def test_rows_and_columns_are_looked_at_apart() -> None:
    integers, a = known(size=0, task=0, rows=1, row=0, column=0)
    integers.learn(a["size"] - 1 - a["column"])
    at = a["task"] * a["rows"] + a["row"]
    integers.learn(a["size"] - 1 - at)
    index = at * a["size"] + a["column"]
    assert integers.is_at_least(a["size"] * a["size"] - 1, index)
    assert not integers.is_at_least(a["size"] * a["size"] - 2, index)
    assert not integers.is_at_least(a["size"] * a["size"] - 1, index + a["rows"])
    with integers.scope():
        integers.learn(a["size"] * -1)  # it is 0: nothing is in it
        assert not integers.is_at_least(-1, a["size"] * a["size"])


@pytest.mark.parametrize("least", [0, 1])
def test_a_column_may_pass_its_row_by_nothing(least: int) -> None:
    integers, a = known(rows=0, columns=0, row=0, column=0)
    integers.learn(a["rows"] - 1 - a["row"])
    integers.learn(a["columns"] - least - a["column"])
    index = a["row"] * a["columns"] + a["column"]
    assert integers.is_at_least(a["rows"] * a["columns"] - 1, index) == (least == 1)


def test_what_is_proven_of_a_constant_says_nothing_of_the_next() -> None:
    integers, a = known(n=0, m=0)
    far = a["n"] * 3 + a["m"] * a["n"]
    with integers.scope():
        integers.learn(a["n"] - 8)
        assert [integers.is_at_least(far, least) for least in (20, 24, 25, 23)] == [1, 1, 0, 1]
    assert [integers.is_at_least(far, least) for least in (24, 20, 1, 0)] == [0, 0, 0, 1]


def test_a_question_is_asked_again_when_more_is_known() -> None:
    integers, a = known(n=0, m=0)
    difference = a["m"] * a["m"] - a["n"] * a["m"]
    assert not integers.is_at_least(difference)
    with integers.scope():
        integers.learn(a["m"] - a["n"])
        assert integers.is_at_least(difference)
        assert not integers.is_at_least(difference, 1)
    assert not integers.is_at_least(difference)


def test_a_quotient_is_the_same_one_where_more_is_known() -> None:
    integers, a = known(n=0)
    size = integers.maximum(1, a["n"])
    blocks = integers.quotient(a["n"] + size - 1, size)
    assert blocks is not None and not integers.is_at_least(blocks, 1)
    with integers.scope():
        integers.learn(a["n"] - 1)
        assert integers.quotient(a["n"] + size - 1, size) == blocks
        assert integers.is_at_least(blocks, 1) and integers.is_at_least(1, blocks)
        assert not integers.is_at_least(blocks, 2)
    assert not integers.is_at_least(blocks, 1)


def test_a_case_that_what_is_known_excludes_is_none() -> None:
    integers, a = known(n=0, k=0)
    count = integers.either([(a["n"], [a["k"] - 3]), (0, [a["k"] * -1 + 2])])
    assert not integers.is_at_least(a["k"] + count * -1, count * -1 + 3)
    with integers.scope():
        integers.learn(count - 1)
        assert integers.is_at_least(a["n"], count) and integers.is_at_least(count, a["n"])
        assert not integers.is_at_least(count, 2)
    assert not integers.is_at_least(count, a["n"])


def test_a_quotient_of_what_may_be_0_is_none() -> None:
    integers, a = known(n=0, d=0)
    assert integers.quotient(a["n"], a["d"]) is None
    assert integers.quotient(a["n"] - 1, 4) is None
    assert integers.quotient(a["n"], a["d"] + 1) is not None


def test_what_is_chosen_not_to_be_zero() -> None:
    integers, a = known(n=0)
    data = integers.atom("data")
    assert integers.is_nonzero(a["n"] + 1) and integers.is_nonzero(-3)
    assert not integers.is_nonzero(a["n"]) and not integers.is_nonzero(data)
    below = integers.either([(data, [data * -1 - 2]), (1, [data + 1])])
    safe = integers.either([(data, [data - 1]), (below, [data * -1])])
    assert integers.is_nonzero(safe)
    assert not integers.is_nonzero(safe + 1)
    assert not integers.is_nonzero(integers.either([(data, [data * -1]), (1, [data - 1])]))


def test_a_remainder_is_below_its_divisor() -> None:
    integers, a = known(n=0, d=1)
    left = integers.remainder(a["n"], a["d"])
    assert left is not None
    assert integers.is_at_least(a["d"] - 1, left)
    quotient = integers.quotient(a["n"], a["d"])
    assert quotient is not None
    assert integers.with_remainders(a["n"] - a["d"] * quotient) == left


def test_one_of_two_values_is_as_large_as_both_allow() -> None:
    integers, a = known(n=3, k=0)
    chosen = integers.either([(a["k"], [a["n"] - 1 - a["k"]]), (7, [])])
    assert integers.is_at_least(a["n"] + 7, chosen)
    assert not integers.is_at_least(a["n"] - 1, chosen)


def test_a_quotient_of_a_minimum_is_rounded_before_it_is_multiplied() -> None:
    """Panels of two vectors, of at most four: two of them."""
    integers, a = known(n=0, k=0, depth=1)
    panels = integers.quotient(integers.minimum(4, a["n"]) + 1, 2)
    assert panels is not None
    panel = integers.atom("panel")
    integers.learn(panel)
    integers.learn(panels - 1 - panel)
    integers.learn(a["depth"] - 1 - a["k"])
    index = (panel * (a["depth"] + 1) + a["k"]) * 8 + 7
    assert integers.is_at_least((a["depth"] + 1) * 16 - 1, index)
    assert not integers.is_at_least((a["depth"] + 1) * 15 - 1, index)


def test_a_minimum_is_below_both_and_tells_of_both() -> None:
    integers, a = known(n=0, m=0)
    least = integers.minimum(a["n"], a["m"])
    assert integers.is_at_least(a["n"], least)
    assert integers.is_at_least(a["m"], least)
    assert not integers.is_at_least(least, 1)
    integers.learn(least - 1)
    assert integers.is_at_least(a["m"], 1)


def test_no_factor_of_a_product_is_0_that_is_not() -> None:
    integers, a = known(n=0, m=0)
    integers.learn(a["n"] * a["m"] - 1)
    assert integers.is_at_least(a["n"], 1)
    assert integers.is_at_least(a["m"], 1)
    assert not integers.is_at_least(a["m"], 2)


def test_an_atom_stands_for_one_integer() -> None:
    integers, _ = known(n=0)
    with pytest.raises(ValueError, match="stands for two"):
        integers.atom("n")


def test_polynomials_are_divided() -> None:
    _, a = known(n=0, m=0)
    n, m = a["n"], a["m"]
    assert divide(n * m + n, m + 1) == n
    assert divide(n * m + 1, m) is None
    assert long_division(n * m * 2 + n + 3, m * 2 + 1) == (n, 3)
    assert rounded(n * 4 + m * -8 + 7) == n + m * -2 + 1


@pytest.mark.parametrize("seed", range(40))
def test_what_is_proven_holds_for_all_values(seed: int) -> None:
    """Random facts and questions, held against every value of four atoms."""
    draw = random.Random(seed)
    integers, a = known(p=0, q=0, r=0, s=0)
    atoms = list(a.values())
    made: list[tuple[str, Dim, Dim, Dim]] = []

    def polynomial() -> Dim:
        total: Dim = draw.randint(-4, 4)
        for _ in range(draw.randint(1, 3)):
            total = total + draw.choice(atoms) * draw.randint(-3, 3)
        return total + draw.choice(atoms) * draw.choice(atoms) * draw.randint(0, 1)

    for _ in range(3):
        x, y = polynomial(), polynomial()
        kind = draw.choice(["min", "max", "quotient", "remainder", "either"])
        y = draw.randint(1, 5) if kind in {"quotient", "remainder"} else y
        results: dict[str, Callable[[Dim, Dim], Dim | None]] = {
            "min": integers.minimum,
            "max": integers.maximum,
            "quotient": integers.quotient,
            "remainder": integers.remainder,
            "either": lambda x, y: integers.either([(x, [x - y * 2]), (y, [y * 2 - x - 1])]),
        }
        found = results[kind](x, y)
        if isinstance(found, Poly) and len(found.terms) == 1 and len(found.terms[0][0]) == 1:
            made.append((kind, x, y, found))
            atoms.append(found)
    facts = [polynomial() for _ in range(3)]
    for fact in facts:
        integers.learn(fact)
    asked = [polynomial() for _ in range(15)]
    questions = [question + more for question in asked for more in (3, 0, 1)]
    answers = [integers.is_at_least(question) for question in questions]
    for values in itertools.product(range(6), repeat=4):
        at = dict(zip(a, values, strict=True))
        for kind, x, y, found in made:
            assert isinstance(found, Poly)
            operands = _at(x, at), _at(y, at)
            ((name,),), (factor,) = zip(*found.terms, strict=True)
            at[name] = _RESULTS[kind](*operands) // factor
        if all(_at(fact, at) >= 0 for fact in facts):
            for question, answer in zip(questions, answers, strict=True):
                assert not answer or _at(question, at) >= 0, (str(question), at)


_RESULTS: dict[str, Callable[[int, int], int]] = {
    "min": min,
    "max": max,
    "quotient": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "either": lambda x, y: x if x >= y * 2 else y,
}


def _at(p: Dim, values: dict[str, int]) -> int:
    if isinstance(p, int):
        return p
    total = 0
    for monomial, c in p.terms:
        total += c * math.prod(values[atom] for atom in monomial)
    return total
