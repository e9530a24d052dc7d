"""The README's table and picture: they are made of docs/performance.md, and are up to date."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

from benchmarks.report import compared, tables
from benchmarks.report.markdown import render
from benchmarks.report.ratios import draw
from tests.benchmarks.report.results import results
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "performance.md"
README = ROOT / "README.md"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_readme_has_the_table_and_the_picture_of_the_page(
    golden: Callable[[str, str], None],
) -> None:
    page, readme = (path.read_text(encoding="utf-8") for path in (PAGE, README))
    head, rest = readme.split("<!-- ratios -->\n")
    tail = rest.partition("<!-- /ratios -->")[2]
    table = "\n".join(compared.summary(page))
    golden(f"{head}<!-- ratios -->\n\n{table}\n<!-- /ratios -->{tail}", str(README))
    golden(draw(page), str(PAGE.with_name("ratios.svg")))
    assert "(docs/ratios.svg)" in readme


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
    svg = ElementTree.fromstring(draw(PAGE.read_text(encoding="utf-8")))
    width = float(svg.get("viewBox", "").split()[2])
    ends = [float(line.get(x, "")) for line in svg.iter(f"{SVG}line") for x in ("x1", "x2")]
    assert min(ends) >= 128 and max(ends) <= width
