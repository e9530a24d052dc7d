"""The ops of a file, the files that it is made of, and how they are named."""

import os
import time

import pytest

from composite.aot import sources
from tests.composite import dense_ops

OPS = """
import tensorflow as tf
from composite import Composite
from ..numbers import FACTOR

@Composite("SourcesOp", inputs=["x: float"], outputs=["y: float"])
def op(x):
    return x * FACTOR
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A file in a package in a package, and what was found in it."""
    root = tmp_path_factory.mktemp("sources")
    inner = root / "sources_outer" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").touch()
    (inner.parent / "numbers.py").write_text("FACTOR = 2.0\n")
    (inner / "ops.py").write_text(OPS)
    return root, sources.find(inner / "ops.py")


def test_a_file_in_a_package_is_its_module(package):
    _, found = package
    assert found.module.__name__ == "sources_outer.inner.ops"
    assert [op.op_name for op in found.ops] == ["SourcesOp"]
    assert found.ops[0].place.startswith("sources_outer/inner/ops.py:")


def test_the_files_that_it_is_made_of(package):
    root, found = package
    made_of = {path.relative_to(root.resolve()).as_posix() for path in sources.files(found.module)}
    outer = "sources_outer"
    assert made_of == {
        f"{outer}/__init__.py",
        f"{outer}/numbers.py",
        f"{outer}/inner/__init__.py",
        f"{outer}/inner/ops.py",
    }


def test_names_do_not_depend_on_where_a_process_starts(package):
    assert sources.file_in_package("sources_outer/inner/ops.py") == "sources_outer/inner/ops.py"
    assert dense_ops.__name__ == "tests.composite.dense_ops"  # though tests/ is no package
    assert sources.file_in_package("tests/composite/dense_ops.py") == "dense_ops.py"
    assert sources.file_in_package("no/such/file.py") == "no/such/file.py"
    assert sources.module_in_package("sources_outer.inner.ops") == "sources_outer.inner.ops"


def test_a_file_that_was_edited_after_its_import_is_known(package):
    root, first = package
    path = root / "sources_outer" / "numbers.py"
    assert first.is_as_on_disk()  # whatever its age: it was read by this very call
    again = sources.find(root / "sources_outer" / "inner" / "ops.py")
    assert again.module is not None
    for file in sources.files(again.module):
        os.utime(file, (0, 0))
    assert again.is_as_on_disk()
    os.utime(path, (time.time(), time.time()))
    assert not again.is_as_on_disk()


@pytest.mark.parametrize("name", ["missing.py", "folder", "notes.txt"])
def test_what_is_no_python_file(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(FileNotFoundError, match="is not a Python file"):
        sources.find(tmp_path / name)


def test_an_op_by_its_name(package):
    _, found = package
    assert sources.named(found.ops, "op") is sources.named(found.ops, "SourcesOp")
    with pytest.raises(LookupError, match="there is no op 'other'; there are op"):
        sources.named(found.ops, "other")


def test_a_library_has_ops():
    with pytest.raises(ValueError, match="no ops are given"):
        sources.find([])
    with pytest.raises(TypeError, match="len.* is not an op: decorate it with @Composite"):
        sources.find([dense_ops.dense, len])  # type: ignore[list-item]
