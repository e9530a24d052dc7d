"""The errors that a body raises: their messages are put together when they are raised.

A message may hold shapes of which not all dims are known: it prints those that are not as None.

Not for: text that is a value (strings.py).
"""

from __future__ import annotations

from typing import Any, Protocol

import gast

from composite.compiler.errors.statements import RAISED
from composite.compiler.frontend.analysis.capture import Static
from composite.compiler.source import Source
from composite.compiler.tfr import dialect


class Pass(Protocol):
    """What is needed of `Expressions`."""

    source: Source

    def visit(self, node: Any) -> Any:
        """Translate a node to a binding."""

    def value(self, node: Any) -> Any:
        """Translate a node to a value of the IR."""


def raised(expressions: Pass, node: Any) -> tuple[str, list[Any]]:
    """Translate what a `raise` raises: the name of the error, the pieces of its message."""
    call = node if isinstance(node, gast.Call) else None
    error = expressions.visit(node if call is None else call.func)
    if not isinstance(error, Static) or not _is_error(error.object):
        expressions.source.fail(node, RAISED, "only an error can be raised: ValueError('...')")
    name = error.object.__name__
    if call is None or not call.args:
        return name, []
    if call.keywords or len(call.args) > 1:
        expressions.source.fail(node, RAISED, "an error takes one argument here, its message")
    message = call.args[0]
    pieces = message.values if isinstance(message, gast.JoinedStr) else [message]
    return name, [_piece(expressions, piece) for piece in pieces]


def _piece(expressions: Pass, node: Any) -> Any:
    if isinstance(node, gast.FormattedValue):
        if node.conversion != -1 or node.format_spec is not None:
            return expressions.value(gast.copy_location(gast.JoinedStr(values=[node]), node))
        node = node.value
    value = expressions.value(node)
    if dialect.name_of(value) == "tensor":
        expressions.source.fail(
            node, RAISED, "a tensor has no value yet: name its shape or its dtype"
        )
    return value


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)
