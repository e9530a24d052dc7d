"""Each remedy removes its obstacle and computes the same; docs/lint.md has them all."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.aot import sources
from composite.compiler.tvm.read.obstacles import Obstacle
from composite.linting import remedies
from composite.linting.page import body, page

ROOT = Path(__file__).resolve().parents[3]
X = tf.constant(np.arange(36).reshape(6, 6) % 5 + 1, tf.float32)
_number = itertools.count()


def made(example: str, folder: Path) -> Any:
    """An op whose body is an example."""
    number = next(_number)
    declaration = f'@Composite("Remedy{number}", inputs=["x: float"], outputs=["y: float"])'
    lines = ["import tensorflow as tf", "from composite import Composite", "", declaration]
    text = textwrap.indent(body(example), "    ")
    path = folder / f"remedy_{number}.py"
    path.write_text("\n".join([*lines, "def example(x):", text, ""]), encoding="utf-8")
    return sources.find(path).ops[0]


@pytest.mark.parametrize("row", remedies.ROWS, ids=lambda row: row.matches)
def test_a_remedy_gives_a_kernel_that_computes_the_same(
    row: remedies.Remedy, tmp_path: Path
) -> None:
    before, after = (made(example, tmp_path) for example in (row.before, row.after))
    call = {"x": ("float32", ("n", "n"))}
    found = composite.lint(before, call)
    told = [finding.remedy for finding in found.findings if "forward" in finding.directions]
    assert row.advice in told, f"it has a kernel by now: delete the row: {found}"
    better = composite.lint(after, call)
    assert better.ok, str(better)
    np.testing.assert_allclose(before.python_function(X), after.python_function(X), rtol=1e-4)


def test_what_the_table_does_not_have_is_cut_out() -> None:
    assert remedies.of(Obstacle("Qr", "op Qr is not in the kernel table", "")) == remedies.SPLIT


def test_the_page(golden: Callable[[str, str], None]) -> None:
    golden(page(), str(ROOT / "docs" / "lint.md"))
