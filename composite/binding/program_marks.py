"""What a program says of itself: attributes of its first function, which compute nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_PLACES = ("_place", "_origin", "_loc")  # texts that name the author's files


@dataclass(frozen=True)
class ProgramMarks:
    """The marks of a program.

    Attributes:
        digest: of what it computes; it is the version of the op.
        place: where its function stands.
        origin: whose edit a second definition is.
        composes: the TF op that it is a composition of, or "".
        replaces: whether that one gives way to it.
    """

    digest: str = ""
    place: str = ""
    origin: str = ""
    composes: str = ""
    replaces: bool = False

    @classmethod
    def of(cls, program: Any) -> ProgramMarks:
        """The marks of a FunctionDefLibrary; those that it lacks have their defaults."""
        attrs = program.function[0].attr
        names = ("digest", "place", "origin", "composes")
        texts = {name: attrs[f"_{name}"].s.decode() for name in names if f"_{name}" in attrs}
        return cls(**texts, replaces="_replaces" in attrs and attrs["_replaces"].b)


def add_origin(program: Any, origin: str) -> None:
    """Says whose definition a program is."""
    program.function[0].attr["_origin"].s = origin.encode()


def add_composition(program: Any, op_name: str, *, replaces: bool) -> None:
    """Says that a program is a composition of a TF op."""
    attrs = program.function[0].attr
    attrs["_composes"].s = op_name.encode()
    attrs["_replaces"].b = replaces


def rename_places(
    program: Any, file_text: Callable[[str], str], module: Callable[[str], str]
) -> None:
    """Rewrites what names the author's files and modules, in functions and nodes."""
    for function in program.function:
        for attrs in (function.attr, *(node.attr for node in function.node_def)):
            for name in _PLACES:
                if name in attrs:
                    attrs[name].s = file_text(attrs[name].s.decode()).encode()
            if "_module" in attrs:
                attrs["_module"].s = module(attrs["_module"].s.decode()).encode()
