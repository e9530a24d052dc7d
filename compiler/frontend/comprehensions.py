"""[value for target in items if condition]: a loop that carries the list.

Not for: loops that are statements (loops.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import gast

from composite.compiler.errors.expressions import LIST_LENGTH
from composite.compiler.errors.statements import NOT_APART
from composite.compiler.frontend.bindings import Translation
from composite.compiler.source import Source
from composite.compiler.tfr import dialect, for_each


class Pass(Protocol):
    """What is needed of `Expressions`."""

    source: Source

    def value(self, node: Any) -> Any:
        """Translate a node to a value of the IR."""

    def iterated(self, node: Any) -> Any:
        """Translate a node to the value whose items a loop goes through."""

    def taken_apart(self, binding: Any, size: int, node: Any) -> list[Any]:
        """Take a binding apart into `size` values."""

    def choose(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """Build one of two values, or an `if` between them."""


def translate(expressions: Pass, translation: Translation, node: Any) -> Any:
    """Translate a gast.ListComp; its targets are bound inside only."""
    before = translation.environment
    translation.environment = dict(before)
    empty = translation.builder.make_list([])
    made = _Comprehension(expressions, translation, node).added(node.generators, empty)
    translation.environment = before
    return made


class _Comprehension:
    def __init__(self, expressions: Pass, translation: Translation, node: Any) -> None:
        self._expressions = expressions
        self._translation = translation
        self._builder = translation.builder
        self._node = node

    def added(self, generators: list[Any], made: Any) -> Any:
        """Append the elements that the generators produce to a list."""
        if not generators:
            element = self._builder.make_list([self._expressions.value(self._node.elt)])
            return self._builder.binary("add", made, element)
        first, *others = generators
        items = self._builder.items(self._expressions.iterated(first.iter))

        def trip(item: Any, carried: Any) -> Any:
            self._bind(first.target, item)
            return self._filtered(first.ifs, carried, lambda: self.added(others, carried))

        return for_each(self._builder, items, made, trip)

    def _filtered(self, conditions: list[Any], made: Any, add: Callable[[], Any]) -> Any:
        if not conditions:
            return add()
        return self._expressions.choose(
            self._condition(conditions[0]),
            lambda: self._filtered(conditions[1:], made, add),
            lambda: made,
        )

    def _condition(self, node: Any) -> Any:
        condition = self._expressions.value(node)
        if dialect.name_of(condition) == "tensor":
            self._expressions.source.fail(
                node,
                LIST_LENGTH,
                "a tensor decides here how long the list is, which must be known when the op is "
                "expanded; select the elements of a tensor with tf.boolean_mask",
            )
        return condition

    def _bind(self, target: Any, value: Any) -> None:
        if isinstance(target, gast.Name):
            self._translation.environment[target.id] = value
            return
        if not isinstance(target, (gast.Tuple, gast.List)):
            self._expressions.source.fail(
                target, NOT_APART, "an item of a comprehension is assigned to names"
            )
        parts = self._expressions.taken_apart(value, len(target.elts), target)
        for one, part in zip(target.elts, parts, strict=True):
            self._bind(one, part)
