"""`if`: its branches are joined in the names that are read later, or go on to the end separately.

An `if` in which a path ends is translated with its continuation in it: each branch that does not
end is followed by what comes after the `if`. Where several branches do, the continuation becomes a
function of the module, which each of them calls.

Not for: expressions that choose, `a if c else b` (expressions.py); loops (loops.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from composite.compiler.errors.names import FUNCTION_VALUE
from composite.compiler.frontend import decisions
from composite.compiler.frontend.analysis import flow
from composite.compiler.frontend.analysis.capture import Static
from composite.compiler.frontend.bindings import (
    Translation,
    class_of,
    function_name,
    is_value,
    values_in,
    with_values,
)
from composite.compiler.frontend.continuation import Continuation, Following, Shared, Translator
from composite.compiler.frontend.exits import Exit, spoken
from composite.compiler.frontend.expressions import Expressions
from composite.compiler.tfr import Fork, dialect


class StatementTranslator(Translator, Protocol):
    """What is needed of `Statements`."""

    exit: Exit

    def condition(self, node: Any) -> Any:
        """Translate the condition of a statement to a value."""

    def visit_all(self, statements: Sequence[Any]) -> None:
        """Translate statements in which no path ends."""

    def stand_ins(self, types: Sequence[str]) -> list[Any]:
        """Build values that stand in for those that a mistake has left out."""


class Branches:
    """Translates each `if` of one function; `serials` tells shared continuations apart."""

    def __init__(
        self,
        statements: StatementTranslator,
        translation: Translation,
        expressions: Expressions,
        serials: Iterator[int],
    ) -> None:
        self._statements = statements
        self._translation = translation
        self._builder = translation.builder
        self._expressions = expressions
        self._liveness = translation.body.liveness
        self._serials = serials
        # What names were bound to where each shared continuation was called first.
        self._objects: dict[str, dict[str, Any]] = {}

    def join(self, node: Any) -> None:
        """Translate an `if` in which no path ends; its results are names that are read later."""
        condition = self._statements.condition(node.test)
        taken = self._expressions.decided(condition)
        if taken is not None:
            self._statements.visit_all(node.body if taken else node.orelse)
            return
        fork = Fork(self._builder, condition)
        ends = []
        for block, branch in ((fork.then, node.body), (fork.otherwise, node.orelse)):
            with self._branch(block):
                self._statements.visit_all(branch)
                ends.append(self._translation.environment)
        names = [
            name
            for name in flow.assigned([node])
            if name in self._liveness.after[node] and all(name in end for end in ends)
        ]
        self._merge(node, fork, names, ends)

    def _merge(self, node: Any, fork: Any, names: list[str], ends: list[dict[str, Any]]) -> None:
        environment = self._translation.environment
        pairs: dict[str, tuple[Any, Any]] = {}
        for name in names:
            first, second = (end[name] for end in ends)
            if first is second or _same_object(first, second):
                environment[name] = first
                continue
            if name in self._translation.mistakes.unknown:
                environment[name] = self._statements.stand_ins(["any"])[0]
                continue
            self._refuse_choice_of_functions(node, name, first, second)
            self._translation.same_class(name, first, second, node)
            with self._builder.into(fork.then):
                value = self._translation.whole(first, node)
            with self._builder.into(fork.otherwise):
                pairs[name] = (value, self._translation.whole(second, node))
        for name, value in zip(pairs, fork.join(list(pairs.values()), spoken(pairs)), strict=True):
            class_ = class_of(ends[0][name])
            environment[name] = self._translation.from_whole(value, class_)

    def _refuse_choice_of_functions(self, node: Any, name: str, *choices: Any) -> None:
        functions = [function_name(one) for one in choices]
        if any(functions):
            spellings = " or ".join(f"`{one}`" if one else "a value" for one in functions)
            self._translation.source.fail(
                node,
                FUNCTION_VALUE,
                f"this `if` chooses a function, `{name}` is {spellings}: call it in each branch",
            )

    def path(self, node: Any, continuation: Continuation) -> list[Any]:
        """Translate an `if` in which a path ends, and all that follows, to the returned values."""
        condition = self._statements.condition(node.test)
        taken = self._expressions.decided(condition)
        if taken is not None:
            return self._statements.path(node.body if taken else node.orelse, continuation)
        shared = None
        if isinstance(continuation, Following) and (
            flow.endings(node.body) + flow.endings(node.orelse) > 1
        ):
            shared = self._share(node)
        fork = Fork(self._builder, condition)
        ends = []
        for block, branch in ((fork.then, node.body), (fork.otherwise, node.orelse)):
            with self._branch(block):
                path = self._statements.path(branch, shared or continuation)
                ends.append((path, [self._translation.whole(one, node) for one in path]))
        (given, first), (other, second) = ends
        results = fork.join(list(zip(first, second, strict=True)), self._statements.exit.names)
        if shared is not None:
            self._define_shared(shared, continuation)
        results = self._statements.exit.joined(results)
        return [self._result(node, *one) for one in zip(results, given, other, strict=True)]

    def _result(self, node: Any, value: Any, first: Any, second: Any) -> Any:
        """Return the binding of a result of the `if`, given those of the branches."""
        given = [one for one in (first, second) if not _is_raised(one)] or [first]
        self._translation.same_class("the result", given[0], given[-1], node)
        return self._translation.from_whole(value, class_of(given[0]))

    @contextlib.contextmanager
    def _branch(self, block: Any) -> Iterator[None]:
        """Translate in a block that binds names in its own environment."""
        before = self._translation.environment
        self._translation.environment = dict(before)
        with self._builder.into(block):
            yield
        self._translation.environment = before

    def _share(self, node: Any) -> Shared:
        """Name the continuation of an `if`, with what it reads.

        A name that a branch assigns is passed with type any, the others keep their types.
        """
        assigned = set(flow.assigned([node]))
        live = sorted({*self._liveness.after[node], *self._statements.exit.hidden})
        environment = self._translation.environment
        return Shared(
            f"rest_{next(self._serials)}",
            node,
            changed=tuple(name for name in live if name in assigned),
            kept=tuple(name for name in live if name not in assigned and name in environment),
        )

    def _define_shared(self, shared: Shared, continuation: Continuation) -> None:
        before = self._translation.environment
        kept = [value for name in shared.kept for value in values_in(before[name])]
        given = _unknown(kept)
        types = ["any"] * len(shared.changed) + [dialect.name_of(value) for value in given]
        function = self._builder.function(shared.function, types, self._statements.exit.types)
        block = function.regions[0].blocks[0]
        arguments, count = list(block.arguments), len(shared.changed)
        objects = self._objects[shared.function]
        pairs = zip(shared.changed, arguments[:count], strict=True)
        inside = {}
        for argument, value in zip(arguments[count:], given, strict=True):
            self._builder.note_elements(argument, self._builder.element_type(value))
        with self._builder.into(block):
            for name, value in pairs:
                inside[name] = self._translation.from_whole(value, class_of(objects.get(name)))
            values = self._inside(kept, iter(arguments[count:]))
            inside.update({name: with_values(before[name], values) for name in shared.kept})
            self._translation.environment = inside
            results = [
                self._translation.value(one, shared.branching)
                for one in continuation.emit(self._statements)
            ]
            self._builder.give_back(
                [
                    self._builder.cast(result, type_)
                    for result, type_ in zip(results, self._statements.exit.types, strict=True)
                ]
            )
        self._translation.environment = before

    def _inside(self, kept: list[Any], arguments: Iterator[Any]) -> Iterator[Any]:
        """Yield the values inside the function: its arguments, and constants as they are."""
        for value in kept:
            known = decisions.static(value)
            yield next(arguments) if known is decisions.ABSENT else self._builder.constant(known)

    def call_shared(self, shared: Shared) -> list[Any]:
        """Call a shared continuation with the values that its names have here."""
        environment = self._translation.environment
        self._note_objects(shared)
        changed = [
            self._builder.cast(self._translation.whole(environment[name], shared.branching), "any")
            if name in environment
            else self._statements.stand_ins(["any"])[0]  # scopes.py has reported it
            for name in shared.changed
        ]
        kept = [value for name in shared.kept for value in values_in(environment[name])]
        return self._builder.call_function(
            shared.function, [*changed, *_unknown(kept)], self._statements.exit.types
        )

    def _note_objects(self, shared: Shared) -> None:
        """Note which names that a branch may change are objects, which must be so on every path."""
        environment = self._translation.environment
        here = {name: environment[name] for name in shared.changed if name in environment}
        earlier = self._objects.setdefault(shared.function, here)
        for name in here.keys() & earlier.keys():
            self._translation.same_class(name, earlier[name], here[name], shared.branching)


def _is_raised(binding: Any) -> bool:
    """Say whether a path raises instead of returning a value."""
    return is_value(binding) and dialect.producer(binding, "tfr.raise") is not None


def _unknown(values: list[Any]) -> list[Any]:
    """Return the values that are not known constants."""
    return [value for value in values if decisions.static(value) is decisions.ABSENT]


def _same_object(first: Any, second: Any) -> bool:
    return (
        isinstance(first, Static) and isinstance(second, Static) and first.object is second.object
    )
