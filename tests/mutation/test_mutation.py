"""Mistakes in the loops of kernels are noticed; `python -m tests.mutation` makes more of them."""

from __future__ import annotations

import pytest

from tests.mutation.kernels import SUBJECTS
from tests.mutation.kinds import KINDS
from tests.mutation.rebuilding import Places
from tests.mutation.run import Counts, drawn, places, run


def test_mistakes_follow_from_their_seed() -> None:
    subjects = ("running sum", "gather")
    assert drawn(30, 7, subjects) == drawn(30, 7, subjects)
    assert drawn(30, 7, subjects) != drawn(30, 8, subjects)


def test_each_kind_has_places_in_several_kernels() -> None:
    """A barrier is in the loops of a team alone."""
    names = ("packed product of bfloat16", "softmax of float16", "recurrence of a team")
    for kind in KINDS:
        assert sum(places(SUBJECTS[name], kind) > 0 for name in names) >= 1, kind


def test_a_mistake_is_drawn_for_each_kind_that_has_places() -> None:
    found = drawn(len(KINDS), 0, ("packed product of bfloat16",))
    there = {k for k in KINDS if places(SUBJECTS["packed product of bfloat16"], k)}
    assert {m.kind for m in found} == there


@pytest.mark.parametrize("name", ["softmax", "packed product of bfloat16", "scatter"])
def test_nothing_but_the_place_is_altered(name: str) -> None:
    """A kernel is altered at every place of a kind, and each alteration is another one."""
    functions = SUBJECTS[name].named
    seen = set()
    for number in range(min(5, places(SUBJECTS[name], "constant changed"))):
        chosen = Places(number)
        texts = [str(KINDS["constant changed"].altered(f, chosen)) for f in functions.values()]
        assert chosen.what
        seen.add("".join(texts))
    assert "".join(map(str, functions.values())) not in seen
    assert len(seen) == 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["running sum", "scatter"])
def test_mistakes_that_change_a_result_are_noticed(name: str) -> None:
    counts = Counts()
    mistakes = drawn(10, 0, (name,))
    for mistake, outcome in run(mistakes):
        counts.add(mistake, outcome)
    assert counts.missed == []
    assert f"| all | {len(mistakes)} |" in str(counts)
    assert sum(bool(one.changes) for made in counts.outcomes.values() for one in made) > 2
