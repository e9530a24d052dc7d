"""A terminal of 80 columns has a figure a line."""

from __future__ import annotations

from benchmarks.report.terminal import fit, kernels, lines
from benchmarks.roofline.ceilings import Ceilings, place
from benchmarks.rows import Row
from tests.benchmarks.report.results import results


def test_works_in_several_forms_have_their_name_once() -> None:
    rows = [
        Row("dense 1x2, a call: TensorFlow / ours", 1.5, "x"),
        Row("dense 1x2, a node of 3: PyTorch / ours", 1.234, "x"),
        Row("resident, idle", 12, "MB"),
    ]
    assert list(lines({"peers": rows})) == [
        "peers:",
        "                 dense 1x2",
        "          1.5 x  a call: TensorFlow / ours",
        "         1.23 x  a node of 3: PyTorch / ours",
        "          12 MB  resident, idle",
        "",
    ]


def test_what_breaks_its_bound_is_told_at_the_end() -> None:
    rows = [Row("a", 2.0, "x", at_most=1.5), Row("b", 2.0, "x", at_least=1.5)]
    assert list(lines({"one": rows}))[-2:] == [
        "out of bounds:",
        "            2 x  <= 1.5 wanted: a",
    ]


def test_a_long_text_keeps_its_ends() -> None:
    line = fit("1 x", "the beginning " + "and so on " * 20 + "the end")
    assert len(line) == 80
    assert "the beginning" in line and line.endswith("the end") and " ... " in line


def test_kernels_are_told_by_their_share_of_a_limit() -> None:
    subjects = results()["subjects"]
    ceilings = Ceilings.of(subjects["roofline"])
    assert ceilings is not None
    told = list(kernels(place(ceilings, subjects["peers"], "bare kernel")))
    assert told[1:] == ["            13%  memory, 20 us: dense 32x64x64"]
