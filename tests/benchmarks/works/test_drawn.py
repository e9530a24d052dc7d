"""Shapes that are drawn from a seed."""

from __future__ import annotations

import numpy as np

from benchmarks.works.drawn import KINDS, works


def test_a_seed_gives_the_same_works() -> None:
    assert dict(works(3)) == dict(works(3))
    assert dict(works(3)) != dict(works(4))


def test_a_kind_alone_has_the_shapes_that_it_has_among_all() -> None:
    assert dict(works(3, kinds=["LSTM"])) == {"LSTM": dict(works(3))["LSTM"]}


def test_dense_shapes_fill_their_range() -> None:
    shapes = [work.shape for seed in range(40) for work in dict(works(seed))["dense"]]
    rows, depth, columns = np.array(shapes).T
    assert (rows.min(), depth.min(), columns.min()) >= (1, 32, 32)
    assert (rows.max(), depth.max(), columns.max()) <= (512, 2048, 2048)
    assert rows.min() == 1
    assert rows.max() > 400
    assert len({int(k) % 8 for k in depth}) == 8  # odd widths as well
    middle = np.median(columns)
    assert 180 < middle < 360  # the geometric mean of 32 and 2048 is 256


def test_stacks_have_weights_of_their_own_constant_and_not() -> None:
    dense = dict(works(5))["dense"]
    assert len(dense) == KINDS["dense"].count
    assert all(work.distinct for work in dense if work.depth > 1)
    assert {work.constant for work in dense} == {True, False}
