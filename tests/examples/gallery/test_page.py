"""docs/gallery.md is what the gallery holds, and what kernels cover of it."""

from __future__ import annotations

from collections.abc import Callable

from tests.conftest import ROOT
from tests.examples.gallery.calls import CALLS
from tests.examples.gallery.page import page


def test_the_page(golden: Callable[[str, str], None]) -> None:
    golden(page(), str(ROOT / "docs" / "gallery.md"))


def test_every_file_of_the_gallery_has_a_call() -> None:
    files = {path.stem for path in (ROOT / "examples" / "gallery").glob("*.py")}
    called = {call.op.python_function.__module__.rpartition(".")[2] for call in CALLS}
    assert files - {"precision"} == called
