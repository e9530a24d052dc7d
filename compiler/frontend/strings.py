"""F-strings: constants of a body, and the messages of the errors that it raises.

An f-string that is a value holds constants only. One that is a message may also hold attributes and
shapes, and is formatted when the error is raised.

Not for: other expressions (expressions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import gast

from composite.compiler.errors.expressions import FORMATTED
from composite.compiler.errors.statements import RAISED
from composite.compiler.frontend.analysis.capture import Static
from composite.compiler.frontend.bindings import known
from composite.compiler.source import Source
from composite.compiler.tfr import dialect
from composite.compiler.tfr.canonicalize import ABSENT

_CONVERSIONS: dict[str, Callable[[object], str]] = {"s": str, "r": repr, "a": ascii}


class Pass(Protocol):
    """What is needed of `Expressions`."""

    source: Source

    def visit(self, node: Any) -> Any:
        """Translate a node to a binding."""

    def value(self, node: Any) -> Any:
        """Translate a node to a value of the IR."""


def constant(expressions: Pass, node: Any) -> str:
    """Return the text of a gast.JoinedStr of constants."""
    return "".join(_text(expressions, piece) for piece in node.values)


def _text(expressions: Pass, node: Any) -> str:
    if isinstance(node, gast.Constant):
        return str(node.value)
    value = known(expressions.visit(node.value))
    if value is ABSENT or not isinstance(value, (str, int, float)):
        expressions.source.fail(
            node,
            FORMATTED,
            "an f-string can hold constants only: the value is not known before the call",
        )
    if node.conversion != -1:
        value = _CONVERSIONS[chr(node.conversion)](value)
    spec = known(expressions.visit(node.format_spec)) if node.format_spec is not None else ""
    return format(value, spec)


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
    inner = node
    if isinstance(node, gast.FormattedValue):
        if node.conversion != -1 or node.format_spec is not None:
            expressions.source.fail(
                node,
                RAISED,
                "a message is put together at the call: leave out the conversion and format",
            )
        inner = node.value
    value = expressions.value(inner)
    if dialect.name_of(value) == "tensor":
        expressions.source.fail(
            inner, RAISED, "a tensor has no value yet: name its shape or its dtype"
        )
    return value


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)
