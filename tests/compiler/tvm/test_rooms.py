"""The rooms of compiler/tvm import each other in one direction."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from tests.conftest import ROOT

TVM = ROOT / "compiler" / "tvm"
_PACKAGE = "composite.compiler.tvm"


def room_of(path: Path) -> str:
    """The folder of a module. A module of the root, or one that lists a room, is a room itself."""
    place = path.relative_to(TVM)
    if len(place.parts) == 1 or (place.name == "__init__.py" and _has_rooms(path.parent)):
        return str(place)
    return str(place.parent)


def _has_rooms(folder: Path) -> bool:
    return any((one / "__init__.py").exists() for one in folder.iterdir() if one.is_dir())


def _module(name: str) -> Path | None:
    """The file of a module of compiler/tvm; None for a name that is none."""
    place = TVM.joinpath(*name.removeprefix(_PACKAGE).strip(".").split("."))
    if place.with_suffix(".py").is_file():
        return place.with_suffix(".py")
    return place / "__init__.py" if (place / "__init__.py").is_file() else None


def _imported(path: Path) -> Iterator[Path]:
    """The modules that a module imports when it is imported itself."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_PACKAGE):
            assert node.module is not None
            for alias in node.names:
                found = _module(f"{node.module}.{alias.name}") or _module(node.module)
                assert found is not None, f"{path} imports {node.module}"
                yield found


def _rooms() -> dict[str, set[str]]:
    rooms: dict[str, set[str]] = {}
    for path in TVM.rglob("*.py"):
        own = room_of(path)
        rooms.setdefault(own, set()).update(room_of(one) for one in _imported(path))
        rooms[own].discard(own)
    return rooms


def test_no_rooms_import_each_other() -> None:
    rooms = _rooms()
    assert rooms["strategy/cpu/convolution"] >= {"strategy/cpu/product", "tir"}
    TopologicalSorter(rooms).prepare()  # raises CycleError, which names the rooms
