"""The README's table and picture: they are made of the page that it names, and are up to date."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

from benchmarks.report import compared, tables
from benchmarks.report.markdown import render
from benchmarks.report.ratios import draw
from tests.benchmarks.report.results import results
from tests.conftest import ROOT

README = ROOT / "README.md"
MARK = re.compile(r"<!-- ratios: (?P<page>\S+) -->\n")
SVG = "{http://www.w3.org/2000/svg}"


def named_page() -> str:
    """The page that the README's table is made of."""
    mark = MARK.search(README.read_text(encoding="utf-8"))
    assert mark is not None
    return (ROOT / mark["page"]).read_text(encoding="utf-8")


def test_the_readme_has_the_table_and_the_picture_of_the_page(
    golden: Callable[[str, str], None],
) -> None:
    readme, page = README.read_text(encoding="utf-8"), named_page()
    head, mark, rest = MARK.split(readme)[0], MARK.search(readme), MARK.split(readme)[2]
    assert mark is not None
    tail = rest.partition("<!-- /ratios -->")[2]
    table = "\n".join(compared.summary(page))
    golden(f"{head}{mark[0]}\n{table}\n<!-- /ratios -->{tail}", str(README))
    golden(draw(page), str(ROOT / "docs" / "ratios.svg"))
    assert "(docs/ratios.svg)" in readme


def test_the_readme_has_the_table_of_models_of_the_page(golden: Callable[[str, str], None]) -> None:
    readme = README.read_text(encoding="utf-8")
    head, mark, rest = readme.partition("<!-- models: ")
    name, end, rest = rest.partition(" -->\n")
    tail = rest.partition("\n<!-- /models -->")[2]
    table = "\n".join(compared.models((ROOT / name).read_text(encoding="utf-8"))).strip()
    golden(f"{head}{mark}{name}{end}\n{table}\n\n<!-- /models -->{tail}", str(README))
    assert table.count("\n") > 5


def test_each_family_has_a_row_and_each_of_its_peers_a_marker() -> None:
    svg = ElementTree.fromstring(draw(render(results())))
    rows = [text.text for text in svg.iter(f"{SVG}text") if text.find(f"{SVG}tspan") is not None]
    assert rows == ["All layers ", "Dense ", "Conv 3x3 "]
    shapes = ("circle", "rect", "polygon")
    markers = [m for s in shapes for m in svg.iter(f"{SVG}{s}") if m.get("class", "")[0] == "p"]
    by_class = [m.get("class") for m in markers if m.get("class") != "page"]
    # The legend has one of each; then TensorFlow in three rows, ONNX Runtime in two.
    assert [by_class.count(f"p{i}") for i in range(len(tables.PEERS))] == [4, 3, 1, 1]


def test_the_axis_holds_every_ratio() -> None:
    svg = ElementTree.fromstring(draw(named_page()))
    width = float(svg.get("viewBox", "").split()[2])
    ends = [float(line.get(x, "")) for line in svg.iter(f"{SVG}line") for x in ("x1", "x2")]
    assert min(ends) >= 128 and max(ends) <= width
