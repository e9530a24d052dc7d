"""Which names are read after an `if`: what its branches have to hand on.

Runs before translation, backwards over the body, so that no branch is visited twice.
Not for: whether a name is bound when it is read (scopes.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gast

from composite.compiler.frontend.flow import loads, targets


class Liveness:
    """`after[node]` are the names that may be read after the gast.If `node`."""

    def __init__(self, definition: Any) -> None:
        self.after: dict[Any, frozenset[str]] = {}
        self._statements(definition.body, frozenset())

    def _statements(self, statements: Sequence[Any], live: frozenset[str]) -> frozenset[str]:
        for statement in reversed(statements):
            live = self._statement(statement, live)
        return live

    def _statement(self, statement: Any, live: frozenset[str]) -> frozenset[str]:
        if isinstance(statement, gast.If):
            self.after[statement] = live
            branches = [self._statements(b, live) for b in (statement.body, statement.orelse)]
            return frozenset().union(*branches, loads(statement.test))
        if isinstance(statement, (gast.Return, gast.Raise)):
            return frozenset(loads(statement))
        # The old value of `x` in `x += 1` is read though its Name is a Store.
        read = set(loads(statement))
        if isinstance(statement, gast.AugAssign):
            read.update(targets(statement))
        return (live - set(targets(statement))) | read
