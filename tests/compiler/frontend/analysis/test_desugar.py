"""Bodies before and after: what is left of `return` in loops, of `else`, of `assert`."""

from __future__ import annotations

import ast
import linecache
import textwrap
from typing import Any

import gast
import pytest

from composite.compiler.frontend.analysis.desugar import desugar
from composite.compiler.source import Source

ASSERTION = """
def f(x):
    assert x > 0
    return x
"""
RETURN_IN_A_LOOP = """
def f(xs):
    for x in xs:
        if x:
            return x
    return xs
"""
ELSE_OF_A_LOOP = """
def f(xs):
    while xs:
        if f(xs):
            break
    else:
        xs = g(xs)
    return xs
"""
NESTED_FUNCTION = """
def f(x):

    def g(y):
        for one in y:
            return one
        assert y, 'no y'
    return g(x)
"""
AFTER = {
    ASSERTION: """
def f(x):
    if not x > 0:
        raise AssertionError('x > 0')
    return x
""",
    RETURN_IN_A_LOOP: """
def f(xs):
    .done_1 = False
    .left_1 = UNDEFINED
    for x in xs:
        if x:
            .left_1 = x
            .done_1 = True
            break
    if .done_1:
        return .left_1
    return xs
""",
    ELSE_OF_A_LOOP: """
def f(xs):
    .broken_1 = False
    while xs:
        if f(xs):
            .broken_1 = True
            break
    if .broken_1:
        pass
    else:
        xs = g(xs)
    return xs
""",
    NESTED_FUNCTION: """
def f(x):

    def g(y):
        .done_1 = False
        .left_1 = UNDEFINED
        for one in y:
            .left_1 = one
            .done_1 = True
            break
        if .done_1:
            return .left_1
        if not y:
            raise AssertionError('no y')
    return g(x)
""",
}


def source_of(text: str) -> Source:
    names: dict[str, Any] = {}
    # Compiled and run, as the body of an op is; the text is what `inspect` finds.
    name = f"<desugar {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), names)
    return Source.of(names["f"])


def text_of(source: Source) -> str:
    return ast.unparse(gast.gast_to_ast(source.tree))


@pytest.mark.parametrize("before", AFTER, ids=["assert", "return", "else", "nested"])
def test_bodies(before: str) -> None:
    assert text_of(desugar(source_of(before))) == textwrap.dedent(AFTER[before]).strip()


@pytest.mark.parametrize("before", AFTER, ids=["assert", "return", "else", "nested"])
def test_the_source_that_is_given_stays_as_it_is(before: str) -> None:
    source = source_of(before)
    tree = gast.dump(source.tree, include_attributes=True)
    first = desugar(source)
    assert gast.dump(source.tree, include_attributes=True) == tree
    assert text_of(desugar(source)) == text_of(first)


def test_a_body_without_any_is_the_source_itself() -> None:
    source = source_of("def f(x):\n    if x:\n        return 1\n    return 2\n")
    assert desugar(source) is source
