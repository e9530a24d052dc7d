"""The examples of README.md and of every page of docs/ run, and print what the pages show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT, Page, blocks

# What tests of their own make or run: examples of errors, tables, doctests.
ELSEWHERE = {"docs/errors.md", "docs/kernels.md", "docs/language.md", "docs/performance.md"}
# What changes this process for good: an op of TensorFlow's that is replaced.
ALONE = {"docs/compositions.md"}

_run: dict[str, Page] = {}


def with_examples() -> list[str]:
    """The pages that have something to run."""
    paths = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *ROOT.glob("examples/*/*.md")]
    names = [str(path.relative_to(ROOT)) for path in paths]
    kinds = {n: {b.kind for b in blocks((ROOT / n).read_text(encoding="utf-8"))} for n in names}
    return [name for name in names if kinds[name] & {"python", "console"} and name not in ELSEWHERE]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def run(name: str, home: Path) -> Page:
    """A page, run unless it was."""
    if name not in _run:
        folder = home / name.replace("/", "-")
        folder.mkdir()
        _run[name] = Page(name, folder)
        _run[name].run(lambda other: run(other, home).names)
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
    for wrong in page.mismatches:
        line = page.text[: wrong.start].count("\n") + 1
        pytest.fail(f"{name}:{line} shows\n{wrong.shown}\nand there came\n{wrong.came}")


@pytest.mark.parametrize("name", sorted(ALONE))
def test_a_page_runs_in_a_process_of_its_own(name: str, home: Path, run_python: Any) -> None:
    run_python(
        "import sys\nfrom pathlib import Path\nfrom tests.docs.pages import Page\n"
        f"page = Page({name!r}, Path(sys.argv[1]))\npage.run({{}}.__getitem__)\n"
        "assert not page.mismatches, page.mismatches",
        str(home),
    )
