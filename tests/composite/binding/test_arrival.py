"""What is done once a package has been imported, by whoever imports it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from composite.binding import arrival

PACKAGE = "package_that_arrives"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = list(sys.meta_path)
    yield folder / "__init__.py"
    sys.meta_path[:] = before
    sys.modules.pop(PACKAGE, None)


def test_it_is_done_behind_the_import_and_once(package: Path) -> None:
    seen = []
    arrival.once_imported(PACKAGE, lambda: seen.append(sys.modules[PACKAGE].value))
    assert importlib.util.find_spec(PACKAGE) is not None
    assert seen == []  # to look for it is no import
    module = importlib.import_module(PACKAGE)
    assert seen == [1]
    importlib.reload(module)
    assert seen == [1]
    assert not any(isinstance(finder, arrival._Watch) for finder in sys.meta_path)


def test_it_is_done_at_once_where_it_was_imported(package: Path) -> None:
    importlib.import_module(PACKAGE)
    seen = []
    arrival.once_imported(PACKAGE, lambda: seen.append(1))
    assert seen == [1]


def test_an_import_that_failed_is_none(package: Path) -> None:
    seen = []
    package.write_text("raise ImportError('not yet')\n")
    arrival.once_imported(PACKAGE, lambda: seen.append(1))
    with pytest.raises(ImportError, match="not yet"):
        importlib.import_module(PACKAGE)
    assert seen == []
    package.write_text("# now it can be imported\nvalue = 2\n")
    importlib.import_module(PACKAGE)
    assert seen == [1]


def test_several_may_wait_for_one_package(package: Path) -> None:
    seen = []
    arrival.once_imported(PACKAGE, lambda: seen.append(1))
    arrival.once_imported(PACKAGE, lambda: seen.append(2))
    importlib.import_module(PACKAGE)
    assert sorted(seen) == [1, 2]


def test_a_folder_without_code(package: Path) -> None:
    package.unlink()
    arrival.once_imported(PACKAGE, lambda: pytest.fail("there is nothing to execute"))
    assert importlib.util.find_spec(PACKAGE) is not None


def test_a_finder_that_is_asked_once_more_than_it_is_there(package: Path) -> None:
    arrival.once_imported(PACKAGE, lambda: None)
    finder = sys.meta_path[0]
    importlib.import_module(PACKAGE)
    assert finder not in sys.meta_path
    assert finder.find_spec(PACKAGE, None) is None  # a thread had the list before


def test_a_package_that_is_not_there() -> None:
    before = list(sys.meta_path)
    arrival.once_imported("package_that_never_arrives", lambda: pytest.fail("it did not arrive"))
    with pytest.raises(ModuleNotFoundError, match="package_that_never_arrives"):
        importlib.import_module("package_that_never_arrives")
    sys.meta_path[:] = before
