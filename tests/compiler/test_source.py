from __future__ import annotations

import doctest
import functools
import importlib
import importlib.util
import linecache
import py_compile
import sys
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gast
import pytest

from composite.compiler.errors.expressions import OPERANDS
from composite.compiler.source import CompositeSyntaxError, Source, SourceNotFoundError

Define = Callable[..., Any]


def first(tree: Any, kind: type) -> Any:
    return next(node for node in gast.walk(tree) if isinstance(node, kind))


def shown(error: BaseException) -> str:
    """What a user sees, without the folder of the test."""
    lines = traceback.format_exception_only(error)
    return "".join(lines).replace(str(getattr(error, "filename", "")), "ops.py")


def decorated(function: Callable[..., Any]) -> Source:
    return Source.of(function)


def test_lines_and_columns_are_the_file_s(define: Define) -> None:
    source = Source.of(define("# a comment\n\n\ndef body(x):\n    return x + 1\n"))
    assert source.first_line == 4
    assert source.tree.lineno == 4
    assert source.position(first(source.tree, gast.BinOp)) == (5, 12)
    assert source.locate(first(source.tree, gast.BinOp)) == "ops.py:5:12"
    assert source.place == "ops.py:4"


def test_an_indented_function_keeps_its_columns() -> None:
    @decorated
    def source(x: Any) -> Any:
        return (
            """
one"""
            + x
        )

    assert source.tree.name == "source"
    returned = first(source.tree, gast.Return)
    assert source.position(returned)[1] == 9
    assert first(returned, gast.Constant).value == "\none"


def test_columns_count_characters(define: Define) -> None:
    source = Source.of(define('def body(x):\n    return "äöü" + x\n'))
    error = source.error(first(source.tree, gast.BinOp).right, OPERANDS, "no")
    assert (error.offset, error.end_offset) == (20, 21)


def test_an_error_has_the_span_of_its_node(define: Define) -> None:
    source = Source.of(define("def body(x):\n    y = x\n    return y @ x\n"))
    with pytest.raises(CompositeSyntaxError) as caught:
        source.fail(first(source.tree, gast.BinOp), OPERANDS, "one sentence")
    error = caught.value
    assert (error.lineno, error.offset, error.end_lineno, error.end_offset) == (3, 12, 3, 17)
    assert error.text == "    return y @ x\n"
    assert shown(error) == (
        '  File "ops.py", line 3\n'
        "    return y @ x\n"
        "           ^^^^^\n"
        "composite.compiler.source.CompositeSyntaxError: one sentence [C055]\n"
    )


def test_a_node_of_several_lines_is_marked_to_the_end_of_its_first(define: Define) -> None:
    source = Source.of(define("def body(x):\n    return (x +\n            1)\n"))
    error = source.error(first(source.tree, gast.BinOp), OPERANDS, "no")
    assert (error.lineno, error.offset, error.end_lineno, error.end_offset) == (2, 13, 2, 16)


def test_decorators_are_part_of_the_source(define: Define) -> None:
    source = Source.of(define("keep = lambda f: f\n\n@keep\ndef body(x):\n    return x\n"))
    assert source.text.startswith("@keep\n")
    assert source.place == "ops.py:4"


def test_exec_with_its_text_in_linecache() -> None:
    text, name = "def body(x):\n    return x\n", "<cell 1>"
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), namespace)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    try:
        source = Source.of(namespace["body"])
    finally:
        del linecache.cache[name]
    assert source.text == text
    assert source.file == "<cell 1>"


@pytest.mark.parametrize(
    "name", ["<ipython-input-3-0a1b2c3d4e5f>", "/tmp/ipykernel_4711/1234567890.py"]
)
def test_a_cell_of_a_notebook(name: str) -> None:
    """IPython names a cell in either way, and gives its text to linecache before it runs it."""
    text = "import math\n\ndef body(x):\n    return x @ 2\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(text, name, "exec"), namespace)
        source = Source.of(namespace["body"])
        # The text is kept: the cell may be gone when an error is shown.
        del linecache.cache[name]
        error = source.error(first(source.tree, gast.BinOp), OPERANDS, "no")
    finally:
        linecache.cache.pop(name, None)
    assert (error.filename, error.lineno, error.text) == (name, 4, "    return x @ 2\n")
    assert source.file == (name if name.startswith("<") else "1234567890.py")


