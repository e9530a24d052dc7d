"""Continuations: what comes after a statement, up to the end of the function.

An `if` with a `return` in it passes its continuation to the branches that do not return. That is
the end of the function, the statements that follow, or, where several branches need it, a function
of the module ("rest_0" in programs), which each of them calls.

Not for: translating statements (statements.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol


class Translator(Protocol):
    """What a continuation needs of `Statements`; everything is emitted at the insertion point."""

    def path(self, statements: Sequence[Any], continuation: Continuation) -> list[Any]:
        """Translate statements and then a continuation."""

    def call_shared(self, shared: Shared) -> list[Any]:
        """Call the function of a shared continuation."""

    def fall_off(self) -> list[Any]:
        """End a path that returns nothing."""


class Continuation(Protocol):
    """What comes after some statements."""

    def emit(self, translator: Translator) -> list[Any]:
        """Emit it at the insertion point; returns the values that the path ends with."""


@dataclasses.dataclass(frozen=True)
class End(Continuation):
    """The end of the function: the path returns nothing."""

    def emit(self, translator: Translator) -> list[Any]:
        """Emit it."""
        return translator.fall_off()


@dataclasses.dataclass(frozen=True)
class Following(Continuation):
    """Statements, and what comes after them."""

    statements: Sequence[Any]
    after: Continuation

    def emit(self, translator: Translator) -> list[Any]:
        """Emit it."""
        return translator.path(self.statements, self.after)


@dataclasses.dataclass(frozen=True)
class Shared(Continuation):
    """A continuation that is a function of the module, with names as its parameters.

    Attributes:
        function: its name.
        branching: the `if` that it follows.
        changed: the names that a branch may have rebound; each is passed as one value of type any.
        kept: the other names that it reads; they are passed with the types that they have.
    """

    function: str
    branching: Any
    changed: tuple[str, ...]
    kept: tuple[str, ...]

    def emit(self, translator: Translator) -> list[Any]:
        """Emit it."""
        return translator.call_shared(self)
