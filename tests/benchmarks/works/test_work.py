"""What a work is made of, and what counts as its result."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from benchmarks.works import catalogue
from benchmarks.works.layers import LAYERS
from benchmarks.works.work import Work, work_of


def test_a_work_travels_as_json() -> None:
    work = Work("dense", (2, 3, 4), depth=6, constant=True, distinct=True)
    assert work_of(json.loads(json.dumps(asdict(work)))) == work


def test_a_square_layer_repeats_and_another_goes_there_and_back() -> None:
    square = Work("dense", (1, 256, 256)).stacked()
    assert set(square.program().steps) == {(0, 1)}
    oblong = Work("dense", (33, 17, 129)).stacked()
    assert oblong.depth % 2 == 0
    program = oblong.program()
    assert program.steps[:3] == [(0, 1), (2, 3), (0, 1)]
    assert [w.shape for w in program.weights] == [(129, 17), (129,), (17, 129), (17,)]
    assert program.y == (33, 17)


def test_distinct_layers_have_weights_of_their_own() -> None:
    work = Work("dense", (32, 1024, 1024)).stacked(distinct=True)
    program = work.program()
    assert work.depth >= 8
    assert len(program.weights) == 2 * work.depth
    assert not np.array_equal(program.weights[0], program.weights[2])


def test_what_takes_long_or_leads_nowhere_is_no_stack() -> None:
    assert Work("matmul", (2048,)).stacked().depth == 1
    conv = Work("conv 3x3", (2, 4, 4, 3, 5))
    assert conv.stacked() is conv
    assert Work("softmax", (8, 100)).stacked().depth > 1


def test_a_program_is_the_same_each_time() -> None:
    work = Work("gated", (4, 6), depth=2)
    first, second = work.program(), work.program()
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.weights[0], second.weights[0])
    assert first.x.dtype == np.float32


def test_a_wrong_result_is_refused() -> None:
    program = Work("dense", (2, 3, 4)).program()
    right = program.reference
    assert program.difference(right.astype(np.float32)) < 1e-6
    with pytest.raises(ValueError, match="away from the reference"):
        program.difference(right * 1.01)
    with pytest.raises(ValueError, match=r"shape \(3, 4\), not \(2, 4\)"):
        program.difference(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="away from the reference"):
        program.difference(np.full_like(right, np.nan))


def test_the_reference_of_a_convolution_is_a_sum_over_its_window() -> None:
    program = Work("conv 3x3", (1, 3, 4, 2, 3)).program()
    x, (filter_, bias) = program.x[0].astype(np.float64), program.weights
    corner = sum(x[i, j] @ filter_[i + 1, j + 1] for i in (0, 1) for j in (0, 1)) + bias
    np.testing.assert_allclose(program.reference[0, 0, 0], np.maximum(corner, 0))


def test_what_a_layer_costs() -> None:
    dense = LAYERS["dense"]
    assert dense.flops((2, 3, 4)) == 2 * 2 * 3 * 4 + 2 * 2 * 4
    assert dense.bytes((2, 3, 4)) == 4 * (6 + 12 + 4 + 8)
    assert LAYERS["softmax"].bytes((8, 100)) == 2 * 4 * 800


def test_a_recurrent_layer_is_a_stack_of_few_where_it_is_short() -> None:
    assert Work("LSTM", (1, 1, 128, 128)).stacked().depth == 8
    assert Work("GRU", (32, 32, 512, 512)).stacked().depth == 1
    oblong = Work("LSTM", (1, 1, 96, 200))
    assert oblong.stacked() is oblong


def test_recurrent_works_have_weights_as_inputs_and_as_constants() -> None:
    (works,) = (g for g in catalogue.groups() if g[0].title == "LSTM 1x100x128x128")
    assert [(work.depth, work.constant) for work in works] == [
        (1, False), (8, False), (1, True), (8, True),
    ]  # fmt: skip


def test_the_catalogue_holds_every_kind_once_and_less_when_quick() -> None:
    groups = list(catalogue.groups())
    works = [work for group in groups for work in group]
    assert len(set(works)) == len(works)
    assert {work.kind for work in works} == set(LAYERS)
    assert all(len({work.title for work in group}) == 1 for group in groups)
    quick = [work for group in catalogue.groups(quick=True) for work in group]
    assert 0 < len(quick) < len(works) / 5
    assert set(quick) <= set(works)
    for what, growing in catalogue.growths():
        assert len({work.kind for work in growing}) == 1, what


def test_all_works_of_a_kind_are_asked_for_by_its_name() -> None:
    for quick in (False, True):
        works = [work for group in catalogue.groups(quick=quick, kinds=["LSTM"]) for work in group]
        assert {work.kind for work in works} == {"LSTM"}
        assert {work.shape for work in works} == set(catalogue.RECURRENT)
    named = [name for name, _ in catalogue.growths(kinds=["LSTM", "softmax"])]
    assert named == ["softmax of 256 rows over the width", "LSTM of 128 over the length"]
    assert not list(catalogue.growths(kinds=["GELU"]))
