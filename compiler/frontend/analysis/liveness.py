"""Liveness: which names are read after an `if`, or after a trip of a loop.

Only these are results of the `if`, or carried by the loop.

It is computed before translation, backwards over the body, so that no branch is visited twice.
Not for: whether a name is bound when it is read (scopes.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gast

from composite.compiler.frontend.analysis.flow import loads, names, targets

_LOOPS = (gast.For, gast.While)


class Liveness:
    """`after[node]` are the names that may be read after the gast.If or the trip of a loop `node`.

    A `break` or `continue` counts as reading all names that the loop carries.
    """

    def __init__(self, definition: Any) -> None:
        self.after: dict[Any, frozenset[str]] = {}
        self._head: frozenset[str] = frozenset()
        # Nothing asks what is live before the first branch or loop.
        branching = (index for index, one in enumerate(definition.body) if _branches(one))
        self._statements(definition.body[next(branching, len(definition.body)) :], frozenset())

    def _statements(self, statements: Sequence[Any], live: frozenset[str]) -> frozenset[str]:
        for statement in reversed(statements):
            live = self._statement(statement, live)
        return live

    def _statement(self, statement: Any, live: frozenset[str]) -> frozenset[str]:
        if isinstance(statement, gast.If):
            self.after[statement] = live
            branches = [self._statements(b, live) for b in (statement.body, statement.orelse)]
            return frozenset().union(*branches, loads(statement.test))
        if isinstance(statement, _LOOPS):
            return self._loop(statement, live)
        if isinstance(statement, (gast.Break, gast.Continue)):
            return self._head
        if isinstance(statement, (gast.Return, gast.Raise)):
            return frozenset(loads(statement))
        # The old value of `x` in `x += 1` is read though its Name is a Store.
        read = set(loads(statement))
        if isinstance(statement, gast.AugAssign):
            read.update(targets(statement))
        return (live - set(targets(statement))) | read

    def _loop(self, node: Any, live: frozenset[str]) -> frozenset[str]:
        """Go through the body until the set of carried names is stable: twice."""
        outer = self._head
        is_for = isinstance(node, gast.For)
        own = frozenset(names(node.target)) if is_for else frozenset()
        head = live if is_for else live | frozenset(loads(node.test))
        while True:
            self._head = head
            wider = head | (self._statements(node.body, head) - own)
            if wider == head:
                break
            head = wider
        self._head = outer
        self.after[node] = head
        return head | frozenset(loads(node.iter)) if is_for else head


def _branches(statement: Any) -> bool:
    return isinstance(statement, (gast.If, *_LOOPS))
