"""Statements of a body: assignments, `return`, `raise`, functions, and what comes after each.

A path is a run of statements up to a `return`, a `raise` or the end of a trip; translating it gives
the values that it ends with. Branches and Loops translate `if`, `for` and `while`, and call back
for the statements in them.

Not for: expressions (expressions.py), `if` (branches.py), `for` and `while` (loops.py), what a
`return` gives (exits.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gast

from composite.compiler.errors.statements import IN_PLACE
from composite.compiler.frontend import kinds, messages
from composite.compiler.frontend.analysis import flow
from composite.compiler.frontend.bindings import Instance, OnePass, Translation
from composite.compiler.frontend.branches import Branches
from composite.compiler.frontend.continuation import Continuation, End, Following, Shared
from composite.compiler.frontend.exits import Exit
from composite.compiler.frontend.expressions import Expressions
from composite.compiler.frontend.loops import Loops
from composite.compiler.frontend.recovery import UnknownError, bound_in
from composite.compiler.frontend.visitor import Visitor
from composite.compiler.source import CompositeSyntaxError
from composite.compiler.tfr import dialect


class Statements(Visitor):
    """Translates the statements of one function.

    `exit` is how a path ends at this point; `serials` tells the shared continuations of the module
    apart.
    """

    def __init__(
        self,
        translation: Translation,
        expressions: Expressions,
        exit_: Exit,
        serials: Iterator[int],
    ) -> None:
        super().__init__(translation.source)
        self._translation = translation
        self._builder = translation.builder
        self._expressions = expressions
        self.exit = exit_
        self._branches = Branches(self, translation, expressions, serials)
        self._loops = Loops(self, translation)

    def body(self) -> list[Any]:
        """Translate the whole body; returns what its paths return.

        Raises:
            CompositeSyntaxError: one that shows all mistakes in it.
        """
        mistakes = self._translation.mistakes
        try:
            results = self.path(self.source.tree.body, End())
        except CompositeSyntaxError as error:
            if self._translation.caller is not None:
                raise
            mistakes.note(self.source.tree.body[-1], error)
        mistakes.raise_all()
        return results

    def path(self, statements: Sequence[Any], continuation: Continuation) -> list[Any]:
        """Translate statements and what comes after them, up to the returned values."""
        for index, statement in enumerate(statements):
            with self._builder.at(self._translation.place(statement)), self._beyond(statement):
                if flow.ends(statement):
                    following = Following(statements[index + 1 :], continuation)
                    return self._end(statement, following if following.statements else continuation)
                self._visit(statement)
            if flow.ends(statement):
                return self.stand_ins(self.exit.types)
        return continuation.emit(self)

    def _end(self, statement: Any, continuation: Continuation) -> list[Any]:
        """Translate a statement in which a path ends, and all that follows."""
        self._skip_given_up(statement)
        if isinstance(statement, gast.Return):
            return self.exit.returned(statement)
        if isinstance(statement, gast.Raise):
            return self._raised(statement)
        if isinstance(statement, (gast.Break, gast.Continue)):
            return self.exit.ended(isinstance(statement, gast.Break))
        return self._branches.path(statement, continuation)

    def _visit(self, statement: Any) -> None:
        self._skip_given_up(statement)
        self.visit(statement)

    def _skip_given_up(self, node: Any) -> None:
        if node in self._translation.mistakes.given_up:
            raise UnknownError

    @contextlib.contextmanager
    def _beyond(self, node: Any) -> Iterator[None]:
        """Go on after the `with` on a mistake in it, as if the node bound values of type any."""
        environment, exit_ = self._translation.environment, self.exit
        with self._translation.mistakes.beyond(node):
            yield
            return
        self._translation.environment, self.exit = environment, exit_
        names = bound_in(node)
        environment.update(zip(names, self.stand_ins(["any"] * len(names)), strict=True))

    def stand_ins(self, types: Sequence[str]) -> list[Any]:
        """Build values that stand in for those that a mistake has left out."""
        return self._builder.fail("SyntaxError", [], types)

    def condition(self, node: Any) -> Any:
        """Translate the condition of a statement; after a mistake in it, its blocks still are.

        Not in an inlined function, where they are given up: with an unknown condition, a recursion
        that it should end would not.
        """
        if self._translation.caller is not None:
            self._skip_given_up(node)
            return self._expressions.value(node)
        return self._beyond_header(node, self._expressions.value)

    def iterated(self, node: Any) -> Any:
        """Translate what a `for` goes through; after a mistake in it, its block still is."""
        return self._beyond_header(node, self._expressions.iterated)

    def _beyond_header(self, node: Any, translate: Callable[[Any], Any]) -> Any:
        with self._beyond(node):
            self._skip_given_up(node)
            return translate(node)
        return self.stand_ins(["any"])[0]

    def _raised(self, node: Any) -> list[Any]:
        error, pieces = messages.raised(self._expressions, node.exc)
        return self._builder.fail(error, pieces, self.exit.types)

    def fall_off(self) -> list[Any]:
        """End a path that has no `return`."""
        return self.exit.fall_off()

    def call_shared(self, shared: Shared) -> list[Any]:
        """Call the continuation that several branches of an `if` share."""
        return self._branches.call_shared(shared)

    def visit_all(self, statements: Sequence[Any]) -> None:
        """Translate statements in which no path ends."""
        for statement in statements:
            with self._builder.at(self._translation.place(statement)), self._beyond(statement):
                self._visit(statement)

    def visit_If(self, node: Any) -> None:
        """An `if` without a `return`."""
        self._branches.join(node)

    def visit_For(self, node: Any) -> None:
        """A `for`."""
        self._loops.for_(node)

    def visit_While(self, node: Any) -> None:
        """A `while`."""
        self._loops.while_(node)

    def visit_FunctionDef(self, node: Any) -> None:
        """A function: it is translated where it is called."""
        self._translation.environment[node.name] = self._expressions.function(node)

    def visit_Assign(self, node: Any) -> None:
        """`a = b = value`; `a, b = b, a` assigns element by element."""
        value = node.value
        for target in node.targets:
            if not _takes_apart(target, value):
                break
        else:
            given = [self._expressions.visit(element) for element in value.elts]
            for binding, element in zip(given, value.elts, strict=True):
                self._one_name(node, binding, element)
            for target in node.targets:
                for name, binding in zip(target.elts, given, strict=True):
                    self.bind(name, binding, value)
            return
        binding = self._expressions.visit(value)
        self._one_name(node, binding, value)
        for target in node.targets:
            self.bind(target, binding, value)

    def _one_name(self, node: Any, binding: Any, value: Any) -> None:
        """Refuse to give an iterator two names: a pass through one uses up the other."""
        if len(node.targets) > 1 and isinstance(binding, OnePass):
            self._translation.value(binding, value)

    def bind(self, target: Any, binding: Any, node: Any) -> None:
        """Bind the names of a target of an assignment; `node` is what is assigned."""
        if isinstance(target, gast.Name):
            self._translation.environment[target.id] = binding
            return
        elements = list(target.elts)
        starred = next((i for i, one in enumerate(elements) if isinstance(one, gast.Starred)), None)
        if starred is None:
            values = self._expressions.taken_apart(binding, len(elements), node)
        else:
            after = len(elements) - starred - 1
            values = self._expressions.taken_around(binding, starred, after, node)
            elements[starred] = elements[starred].value
        for element, value in zip(elements, values, strict=True):
            self.bind(element, value, node)

    def visit_AugAssign(self, node: Any) -> None:
        """`a += value`."""
        name = node.target.id
        left = self._translation.value(self._translation.local(name), node)
        if kinds.is_list(left):
            self.source.fail(
                node,
                IN_PLACE,
                f"this would change the list in place: write `{name} = {name} + ...`",
            )
        right = self._expressions.value(node.value)
        listed = dialect.name_of(left) in ("sequence", "any")
        in_place = _IN_PLACE.get(type(node.op)) if listed else None
        if in_place is not None:  # only the call knows whether it is a list
            result = self._builder.binary(in_place, left, right)
        else:
            result = self._expressions.binary(node, left, node.op, right)
        self._translation.environment[name] = result

    def visit_AnnAssign(self, node: Any) -> None:
        """`a: type = value`: as in Python, the annotation of a local is not evaluated."""
        if node.value is not None:
            self.bind(node.target, self._expressions.visit(node.value), node.value)

    def visit_Expr(self, node: Any) -> None:
        """A docstring, or a call for its effect."""
        if isinstance(node.value, gast.Constant):
            return
        made = self._expressions.visit(node.value)
        if isinstance(made, Instance):
            self.source.fail(
                node,
                IN_PLACE,
                f"this gives a new {made.spelling} and leaves the old one as it is: write "
                "`a = a.write(...)`",
            )

    def visit_Pass(self, node: Any) -> None:
        """Nothing."""


# Operators that change a list in place.
_IN_PLACE = {gast.Add: "iadd", gast.Mult: "imul"}


def _takes_apart(target: Any, value: Any) -> bool:
    """Say whether a tuple of names is assigned a tuple of as many elements, as in `a, b = b, a`."""
    return (
        isinstance(target, (gast.Tuple, gast.List))
        and isinstance(value, (gast.Tuple, gast.List))
        and len(target.elts) == len(value.elts)
        and not any(isinstance(one, gast.Starred) for one in target.elts)
    )
