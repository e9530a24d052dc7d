"""value[...]: the parts of a subscript, as the IR encodes them, a letter each.

Not for: what a part means for a list or a tensor; the expansion decides that.
"""

from __future__ import annotations

from typing import Any, Protocol

import gast

from composite.compiler.errors.expressions import SUBSCRIPT
from composite.compiler.source import Source
from composite.compiler.tfr import Builder, dialect


class Pass(Protocol):
    """What is needed of `Expressions`."""

    source: Source

    def value(self, node: Any) -> Any:
        """Translate a node to a value of the IR."""


def translate(expressions: Pass, builder: Builder, node: Any) -> Any:
    """Translate a gast.Subscript that is read."""
    value = expressions.value(node.value)
    type_ = dialect.name_of(value)
    parts = node.slice.elts if isinstance(node.slice, gast.Tuple) else [node.slice]
    if type_ in ("sequence", "dims", "attr"):
        return _of_list(expressions, builder, node, value, parts)
    if not parts:
        expressions.source.fail(
            node.slice, SUBSCRIPT, "an empty subscript is the tensor itself: leave it out"
        )
    letters, values = [], []
    for part in parts:
        letter, operands = _part(expressions, builder, part)
        letters.append(letter)
        values.extend(operands)
    if letters.count("e") > 1:
        expressions.source.fail(node.slice, SUBSCRIPT, "a subscript has one `...` at most")
    return builder.subscript(value, "".join(letters), values)


def _of_list(expressions: Pass, builder: Builder, node: Any, value: Any, parts: list[Any]) -> Any:
    if len(parts) == 1 and isinstance(parts[0], gast.Slice):
        return builder.subscript(value, "s", _bounds(expressions, builder, parts[0]))
    if any(isinstance(part, gast.Slice) for part in parts):
        expressions.source.fail(
            node.slice, SUBSCRIPT, "a list is indexed with one integer or one slice"
        )
    index = expressions.value(node.slice)
    if dialect.name_of(index) not in ("attr", "any"):
        expressions.source.fail(
            node.slice, SUBSCRIPT, "an index is an integer that is known when the op expands"
        )
    return builder.item(value, index)


def _part(expressions: Pass, builder: Builder, node: Any) -> tuple[str, list[Any]]:
    if isinstance(node, gast.Slice):
        return "s", _bounds(expressions, builder, node)
    if isinstance(node, gast.Constant) and node.value is Ellipsis:
        return "e", []
    if isinstance(node, gast.Constant) and node.value is None:
        return "n", []
    index = expressions.value(node)
    if dialect.name_of(index) in ("sequence", "dims"):
        expressions.source.fail(
            node,
            SUBSCRIPT,
            "a tensor is not indexed with a list: call tf.gather, or write the parts out",
        )
    return "i", [index]


def _bounds(expressions: Pass, builder: Builder, node: Any) -> list[Any]:
    return [
        builder.constant(None) if bound is None else expressions.value(bound)
        for bound in (node.lower, node.upper, node.step)
    ]
