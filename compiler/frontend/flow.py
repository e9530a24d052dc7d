"""Where statements return, and what is assigned in them.

Not for: which values are read (liveness.py) or bound (scopes.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gast


def returns(statement: Any) -> bool:
    """Say whether a `return` stands anywhere in a statement."""
    if isinstance(statement, gast.If):
        return any(returns(inner) for inner in (*statement.body, *statement.orelse))
    return isinstance(statement, gast.Return)


def endings(statements: Sequence[Any]) -> int:
    """Count the paths of `statements` that reach what stands after them.

    Counted as they are emitted: an `if` without a `return` in it is one path, because it is joined;
    one with a `return` is a path for each of its branches that goes on.
    """
    for index, statement in enumerate(statements):
        if isinstance(statement, gast.Return):
            return 0
        if isinstance(statement, gast.If) and returns(statement):
            go_on = endings(statement.body) + endings(statement.orelse)
            return endings(statements[index + 1 :]) if go_on else 0
    return 1


def targets(statement: Any) -> Iterator[str]:
    """Yield the names that a statement assigns, in the order of the text; names may repeat."""
    if isinstance(statement, gast.If):
        for inner in (*statement.body, *statement.orelse):
            yield from targets(inner)
    elif isinstance(statement, gast.Assign):
        for target in statement.targets:
            yield from _names(target)
    elif isinstance(statement, (gast.AugAssign, gast.AnnAssign)):
        yield from _names(statement.target)


def _names(target: Any) -> Iterator[str]:
    for node in gast.walk(target):
        if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Store):
            yield node.id


def assigned(statements: Sequence[Any]) -> tuple[str, ...]:
    """Return the names that statements assign, each once, in the order of the text."""
    return tuple(dict.fromkeys(name for one in statements for name in targets(one)))


def loads(expression: Any) -> Iterator[str]:
    """Yield the names that an expression reads."""
    for node in gast.walk(expression):
        if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Load):
            yield node.id
