"""The page that a run writes, and its cells."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import pytest

from benchmarks.report import tables
from benchmarks.report.machine import KINDS, kind_of, machine
from benchmarks.report.markdown import render
from benchmarks.rows import Row
from tests.benchmarks.report.results import results


def test_the_page(golden: Callable[[str, str], None]) -> None:
    kept = json.loads(json.dumps(results()))  # as --json keeps it and --read takes it
    golden(render(kept, "performance.svg"), "performance.md")


def test_a_page_of_one_subject_has_no_other_part() -> None:
    kept = results()
    kept["subjects"] = {"eager": kept["subjects"]["eager"]}
    kept["quick"] = False
    page = render(kept)
    assert "## Ours and the peers" not in page
    assert "## Where the kernels stand" not in page
    assert "quick" not in page
    assert "Only of these kinds" not in page
    assert "| eager call 4x8x16: kernel / MatMul | 0.812 x | 0.790..0.840 |" in page


def test_a_page_of_some_kinds_says_so() -> None:
    page = render({**results(), "kinds": ["LSTM", "GRU"]})
    assert "**Only of these kinds of layers: LSTM, GRU.**" in page


def test_models_that_were_not_timed_beside_peers_are_among_the_others() -> None:
    kept = results()
    row = Row("tagger, batch 8: best of TensorFlow / accelerated", 1.2, "x", 1.1, 1.3)
    kept["subjects"] = {"models": [asdict(row)]}
    page = render(kept)
    assert "## Models" not in page
    assert "| tagger, batch 8: best of TensorFlow / accelerated | 1.20 x | 1.10..1.30 |" in page


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.01234, "0.0123"), (1.0, "1.00"), (99.96, "100"), (12345.6, "12300")],
)
def test_three_digits(value: float, text: str) -> None:
    assert tables.number(value) == text


def test_a_ratio_below_one_stands_out() -> None:
    assert tables.ratio({"median": 0.5, "low": 0.4, "high": 0.6}) == "**0.50** (0.40..0.60)"
    assert tables.ratio({"median": 1.5, "low": 1.4, "high": 1.6}) == "1.50 (1.40..1.60)"
    assert tables.ratio(None) == tables.MISSING


def test_a_bar_within_a_cell_is_no_border() -> None:
    assert tables.table(["a", "b"], [["x | y", "1"]])[2] == r"| x \| y | 1 |"


def test_the_machine_is_told_without_its_name() -> None:
    told = machine()
    assert told["cores"] >= 1
    assert set(told) == {"cpu", "cores", "vectors", "kind", "memory_gb", "system", "python"}
    assert told["kind"] in KINDS


def test_the_kind_of_results_that_name_none_is_that_of_their_vectors() -> None:
    assert kind_of({"vectors": "AVX-512"}) == "avx512"
    assert kind_of({"vectors": "AVX-512", "kind": "amx"}) == "amx"
