"""The page of `composite show --html`: its lines are linked, and in a browser one sees that."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from composite.cli import page
from composite.cli.main import main
from examples.signatures import ops as signatures
from tests.composite import dense_ops
from tests.composite.cli import chromium

STAGES = ["source", "mlir", "graph", "te", "tir", "asm"]
SHAPES = ["-s", "input_=batch,64", "-s", "filter_=32,64", "-s", "bias=32", "-a", "act=RELU"]


def line_of(text: str) -> int:
    """The number of the line of the op's source that has a text."""
    source, first = inspect.getsourcelines(dense_ops.dense.python_function)
    return first + next(i for i, line in enumerate(source) if text in line)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    done = CliRunner().invoke(
        main, ["show", f"{dense_ops.__file__}:dense", "--html", str(path), *SHAPES]
    )
    assert done.exit_code == 0, done.output
    return path


def test_it_has_the_stages_and_links_what_comes_from_one_line(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    assert re.findall(r"<h2>(\w+)", text) == STAGES
    linked = re.findall(r'<code [^>]*data-line="([^"]*):(\d+)"[^>]*>(.*?)</code>', text)
    lights = [content for _, number, content in linked if int(number) == line_of("BiasAdd")]
    assert len(lights) == 4  # of the source, the MLIR, the graph, the kernel's tensors
    assert all("BiasAdd" in one for one in lights)
    assert len({file for file, _, _ in linked}) == 1
    assert not re.search(r"(src|href)=", text)  # one file, and nothing from elsewhere


def test_a_line_of_the_source_that_nothing_comes_from_is_not_linked() -> None:
    text = page.page("Op", {"source": page.numbered("a\nb", "o.py", 7), "graph": [
        page.Line("x < y", "o.py:8")]})  # fmt: skip
    assert re.findall(r'data-line="o.py:(\d+)"', text) == ["8", "8"]
    assert re.findall(r'id="L(\d+)"', text) == ["7", "8"]
    assert ">x &lt; y</code>" in text


def test_an_inlined_line_is_that_of_its_call() -> None:
    lines = page.located(
        "func.func @F(%a: !t loc(#loc1)) {\n"
        "  %0 = f() loc(#loc3)\n"
        "  %1 = g() loc(#loc5)\n"
        '  %2 = h() loc("o.py":4:1)\n'
        "  %3 = i() loc(#loc)\n"
        "} loc(#loc1)\n"
        "#loc = loc(unknown)\n"
        '#loc1 = loc("o.py":1:1)\n'
        '#loc2 = loc("o.py":2:5)\n'
        '#loc3 = loc("tf.sigmoid"(#loc2))\n'
        '#loc4 = loc("helpers.py":9:1)\n'
        "#loc5 = loc(callsite(#loc4 at #loc2))\n"
    )
    assert lines == [
        page.Line("func.func @F(%a: !t) {"),
        page.Line("  %0 = f()", "o.py:2"),
        page.Line("  %1 = g()", "o.py:2"),
        page.Line("  %2 = h()", "o.py:4"),
        page.Line("  %3 = i()"),
        page.Line("}", "o.py:1"),
    ]


def test_machine_code_is_without_notes_to_debuggers() -> None:
    asm = (
        "k:\n\t.cfi_startproc\n\tpushq\t%rbp\n\t.loc\t1 0 0\n\t.long\t7\n\t.section\t.debug_loc\nx:"
    )
    assert [line.text for line in page.instructions(asm)] == [
        "k:",
        "        pushq   %rbp",
        "        .long   7",
    ]


def test_a_call_without_a_kernel_says_so_in_the_place_of_the_stages(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    call = ["-a", "shape=2,3", "-a", "dtype=string"]
    done = CliRunner().invoke(
        main, ["show", f"{signatures.__file__}:filled", "--html", str(path), *call]
    )
    assert done.exit_code == 0, done.output
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"<h2>(\w+)", text) == STAGES[:4]
    assert "there is no kernel for this call: " in text


# ---- in a browser -------------------------------------------------------------------------------

LIT = """[...document.querySelectorAll("code.on")].map(
  (code) => [code.closest("section").querySelector("h2").firstChild.data, code.textContent])"""
# Of the least readable text: how much lighter one of text and ground is, as WCAG has it.
CONTRAST = """[...document.querySelectorAll("h1, h2, p, small, code, code span")].map(
  (element) => {
    const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255).map(
      (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce(
      (sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    let ground = element;
    while (getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)") {
      ground = ground.parentElement;
    }
    const two = [getComputedStyle(element).color, getComputedStyle(ground).backgroundColor];
    const [low, high] = two.map(light).sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }).reduce((least, one) => Math.min(least, one))"""
SHOWN = """[...document.querySelectorAll("section")].filter((section) => {
  const place = section.getBoundingClientRect();
  return place.right <= innerWidth + 1 && place.bottom <= innerHeight + 1;
}).length"""


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Tab]:
    if chromium.PROGRAM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with chromium.tab() as tab:
        yield tab


