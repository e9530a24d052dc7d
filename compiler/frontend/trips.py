"""How a trip of a loop ends, and which values it passes to the next.

Not for: building the loop (loops.py), `return` in it and `else` (desugar.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from composite.compiler.frontend.bindings import Translation
from composite.compiler.frontend.exits import Exit
from composite.compiler.tfr import dialect


class LoopExit(Exit):
    """The end of a trip: the values that the next one starts with.

    Attributes:
        changed: the carried names to which a trip gave another static type.
        node: the loop in the source; `loop` is the one that is built, `values` what a trip gives.
        hidden: the names that the front end has added and that the end of a trip reads.
    """

    def __init__(
        self, translation: Translation, node: Any, names: Sequence[str], types: Sequence[str]
    ) -> None:
        self.types = tuple(types)
        self.changed: set[str] = set()
        self.hidden: tuple[str, ...] = ()
        self._translation = translation
        self.node = node
        self.loop: Any = None
        self.values: list[Any] = []
        self._names = names
        self._starts = {name: translation.environment[name] for name in names}

    def returned(self, _node: Any) -> NoReturn:
        """Refuse: desugar.py has made a `break` of it."""
        raise AssertionError("a return in a loop is written out before it is translated")

    def ended(self, by_break: bool) -> list[Any]:
        """End a trip, and the loop if it is by `break`."""
        carried = [self._carried(name) for name in self._names]
        return [*self.head(by_break), *carried][-len(self.types) :] if self.types else []

    def fall_off(self) -> list[Any]:
        """End a trip that comes to the end of the body."""
        return self.ended(by_break=False)

    def joined(self, results: list[Any]) -> list[Any]:
        """Return the results as they are: each path has cast them."""
        return results

    def head(self, by_break: bool) -> list[Any]:
        """Return the values that the loop carries besides those of names."""
        raise NotImplementedError

    def _carried(self, name: str) -> Any:
        index = len(self.types) - len(self._names) + self._names.index(name)
        binding = self._translation.environment[name]
        self._translation.same_class(name, self._starts[name], binding, self.node)
        value = self._translation.carried(binding, self.node)
        if self.types[index] not in ("any", dialect.name_of(value)):
            self.changed.add(name)
        return self._translation.builder.cast(value, self.types[index])


class ForExit(LoopExit):
    """Carries the index of the item; a `break` sets it to the number of items."""

    def __init__(
        self, translation: Translation, node: Any, names: Sequence[str], types: Sequence[str]
    ) -> None:
        super().__init__(translation, node, names, types)
        self.index, self.count = self.hidden = (".index", ".count")

    def head(self, by_break: bool) -> list[Any]:
        """Return the index of the next item."""
        environment, builder = self._translation.environment, self._translation.builder
        if by_break:
            return [environment[self.count]]
        return [builder.binary("add", environment[self.index], builder.constant(1))]


class WhileExit(LoopExit):
    """Carries its predicate if the loop has a `break`: False once that was reached."""

    def head(self, by_break: bool) -> list[Any]:
        """Return the predicate."""
        if len(self.types) == len(self._names):
            return []
        return [self._translation.builder.constant(not by_break)]
