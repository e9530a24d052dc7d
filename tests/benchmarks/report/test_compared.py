"""The ratios are read back from the page as they were written into it."""

from __future__ import annotations

import pytest

from benchmarks.report import compared
from benchmarks.report.markdown import render
from tests.benchmarks.report.results import results
from tests.conftest import ROOT


def test_the_works_of_a_page_are_those_of_its_results() -> None:
    works = compared.read(render(results()))
    assert [(work.family, work.name, work.eager) for work in works] == [
        ("Dense", "dense 32x64x64, a call, weights as inputs", True),
        ("Dense", "dense 32x64x64, a node of 64, weights as inputs", False),
        ("Conv 3x3", "conv 3x3 2x8x8x3x4, a call, weights as inputs", True),
    ]
    # A work that a peer has no time for has no ratio for it; one below 1 is bold on the page.
    assert [sorted(work.ratios) for work in works] == [
        ["TensorFlow"],
        ["ONNX Runtime", "TensorFlow"],
        ["TensorFlow"],
    ]
    assert works[1].ratios["ONNX Runtime"] < 1 < works[1].ratios["TensorFlow"]


def test_a_page_without_ratios_is_refused() -> None:
    with pytest.raises(ValueError, match="no table of layers beside the peers"):
        compared.read("# Performance\n")


def test_the_medians_agree_with_the_summary_of_the_page() -> None:
    page = (ROOT / "docs" / "performance" / "avx2.md").read_text(encoding="utf-8")
    works = compared.read(page)
    for line in compared.summary(page)[2:-1]:
        peer, every, *_ = (cell.strip() for cell in line.strip("|").split("|"))
        assert f"| {peer} | {len(works)} | {every} (" in page
