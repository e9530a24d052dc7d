"""docs/language.md: its examples run, its tables are what the compiler and the runtime do."""

from __future__ import annotations

import doctest
import itertools
import linecache
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

import composite
from composite.compiler import library
from composite.compiler.library.page import table
from composite.compiler.source import CompositeSyntaxError

PATH = Path(__file__).resolve().parents[2] / "docs" / "language.md"
TEXT = PATH.read_text(encoding="utf-8")
SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sections() -> dict[str, tuple[int, str]]:
    """The sections by their headings: the offset and text of each, and what comes before all."""
    starts = [(0, "")] + [(found.start(), found[1]) for found in SECTION.finditer(TEXT)]
    ends = [start for start, _ in starts[1:]] + [len(TEXT)]
    return {name: (start, TEXT[start:end]) for (start, name), end in zip(starts, ends, strict=True)}


def examples(section: str) -> doctest.DocTest:
    """The examples of a section, at their lines, after those that all of them begin with."""
    parser, found = doctest.DocTestParser(), []
    for name in ("", section):
        offset, text = sections()[name]
        for block in BLOCK.finditer(text):
            line = TEXT[: offset + block.start(1)].count("\n")
            parsed = parser.get_examples(block[1])
            for example in parsed:
                example.lineno += line
            found.extend(parsed)
    return doctest.DocTest(found, {"__name__": "language"}, section, str(PATH), 0, TEXT)


@pytest.mark.parametrize("section", [name for name in sections() if name])
def test_examples(section: str) -> None:
    told: list[str] = []
    flags = doctest.ELLIPSIS
    with composite.options(backend="tf"):
        done = doctest.DocTestRunner(optionflags=flags).run(examples(section), out=told.append)
    assert done.attempted > 4 and done.failed == 0, "".join(told)


def test_the_library_is_the_one_that_there_is(golden: Callable[[str, str], None]) -> None:
    head, rest = TEXT.split("<!-- library -->\n")
    tail = rest.partition("<!-- /library -->")[2]
    made = f"{head}<!-- library -->\n\n{table(library.entries())}\n\n<!-- /library -->{tail}"
    golden(made, str(PATH))


def operators() -> Iterator[tuple[str, list[str]]]:
    """The rows of the table of operators: the operator, and a cell for each kind of operand."""
    rows = re.findall(
        r"^\| `(.*)` \| (.*) \| (.*) \| (.*) \|$", sections()["Values and operators"][1], re.M
    )
    for operator, *cells in rows:
        yield operator.replace("\\|", "|"), cells


_numbers = itertools.count()


def kinds(expression: str, output: str, dtype: tf.DType) -> list[str]:
    """The ops that an expression of x and y expands to; the number of their rows is not known."""
    number = next(_numbers)
    file = f"<table {number}>"
    text = f"def body(x, y):\n    return {expression}\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": "table"}
    exec(compile(text, file, "exec"), scope)
    declared = composite.Composite(
        f"DocTable{number}", ["x: T", "y: T"], derived_attrs=["T: type"], outputs=[f"z: {output}"]
    )
    # A truth is that of one element.
    spec = tf.TensorSpec([] if expression == "not x" else [None, 3], dtype)
    return [node.op for node in declared(scope["body"]).expand(spec, spec).function[0].node_def]


def check(cell: str, make: Callable[[], list[str]]) -> None:
    """Compare a cell of the table with what an expression becomes."""
    code = re.search(r"C\d{3}", cell)
    named = re.findall(r"`([A-Z]\w+)`", cell)
    if code is not None:
        with pytest.raises(CompositeSyntaxError, match=rf"\[{code[0]}\]"):
            make()
    elif cell.startswith("error"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="no meaning on|unsupported"):
            make()
    elif cell.startswith("waits"):
        with pytest.raises(tf.errors.OpError, match="not yet: dim 0 of input 'x' is not known"):
            make()
    elif cell == "itself":
        assert make() in ([], ["Shape", "Const", "Const", "StridedSlice"])
    else:
        assert make()[-1] in named


COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in", "is")


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize(("operator", "cells"), list(operators()), ids=str)
def test_the_table_of_operators(operator: str, cells: list[str]) -> None:
    known, dims, tensors = cells
    unary = operator.endswith("x")
    answer = operator in COMPARISONS or operator.startswith("not")
    output = "bool" if answer else "double" if operator == "/" else "int64"
    if operator == "not x":
        dim = "not (x.shape[0] == 3)"
    else:
        dim = operator.replace("x", "x.shape[0]") if unary else f"x.shape[0] {operator} 3"
    if operator == "in":
        dim = "x.shape[0] in (1, 2)"
    check(dims, lambda: kinds(dim, output, tf.int32))
    if operator == "is":
        assert kinds("x is None", "bool", tf.int32) == ["Const"]
        return
    tensor = operator if unary else f"x {operator} y"
    dtypes = (tf.int32, tf.bool) if "Logical" in tensors or "NotEqual`" in tensors else (tf.int32,)
    for dtype in dtypes:
        kind = "bool" if answer else "double" if operator == "/" else "T"
        check(tensors, lambda d=dtype, k=kind: kinds(tensor, k, d))  # type: ignore[misc]
    if known.startswith("C0"):
        check(known, lambda: kinds(f"2 {operator} 3", "int64", tf.int32))


def test_the_table_has_every_operator_of_the_language() -> None:
    from composite.compiler.frontend import operators as tables

    count = len(tables.BINARY) + len(tables.COMPARE) + len(tables.UNARY)
    assert len(dict(operators())) == count - 2  # `not in` and `is not` are beside `in` and `is`