@pytest.fixture
def tab(browser: chromium.Tab, written: Path) -> chromium.Tab:
    browser.resize(1680, 1050)
    browser.open("about:blank")
    browser.open(written.as_uri())
    return browser


def lit(tab: chromium.Tab) -> dict[str, list[str]]:
    """The lines that are lit, by the stage."""
    found: dict[str, list[str]] = {}
    for stage, text in tab.evaluate(LIT):
        found.setdefault(stage, []).append(text)
    return found


def test_pointing_at_a_line_lights_the_lines_of_the_other_stages(tab: chromium.Tab) -> None:
    assert lit(tab) == {}
    tab.move(f"#L{line_of('BiasAdd')}")
    found = lit(tab)
    assert [*found] == ["source", "mlir", "graph", "te"]
    assert all("BiasAdd" in line for lines in found.values() for line in lines)
    tab.move("h1")
    assert lit(tab) == {}
    tab.move("section:nth-child(3) code[data-line]")  # from another stage back to the source
    assert "MatMul" in lit(tab)["source"][0]


def test_a_click_keeps_a_line_and_brings_its_like_into_view(tab: chromium.Tab) -> None:
    tab.resize(900, 500)  # little of a stage is to be seen
    number = line_of("Tanh")
    tab.click(f"#L{number}")
    tab.move("h1")
    found = lit(tab)
    assert [*found] == ["source", "mlir"]  # this call has another activation
    assert tab.evaluate("location.hash") == f"#L{number}"
    mlir = 'document.querySelector("section:nth-child(2) code.on").getBoundingClientRect()'
    pane = 'document.querySelector("section:nth-child(2) pre").getBoundingClientRect()'
    assert tab.evaluate(f"{pane}.top <= {mlir}.top && {mlir}.bottom <= {pane}.bottom")
    tab.key("Escape")
    assert (lit(tab), tab.evaluate("location.hash")) == ({}, "")


def test_an_address_with_a_line_opens_at_it(tab: chromium.Tab, written: Path) -> None:
    tab.open("about:blank")
    tab.open(f"{written.as_uri()}#L{line_of('BiasAdd')}")
    assert "BiasAdd" in lit(tab)["graph"][0]
    tab.evaluate(
        "new Promise((done) => { addEventListener('hashchange', () => setTimeout(done));"
        f" location.hash = 'L{line_of('MatMul')}'; }})"
    )
    assert "MatMul" in lit(tab)["graph"][0]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read(tab: chromium.Tab, tmp_path: Path, scheme: str) -> None:
    tab.prefer(scheme)
    tab.click(f"#L{line_of('BiasAdd')}")
    assert tab.evaluate(CONTRAST) >= 4.5
    assert tab.evaluate(SHOWN) == len(STAGES)  # side by side, without scrolling the page
    tab.picture(tmp_path / "page.png")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
    tab.resize(420, 800)  # a telephone: below each other, and no wider than it
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
