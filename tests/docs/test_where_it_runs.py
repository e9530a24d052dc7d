"""Each row of the table of ways in docs/where-it-runs.md names tests that hold it."""

from __future__ import annotations

import ast
import functools
import re

import pytest

from tests.conftest import ROOT


def rows() -> list[list[str]]:
    """The cells of each row, the head and its rule left out."""
    page = (ROOT / "docs" / "where-it-runs.md").read_text(encoding="utf-8")
    section = page.partition("## Ways of running")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@functools.cache
def functions_in(path: str) -> dict[str, ast.FunctionDef]:
    """The functions of a file below tests/, by name."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}


def marks(function: ast.FunctionDef) -> str:
    return " ".join(map(ast.unparse, function.decorator_list))


@pytest.mark.parametrize("row", rows(), ids=lambda row: re.sub(r"\W+", "-", row[0])[:40])
def test_a_row_names_tests_that_run(row: list[str]) -> None:
    assert len(row) == 4, row
    named = row[3].split()
    assert named, f"no test holds the row {row[0]!r}"
    for one in named:
        path, _, name = one.strip("`").partition("::")
        assert name in functions_in(path), f"{one}: there is no such test"
        assert not re.search("skip|xfail|timed", marks(functions_in(path)[name])), (
            f"{one} may not run"
        )


def test_a_row_stands_for_one_way() -> None:
    ways = [row[0] for row in rows()]
    assert len(ways) > 20
    assert len(set(ways)) == len(ways)
