"""Loops: `for` and `while`, and the static types of what they carry.

How many trips there are is known when the op expands. A loop carries the names that it assigns and
that a later trip, or what follows the loop, reads; a `for` also carries the index of its item.

Each carried name has one static type for all trips: that of its first value, or `any` where a trip
gives it another. Which types a trip gives is known only once the body is translated, since a type
follows from every operator, call and inlined function in it. So the body is translated with the
types of the first values, and again with `any` for the names that changed, to the least fixed
point. An attempt that is not the last widens at least one name, and widened names stay so when a
loop around this one is translated again: a loop over n carried names is translated at most n times
more often than the loop around it needs.

Not for: how a trip ends (trips.py), `return` in a loop and `else` (desugar.py), comprehensions
(comprehensions.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from composite.compiler.frontend import decisions
from composite.compiler.frontend.analysis import flow
from composite.compiler.frontend.bindings import Translation, like
from composite.compiler.frontend.continuation import Continuation, End
from composite.compiler.frontend.exits import Exit, spoken
from composite.compiler.frontend.trips import ForExit, LoopExit, WhileExit
from composite.compiler.tfr import UNDEFINED, Fork, Loop, dialect


class StatementTranslator(Protocol):
    """What is needed of `Statements`."""

    exit: Exit

    def path(self, statements: Sequence[Any], continuation: Continuation) -> list[Any]:
        """Translate statements and then a continuation."""

    def condition(self, node: Any) -> Any:
        """Translate the condition of a statement to a value."""

    def iterated(self, node: Any) -> Any:
        """Translate what a `for` goes through; after a mistake in it, its block still is."""

    def bind(self, target: Any, binding: Any, node: Any) -> None:
        """Bind the names of a target of an assignment."""


class Loops:
    """Translates the loops of one function."""

    def __init__(self, statements: StatementTranslator, translation: Translation) -> None:
        self._statements = statements
        self._translation = translation
        self._builder = translation.builder
        self._liveness = translation.body.liveness
        # Of each loop, the carried names whose static type has been widened to `any` so far.
        self._widened: dict[Any, set[str]] = {}

    def for_(self, node: Any) -> None:
        """Translate a `for`: a loop over the list of the items."""
        items = self._builder.items(self._statements.iterated(node.iter))
        count = self._builder.length(items)
        names = self._carried_names(node)

        def attempt(types: Sequence[str]) -> LoopExit:
            initial = self._builder.constant(0)
            exit_ = ForExit(self._translation, node, names, ["attr", *types])
            loop = self._open(names, [initial], exit_)
            with self._builder.into(loop.condition):
                more = self._builder.compare("lt", loop.condition.arguments[0], count)
            loop.decide(more)
            with self._trip(loop, names):
                index = loop.body.arguments[0]
                self._translation.environment.update({exit_.index: index, exit_.count: count})
                item = self._builder.item(items, index, self._builder.element_type(items))
                self._statements.bind(node.target, item, node)
                return self._close(loop, exit_)

        self._until_typed(node, names, attempt)

    def while_(self, node: Any) -> None:
        """Translate a `while`; with a `break` in it, its predicate is carried as well."""
        names = self._carried_names(node)
        breaks = flow.breaks(node.body)

        def attempt(types: Sequence[str]) -> LoopExit:
            head = [self._builder.constant(True)] if breaks else []
            exit_ = WhileExit(self._translation, node, names, ["attr"] * breaks + list(types))
            loop = self._open(names, head, exit_)
            with self._trip(loop, names, loop.condition):
                loop.decide(
                    self._predicate(loop, node) if breaks else self._statements.condition(node.test)
                )
            with self._trip(loop, names):
                return self._close(loop, exit_)

        self._until_typed(node, names, attempt)

    def _predicate(self, loop: Loop, node: Any) -> Any:
        """Build the predicate of a `while` with a `break`: no `break` yet, and the condition."""
        fork = Fork(self._builder, loop.condition.arguments[0])
        with self._builder.into(fork.then):
            test = self._statements.condition(node.test)
        with self._builder.into(fork.otherwise):
            stop = self._builder.constant(False)
        return fork.join([(test, stop)])[0]

    def _carried_names(self, node: Any) -> list[str]:
        live, environment = self._liveness.after[node], self._translation.environment
        return [name for name in flow.assigned([node]) if name in live and name in environment]

    def _open(self, names: Sequence[str], head: Sequence[Any], exit_: LoopExit) -> Loop:
        environment = self._translation.environment
        initial = [self._translation.carried(environment[name], exit_.node) for name in names]
        return Loop(self._builder, [*head, *initial], exit_.types)

    @contextlib.contextmanager
    def _trip(self, loop: Loop, names: Sequence[str], block: Any = None) -> Iterator[None]:
        """Translate inside a block of a loop, with the carried names bound to its arguments."""
        before, block = self._translation.environment, block or loop.body
        carried = list(block.arguments)[len(block.arguments) - len(names) :]
        pairs = zip(names, carried, strict=True)
        inside = {name: like(value, before[name]) for name, value in pairs}
        self._translation.environment = {**before, **inside}
        with self._builder.into(block):
            yield
        self._translation.environment = before

    def _close(self, loop: Loop, exit_: LoopExit) -> LoopExit:
        """Translate the body, up to the values of the next trip."""
        outer, self._statements.exit = self._statements.exit, exit_
        values = self._statements.path(exit_.node.body, End())
        self._statements.exit = outer
        exit_.loop, exit_.values = loop, values
        return exit_

    def _until_typed(
        self, node: Any, names: Sequence[str], attempt: Callable[[Sequence[str]], LoopExit]
    ) -> None:
        """Build a loop, and again with wider static types until its trips keep them."""
        environment = self._translation.environment
        widened = self._widened.setdefault(node, set())
        for name in names:
            start = decisions.static(self._translation.carried(environment[name], node))
            if start is None or start is UNDEFINED:
                widened.add(name)  # what a name starts with before it has its value
        exit_ = self._attempt(node, names, attempt)
        while exit_.changed:
            if exit_.changed <= widened:
                raise AssertionError(f"translating a loop again widens none of {exit_.changed}")
            widened |= exit_.changed
            exit_ = self._attempt(node, names, attempt)
        hidden = [""] * (len(exit_.types) - len(names))
        results = exit_.loop.join(exit_.values, [*hidden, *spoken(names)])
        pairs = zip(names, results[len(results) - len(names) :], strict=True)
        environment.update({name: like(value, environment[name]) for name, value in pairs})

    def _attempt(
        self, node: Any, names: Sequence[str], attempt: Callable[[Sequence[str]], LoopExit]
    ) -> LoopExit:
        environment, widened = self._translation.environment, self._widened[node]
        starts = [self._translation.carried(environment[name], node) for name in names]
        return attempt(
            [
                "any" if name in widened else dialect.name_of(start)
                for name, start in zip(names, starts, strict=True)
            ]
        )