def test_an_example_of_a_docstring() -> None:
    text = """
    >>> def body(x):
    ...     y = x
    ...     return y @ 2
    >>> source = Source.of(body)
    >>> source.file, source.place, source.text.count("\\n")
    ('<doctest cells[0]>', '<doctest cells[0]>:1', 3)
    >>> source.fail(first(source.tree, gast.BinOp), OPERANDS, "no")
    Traceback (most recent call last):
    composite.compiler.source.CompositeSyntaxError: no [C055]
    """
    names = {"Source": Source, "OPERANDS": OPERANDS, "first": first, "gast": gast}
    test = doctest.DocTestParser().get_doctest(text, names, "cells", None, 0)
    told: list[str] = []
    done = doctest.DocTestRunner().run(test, out=told.append)
    assert (done.failed, done.attempted) == (0, 4), "".join(told)


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("ops", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("where", ["__pycache__", "beside"])
def test_compiled_code_with_its_source_beside(where: str, tmp_path: Path) -> None:
    """Installed code runs from a .pyc, which may have been compiled in another folder."""
    text = "\n\ndef body(x):\n    return x @ 2\n\ndef other(x):\n    return x\n"
    built, installed = tmp_path / "built", tmp_path / "installed"
    built.mkdir()
    (built / "ops.py").write_text(text, encoding="utf-8")
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compiled = str(built / "ops.pyc") if where == "beside" else None
    py_compile.compile(str(built / "ops.py"), cfile=compiled, invalidation_mode=unchecked)
    built.rename(installed)
    module = imported(installed / ("ops.pyc" if where == "beside" else "ops.py"))
    source = Source.of(module.body)
    assert source.filename == str(installed / "ops.py")
    assert source.place == "ops.py:3"
    assert source.text == "def body(x):\n    return x @ 2\n"


def test_compiled_code_without_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source of another module of the same name is not taken for it."""
    path = tmp_path / "without_source.py"
    path.write_text("def body(x):\n    return x\n", encoding="utf-8")
    py_compile.compile(str(path), cfile=str(tmp_path / "without_source.pyc"))
    path.unlink()
    other = tmp_path / "other.py"
    other.write_text("def body(x):\n    return 2 * x\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "ops", imported(other))
    with pytest.raises(SourceNotFoundError, match=r"`body` .* was not found; .* \[C001\]"):
        Source.of(imported(tmp_path / "without_source.pyc").body)


def test_a_module_in_a_zip_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "ops.zip", "w") as archive:
        archive.writestr("zipped_ops.py", "def body(x):\n    return x\n")
    monkeypatch.syspath_prepend(str(tmp_path / "ops.zip"))
    source = Source.of(importlib.import_module("zipped_ops").body)
    assert (source.place, source.text) == ("zipped_ops.py:1", "def body(x):\n    return x\n")


def test_no_source_is_one_clear_error() -> None:
    namespace: dict[str, Any] = {}
    exec("def body(x):\n    return x\n", namespace)
    with pytest.raises(
        SourceNotFoundError, match=r"`body` \(<string>:1\) was not found; .*linecache"
    ):
        Source.of(namespace["body"])


def test_a_lambda_is_refused() -> None:
    with pytest.raises(CompositeSyntaxError, match="written with `def`"):
        Source.of(lambda x: x)


def test_a_lambda_on_the_line_of_a_def_is_refused_as_one(define: Define) -> None:
    function = define("def body(x, by=lambda a: a + 1):\n    return by(x)\n")
    with pytest.raises(CompositeSyntaxError, match="written with `def`"):
        Source.of(function.__defaults__[0])


def test_a_wrapped_function_is_refused() -> None:
    def inner(x: Any) -> Any:
        return x

    @functools.wraps(inner)
    def outer(*args: Any) -> Any:
        return inner(*args)

    with pytest.raises(TypeError, match="`inner` is wrapped by another decorator"):
        Source.of(outer)


def test_a_builtin_is_refused() -> None:
    with pytest.raises(TypeError, match="a composite is a Python function"):
        Source.of(len)


def test_a_file_that_has_changed_since_is_refused(define: Define) -> None:
    body = define("def body(x):\n    return x\n")
    path = Path(body.__code__.co_filename)
    path.write_text("def other(x, y):\n    return x\n", encoding="utf-8")
    linecache.checkcache(str(path))
    with pytest.raises(SourceNotFoundError, match="has changed since it was imported"):
        Source.of(body)


@pytest.mark.parametrize(
    ("module", "path", "expected"),
    [
        ("ops", "/home/u/ops.py", "ops.py"),
        ("pack.sub.ops", "/home/u/pack/sub/ops.py", "pack/sub/ops.py"),
        ("pack.sub", "/home/u/pack/sub/__init__.py", "pack/sub/__init__.py"),
        ("__main__", "/home/u/run.py", "run.py"),
        ("elsewhere", "/home/u/ops.py", "ops.py"),
    ],
)
def test_files_are_relative_to_the_root_of_their_module(
    module: str, path: str, expected: str
) -> None:
    text = "def body(x):\n    return x\n"
    namespace: dict[str, Any] = {"__name__": module}
    exec(compile(text, path, "exec"), namespace)
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    try:
        assert Source.of(namespace["body"]).file == expected
    finally:
        del linecache.cache[path]
