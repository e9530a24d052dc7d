"""What comes after a statement, up to the end of the function.

An `if` with a `return` in it hands what follows it to the branches that go on: the end, the
statements that follow, or, where several branches go on, a function of the module.

Not for: translating statements (statements.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol


class Translator(Protocol):
    """What a rest needs of the pass over statements; all of it emits at the insertion point."""

    def path(self, statements: Sequence[Any], rest: Rest) -> list[Any]:
        """Translate statements and then a rest."""

    def call_rest(self, shared: Shared) -> list[Any]:
        """Call the function of a shared rest."""

    def fall_off(self) -> list[Any]:
        """End a path that returns nothing."""


class Rest(Protocol):
    """What comes after some statements; `finish` emits it here and gives the returned values."""

    def finish(self, translator: Translator) -> list[Any]:
        """Emit it at the insertion point."""


@dataclasses.dataclass(frozen=True)
class End(Rest):
    """The end of the function: the path returns nothing."""

    def finish(self, translator: Translator) -> list[Any]:
        """Emit it."""
        return translator.fall_off()


@dataclasses.dataclass(frozen=True)
class Following(Rest):
    """Statements, and what comes after them."""

    statements: Sequence[Any]
    after: Rest

    def finish(self, translator: Translator) -> list[Any]:
        """Emit it."""
        return translator.path(self.statements, self.after)


@dataclasses.dataclass(frozen=True)
class Shared(Rest):
    """A function of the module, which is given names; `branching` is the `if` that it follows.

    `changed` are the names that a branch may have bound anew, each one value of any type; `kept`
    are the others, which it is given as they are.
    """

    function: str
    branching: Any
    changed: tuple[str, ...]
    kept: tuple[str, ...]

    def finish(self, translator: Translator) -> list[Any]:
        """Emit it."""
        return translator.call_rest(self)
