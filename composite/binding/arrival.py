"""What is to be done once a package of others is imported, by whoever imports it.

Not for packages that this one needs: those are imported where they are used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def once_imported(name: str, then: Callable[[], None]) -> None:
    """Calls `then` when the package `name` has been imported: at once if it has been already."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Watch(name, then))


class _Watch(MetaPathFinder):
    """Finds a package as the other finders do, and learns when it was executed."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        finders = list(sys.meta_path)
        if self not in finders:  # another thread has just imported it
            return None
        for finder in finders[finders.index(self) + 1 :]:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:  # a folder without code has none
                    self._observe(spec.loader)
                return spec
        return None

    def _observe(self, loader: Any) -> None:
        """Has the loader of one spec call `then` behind the package's own code."""
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._then()

        loader.exec_module = exec_module
