"""The folders of the C++ runtime stand on one another in one order, and no two units on each other.

A unit is what has one name: x.h and x.cc, and sources like x_part.cc that have no header of their
own. A compiler accepts circles between units as long as the headers have none.
"""

from __future__ import annotations

import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests import rooms

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "composite" / "runtime"
SOURCES = sorted(p.relative_to(RUNTIME) for p in RUNTIME.glob("*/*") if p.suffix in (".h", ".cc"))
FOLDERS = rooms.runtime_rooms()  # each may include those before it, and itself
GENERATED = {Path("base/record_tables.h")}  # by the build
# The C API, and the rooms that implement it.
PUBLIC = {
    Path("c_api.h"): {"api", "standalone"},
    Path("hybrid_c_api.h"): {"api"},
    Path("library_c_api.h"): {"api"},
    Path("standalone_c_api.h"): {"standalone"},
}
INCLUDE = re.compile(r'^#include ([<"])([^">]+)[">]', re.MULTILINE)
OURS = "composite/runtime/"


@cache
def includes(path: Path) -> list[str]:
    """What a source includes, in order: ours in quotes, C's and C++'s as <...>."""
    text = (RUNTIME / path).read_text(encoding="utf-8")
    return [f"<{name}>" if mark == "<" else name for mark, name in INCLUDE.findall(text)]


def ours(path: Path) -> list[Path]:
    """The headers of the runtime's rooms that a source includes, relative to the runtime."""
    found = [Path(n.removeprefix(OURS)) for n in includes(path) if n.startswith(OURS)]
    return [header for header in found if header not in PUBLIC]


def unit_of(path: Path) -> str:
    """The name of a source without its suffix, or the one that begins it and has a header."""
    name = path.with_suffix("")
    for end in range(len(name.name), 0, -1):
        shorter = name.with_name(name.name[:end])
        if (end == len(name.name) or name.name[end] == "_") and shorter.with_suffix(
            ".h"
        ) in SOURCES:
            return str(shorter)
    return str(name)


def everything(path: Path) -> set[str]:
    """What a source includes, and what that includes."""
    found: set[str] = set()
    pending = [path]
    while pending:
        new = set(includes(pending.pop())) - found
        found |= new
        pending += [p for n in new if (p := Path(n.removeprefix(OURS))) in SOURCES]
    return found


def test_every_folder_has_its_place() -> None:
    assert {p.parts[0] for p in SOURCES} == set(FOLDERS)


def test_a_folder_includes_those_before_it() -> None:
    for path in SOURCES:
        below = FOLDERS[: FOLDERS.index(path.parts[0]) + 1]
        for header in ours(path):
            assert header in SOURCES or header in GENERATED, (
                f"{path} includes {header}, which is not there"
            )
            assert header.parts[0] in below, f"{path} includes {header}"


def test_the_c_api_is_implemented_in_its_rooms() -> None:
    for header, rooms_of_it in PUBLIC.items():
        users = {p.parts[0] for p in SOURCES if f"{OURS}{header}" in includes(p)}
        assert users <= rooms_of_it, header


def test_no_unit_includes_itself_through_others() -> None:
    units: dict[str, set[str]] = {}
    for path in SOURCES:
        unit = unit_of(path)
        units.setdefault(unit, set()).update({unit_of(header) for header in ours(path)} - {unit})
    try:
        TopologicalSorter(units).prepare()
    except CycleError as error:
        pytest.fail("a circle: " + " <- ".join(error.args[1]))


def test_a_source_includes_its_own_header_first() -> None:
    """So that the header is compiled once with nothing before it."""
    for path in (p for p in SOURCES if p.suffix == ".cc"):
        header = path.with_suffix(".h")
        assert header not in SOURCES or includes(path)[0] == f"{OURS}{header}", path


def test_launches_and_what_runs_without_tensorflow_know_nothing_of_it() -> None:
    """Neither its headers nor what comes with them: the native tests are built without."""
    for path in (p for p in SOURCES if p.parts[0] in ("launch", "standalone")):
        own = (OURS, "<sys/")
        foreign = {n for n in everything(path) if "/" in n and not n.startswith(own)}
        assert not foreign, f"{path} comes to {foreign}"


def test_files_stay_readable() -> None:
    lengths = {p: len((RUNTIME / p).read_text("utf-8").splitlines()) for p in SOURCES}
    assert {p: n for p, n in lengths.items() if n >= 400} == {}
    assert sorted(lengths.values())[len(lengths) // 2] < 130
    for folder in FOLDERS:
        assert sum(p.parts[0] == folder for p in SOURCES) <= 30, folder
