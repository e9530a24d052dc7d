"""`make docs`: Sphinx builds the site without a warning, and the site has what it should."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

import composite
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        util.find_spec("furo") is None,
        reason="Sphinx and its theme are not installed: pip install 'tf-composite[docs]'",
    ),
]


def recipe(target: str) -> list[str]:
    """The command of a target of the Makefile, up to the folders that it works on."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    line = re.search(rf"^{target}:.*\n\t\$\(PY\) (.*?) \S+ docs \S+$", makefile, re.MULTILINE)
    assert line is not None
    return [sys.executable, *line[1].split()]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [*recipe("docs"), str(folder / "doctrees"), "docs", str(folder / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "-W" in command  # a warning is an error
    return folder / "site"


def test_every_page_is_there_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert {"index", "tutorial", "where-it-runs", "api"} <= pages
    for name in pages:
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img|link)[^>]*(?:src|href)="https?:', text), name


def test_every_public_name_has_its_docstring(site: Path) -> None:
    text = (site / "api.html").read_text(encoding="utf-8")
    assert set(re.findall(r'<dt class="sig[^>]* id="composite\.(\w+)">', text)) == {
        *composite.__all__
    }
    words = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())
    for name in composite.__all__:
        first = (getattr(composite, name).__doc__ or "").strip().splitlines()[0]
        assert " ".join(re.sub(r"[`*]", "", first).split()[:5]) in words, name
