"""Each symbol that the libraries take from the system is in glibc 2.27 and libstdc++ of GCC 7."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection

import composite

RUNTIME = Path(composite.__file__).parent / "runtime"
OLDEST = {"GLIBC": (2, 27), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}


def foreign_symbols(library: Path) -> dict[str, str]:
    """The version of each symbol that the library takes from another."""
    with library.open("rb") as stream:
        sections = [*ELFFile(stream).iter_sections()]
        (needed,) = (s for s in sections if isinstance(s, GNUVerNeedSection))
        (versions,) = (s for s in sections if isinstance(s, GNUVerSymSection))
        names = {
            auxiliary["vna_other"]: auxiliary.name
            for _, auxiliaries in needed.iter_versions()
            for auxiliary in auxiliaries
        }
        return {s.name: names.get(s["ndx"], "") for s in versions.iter_symbols()}


@pytest.mark.parametrize("name", ["composite_runtime", "composite_standalone"])
def test_no_symbol_is_newer_than_the_oldest_system(name: str) -> None:
    compiler = json.loads((RUNTIME / "build_info.json").read_text("utf-8"))["compiler"]
    if int(compiler.split()[1].split(".")[0]) > 12:
        pytest.skip(f"{compiler} uses symbols of newer systems, see docs/packaging.md")
    newer = {}
    symbols = foreign_symbols(RUNTIME / f"lib{name}.so")
    for symbol, version in symbols.items():
        found = re.fullmatch(r"(\w+)_([\d.]+)", version)
        if found and tuple(map(int, found[2].split("."))) > OLDEST[found[1]]:
            newer[symbol] = version
    assert symbols["dlopen"] == "GLIBC_2.2.5"
    assert newer == {}
