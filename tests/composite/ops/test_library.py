"""A loaded library as Python sees it: its ops are attributes."""

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composite.ops.library import Library

DENSE: Any = SimpleNamespace(op_name="Dense")


def test_ops_are_attributes() -> None:
    given = {"dense": DENSE}
    library = Library("lib", Path("folder"), given)
    given.clear()  # the library keeps its own
    assert library.dense is DENSE
    assert "dense" in dir(library)
    assert "ops" in dir(library)
    assert repr(library) == "<composite library lib: dense>"
    with pytest.raises(AttributeError, match="library lib has no op 'conv': dense"):
        _ = library.conv


def test_a_library_without_ops_says_so() -> None:
    with pytest.raises(AttributeError, match="library lib has no op 'dense': none"):
        _ = Library("lib", Path("folder"), {}).dense


def test_a_copy_in_the_making_has_no_ops_yet() -> None:
    library = copy.copy(Library("lib", Path("folder"), {"dense": DENSE}))
    assert library.dense is DENSE
