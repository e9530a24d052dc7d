"""Cuts of networks, against all cuts that there are."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import pytest

from composite.autodiff import min_cut

Edges = dict[tuple[int, int], int]


def capacity(edges: Edges, side: Iterable[int]) -> int:
    inside = set(side)
    return sum(c for (a, b), c in edges.items() if a in inside and b not in inside)


@pytest.mark.parametrize("seed", range(60))
def test_no_cut_is_cheaper_and_none_as_cheap_is_smaller(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.randint(2, 8)
    pairs = list(itertools.permutations(range(count), 2))
    chosen = draw.sample(pairs, draw.randint(0, len(pairs)))
    edges = {pair: draw.choice([0, 1, 2, 3, 7]) for pair in chosen}
    source, sink = 0, count - 1
    found = min_cut.source_side(edges, source, sink)
    between = [n for n in range(count) if n not in (source, sink)]
    sides = [
        {source, *some}
        for k in range(len(between) + 1)
        for some in itertools.combinations(between, k)
    ]
    least = min(capacity(edges, side) for side in sides)
    assert capacity(edges, found) == least
    assert all(found <= side for side in sides if capacity(edges, side) == least)


def test_a_long_network_takes_no_recursion() -> None:
    edges = {(i, i + 1): 5 + i % 7 for i in range(5000)}
    edges[3000, 3001] = 1
    assert min_cut.source_side(edges, 0, 5000) == set(range(3001))


def test_a_source_without_edges() -> None:
    assert min_cut.source_side({}, "a", "b") == {"a"}
