"""docs/performance.md names every page of docs/performance/, with its medians."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.report.index import render
from benchmarks.report.machine import KINDS
from benchmarks.report.markdown import render as page
from tests.benchmarks.report.results import results
from tests.conftest import ROOT

PAGES = sorted((ROOT / "docs" / "performance").glob("*.md"))


def test_the_page(golden: Callable[[str, str], None]) -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in PAGES}
    assert texts.keys() <= set(KINDS)
    golden(render(texts), str(ROOT / "docs" / "performance.md"))


def test_each_page_is_in_the_site() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [path.stem for path in PAGES if f"\nperformance/{path.stem}\n" not in index] == []


def test_kinds_without_a_page_are_named() -> None:
    told = render({"avx512": page(results())})
    assert "| [avx512](performance/avx512.md), 3 layers | 2026-11-21: A Processor, 2 cores" in told
    assert "Without a page: avx2, amx." in told
