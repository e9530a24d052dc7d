"""The examples of README.md and of every page of docs/ run, and print what the pages show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from composite.cli.main import main
from tests.conftest import ROOT
from tests.docs.pages import Output, Page, blocks

# Pages whose examples other tests run, and which: errors, tables, doctests, measurements.
ELSEWHERE = {
    "docs/errors.md": "tests/compiler/errors/test_catalogue.py",
    "docs/kernels.md": "tests/compiler/tvm/test_page.py",
    "docs/lint.md": "tests/composite/linting/test_remedies.py",
    "docs/language.md": "tests/docs/test_language.py",
}
# What changes this process for good: an op of TensorFlow's that is replaced.
ALONE = {"docs/compositions.md"}

_run: dict[str, Page] = {}


def documents() -> dict[str, str]:
    """The text of every document."""
    named = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md")]
    paths = [*named, *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("examples/*/*.md"))]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def with_examples() -> list[str]:
    """The pages that have something to run."""
    kinds = {name: {block.kind for block in blocks(text)} for name, text in documents().items()}
    return [name for name in kinds if kinds[name] & {"python", "console"} and name not in ELSEWHERE]


def test_pages_that_are_run_elsewhere_are() -> None:
    assert ELSEWHERE.keys() <= documents().keys()
    assert [test for test in ELSEWHERE.values() if not (ROOT / test).exists()] == []


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def run(name: str, home: Path) -> Page:
    """A page, run unless it was."""
    if name not in _run:
        folder = home / name.replace("/", "-")
        folder.mkdir()
        _run[name] = Page(name, folder)
        _run[name].run(lambda other: run(other, home))
    return _run[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in with_examples() if name not in ALONE])
def test_a_page_runs_and_prints_what_it_shows(
    name: str, home: Path, pytestconfig: pytest.Config
) -> None:
    page = run(name, home)
    if pytestconfig.getoption("--update-golden"):
        (ROOT / name).write_text(page.corrected(), encoding="utf-8")
        return
    for wrong in page.mismatches():
        line = page.text[: wrong.start].count("\n") + 1
        pytest.fail(f"{name}:{line} shows\n{wrong.shown}\nand there came\n{wrong.came}")


@pytest.mark.parametrize("name", sorted(ALONE))
def test_a_page_runs_in_a_process_of_its_own(name: str, home: Path, run_python: Any) -> None:
    run_python(
        "import sys\nfrom pathlib import Path\nfrom tests.docs.pages import Page\n"
        f"page = Page({name!r}, Path(sys.argv[1]))\npage.run({{}}.__getitem__)\n"
        "assert not page.mismatches(), page.mismatches()",
        str(home),
    )


def test_a_mentioned_command_has_the_options_that_it_is_given() -> None:
    text = "\n".join(documents().values())
    mentioned = re.findall(r"`composite ([a-z]+)([^`]*)`", text)
    assert {"build", "check", "show", "explain", "bench"} <= {command for command, _ in mentioned}
    for command, rest in mentioned:
        known = {option for param in main.commands[command].params for option in param.opts}
        assert set(re.findall(r"(?<!\S)--?[a-z][\w-]*", rest)) <= known, (
            f"composite {command}{rest}"
        )


def test_a_mentioned_variable_is_read_somewhere() -> None:
    folders = [ROOT / "composite", ROOT / "compiler"]
    kinds = ("*.py", "*.cc")
    sources = [path for folder in folders for kind in kinds for path in folder.rglob(kind)]
    sources += (ROOT / "bazel").glob("*.bzl")
    read = "".join(path.read_text(encoding="utf-8") for path in sources)
    text = "\n".join(documents().values())
    names = set(re.findall(r"`(COMPOSITE_[A-Z_]+)", text))
    assert "COMPOSITE_JIT" in names
    assert [name for name in sorted(names) if f'"{name}"' not in read] == []


def same(shown: str, came: str) -> bool:
    return Output(0, 0, shown, came).agrees()


def test_outputs_are_compared_but_for_numbers_and_verdicts() -> None:
    measured = "Op -> kernel: kernel Op_0123456789abcdef for shapes [3]: 3.1 us, against 5 us; ..."
    other = "Op -> expansion: the kernel was not faster: 9 us, against 5 us for the expansion"
    assert same(measured, other)
    assert not same(measured, "Op -> expansion: an input is empty")
    assert same("a  1.5e-06\n━━━\n", "a 2\n")
    assert not same("Mul = Mul(x)", "Mul = Sub(x)")
    assert same("kernels: ... compiled", "kernels: 1, 2\n3 compiled")
