"""The graph of imports that the test of layers reads."""

from __future__ import annotations

import pytest

from tests import imports

KNOWN = ["a", "a.b", "a.b.c", "a.b.d", "a.lower", "a.lower.x", "a.lower.y", "a.lower.y.z"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a.b.c", ["a.b.c"]),
        ("import os, a.b as other", ["a.b"]),
        ("from a.b import c, something", ["a.b.c", "a.b"]),
        ("from a.b.c import something", ["a.b.c"]),
        ("from . import c", ["a.b.c"]),
        ("from .c import something", ["a.b.c"]),
        ("from .. import lower", ["a.lower"]),
        ("from ..lower.x import something", ["a.lower.x"]),
        ("from os import path", []),
        ("def f():\n    from a.b import c", ["a.b.c"]),
        ("if TYPE_CHECKING:\n    from a.b import c", ["a.b.c"]),
        ("import_module('a.b.c')", ["a.b.c"]),
        ("importlib.import_module('.c', __package__)", ["a.b.c"]),
        ("import_module(f'..lower.{family}', __package__)", ["a.lower.x", "a.lower.y"]),
        ("import_module(f'{__name__}.{one}')", ["a.b.c", "a.b.d"]),
        ("import_module(name)", []),
    ],
)
def test_every_kind_of_import_counts(text: str, found: list[str]) -> None:
    assert list(imports.imported(text, "a.b", KNOWN)) == found


def test_circles() -> None:
    graph = {
        "a": {"b", "outside"},
        "b": {"c", "d"},
        "c": {"a"},
        "d": {"e"},
        "e": {"d"},
        "f": {"a", "f"},
    }
    assert sorted(imports.circles(graph)) == [["a", "b", "c"], ["d", "e"]]
    assert imports.circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_the_graph_is_the_projects() -> None:
    graph = imports.graph()
    assert len(graph) > 200
    assert "composite.ops.registry" in graph["composite.decorator"]
    assert "composite.compiler.tvm.lower.unary" in graph["composite.compiler.tvm.table"]
    assert all(path.is_file() for path in imports.modules().values())
