"""The rooms of docs/architecture.md: what the page says of each, for the tests that hold it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
_ROOM = re.compile(r"^- `([\w./]+)`: .+?(?=^- |^#|\Z|\n\n)", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"`([\w./]+)`")
_RUNTIME = "composite/runtime/"


def python_rooms() -> dict[str, set[str]]:
    """For each room of Python modules, in the page's order, those that it may import."""
    found = {}
    for match in _ROOM.finditer(PAGE):
        text, name = match.group(0), match.group(1)
        if name.startswith(_RUNTIME):
            continue
        holds, said, may_import = text.partition("May import:")
        assert said and holds.strip(), f"docs/architecture.md does not say what {name} may import"
        found[name] = set(_NAME.findall(may_import))
    return found


def runtime_rooms() -> list[str]:
    """The folders of the C++ runtime, in the page's order: each includes those before it."""
    names = (match.group(1) for match in _ROOM.finditer(PAGE))
    return [n.removeprefix(_RUNTIME).rstrip("/") for n in names if n.startswith(_RUNTIME)]


def room_of(module: str) -> str:
    """The room of a module of composite or composite.compiler, as the page names it."""
    _, *parts = module.split(".")
    if not parts:
        return "composite/"
    if parts[0] != "compiler":
        is_folder = (ROOT / "composite" / parts[0]).is_dir()
        return f"composite/{parts[0]}/" if is_folder else f"composite/{parts[0]}.py"
    if len(parts) > 1 and (ROOT / "compiler" / parts[1]).is_dir():
        return f"compiler/{parts[1]}/"
    return "compiler/"
