"""Statements of a body: assignments, `if`, loops, `return`, `raise`, functions.

A path ends with the values it returns, so an `if` that holds a `return` gives the results of the
function: what follows it belongs to the branches that go on. Where several go on, what follows
becomes a function of its own, called from each.

Not for: expressions (expressions.py), what a `return` gives (exits.py), the end of a trip
(loops.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import gast

from composite.compiler.errors.names import FUNCTION_VALUE
from composite.compiler.errors.statements import IN_PLACE
from composite.compiler.frontend import decisions, flow, strings
from composite.compiler.frontend.bindings import (
    Translation,
    function_name,
    values_in,
    with_values,
)
from composite.compiler.frontend.capture import Static
from composite.compiler.frontend.exits import Exit
from composite.compiler.frontend.expressions import Expressions
from composite.compiler.frontend.loops import ForExit, LoopExit, WhileExit
from composite.compiler.frontend.recovery import UnknownError, bound_in
from composite.compiler.frontend.rests import End, Following, Rest, Shared
from composite.compiler.frontend.visitor import Visitor
from composite.compiler.source import CompositeSyntaxError
from composite.compiler.tfr import UNDEFINED, Loop, dialect


class Statements(Visitor):
    """Translates the statements of one function; `rests` numbers the functions of the module."""

    def __init__(
        self,
        translation: Translation,
        expressions: Expressions,
        exit_: Exit,
        rests: Iterator[int],
    ) -> None:
        super().__init__(translation.source)
        self._translation = translation
        self._builder = translation.builder
        self._expressions = expressions
        self._liveness = translation.body.liveness
        self._exit = exit_
        self._rests = rests
        # The names whose static type a loop changes, found so far.
        self._changing: dict[Any, set[str]] = {}

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

    def path(self, statements: Sequence[Any], rest: Rest) -> list[Any]:
        """Translate statements and what comes after them, up to the returned values."""
        for index, statement in enumerate(statements):
            with self._builder.at(self._translation.place(statement)), self._beyond(statement):
                if flow.ends(statement):
                    following = Following(statements[index + 1 :], rest)
                    return self._end(statement, following if following.statements else rest)
                self._visit(statement)
            if flow.ends(statement):
                return self._stand_ins(self._exit.types)
        return rest.finish(self)

    def _end(self, statement: Any, rest: Rest) -> list[Any]:
        """Translate a statement in which a path ends, and all that follows."""
        self._skip_given_up(statement)
        if isinstance(statement, gast.Return):
            return self._exit.returned(statement)
        if isinstance(statement, gast.Raise):
            return self._raised(statement)
        if isinstance(statement, (gast.Break, gast.Continue)):
            return self._exit.ended(isinstance(statement, gast.Break))
        return self._fork_path(statement, rest)

    def _visit(self, statement: Any) -> None:
        self._skip_given_up(statement)
        self.visit(statement)

    def _skip_given_up(self, node: Any) -> None:
        if node in self._translation.mistakes.given_up:
            raise UnknownError

    @contextlib.contextmanager
    def _beyond(self, node: Any) -> Iterator[None]:
        """Go on behind the `with` after a mistake in it, as if the node bound any values."""
        environment, exit_ = self._translation.environment, self._exit
        with self._translation.mistakes.beyond(node):
            yield
            return
        self._translation.environment, self._exit = environment, exit_
        names = bound_in(node)
        environment.update(zip(names, self._stand_ins(["any"] * len(names)), strict=True))

    def _stand_ins(self, types: Sequence[str]) -> list[Any]:
        """Build what stands for values that mistakes have left out."""
        return self._builder.fail("SyntaxError", [], types)

    def _condition(self, node: Any) -> Any:
        """Translate the condition of a statement, whose mistakes are not those of what it governs.

        In a function that is inlined they are: to know nothing of a condition may be to go through
        a recursion that it ends.
        """
        if self._translation.caller is not None:
            self._skip_given_up(node)
            return self._expressions.value(node)
        with self._beyond(node):
            self._skip_given_up(node)
            return self._expressions.value(node)
        return self._stand_ins(["any"])[0]

    def _raised(self, node: Any) -> list[Any]:
        error, pieces = strings.raised(self._expressions, node.exc)
        return self._builder.fail(error, pieces, self._exit.types)

    def _fork_path(self, node: Any, rest: Rest) -> list[Any]:
        """Translate an `if` in which a path ends, and all that follows."""
        condition = self._condition(node.test)
        taken = self._expressions.decided(condition)
        if taken is not None:
            return self.path(node.body if taken else node.orelse, rest)
        shared = None
        if isinstance(rest, Following) and (
            flow.endings(node.body) + flow.endings(node.orelse) > 1
        ):
            shared = self._share(node)
        fork = self._builder.fork(condition)
        before, ends = self._translation.environment, []
        for block, branch in ((fork.then, node.body), (fork.otherwise, node.orelse)):
            self._translation.environment = dict(before)
            with self._builder.into(block):
                path = self.path(branch, shared or rest)
                ends.append([self._translation.value(one, node) for one in path])
        self._translation.environment = before
        results = fork.join(list(zip(*ends, strict=True)), self._exit.names)
        if shared is not None:
            self._define_rest(shared, rest)
        return self._exit.joined(results)

    def _share(self, node: Any) -> Shared:
        """Name the rest after an `if`, with what it reads.

        What a branch assigns may be of any type by then; what none does keeps its type.
        """
        assigned = set(flow.assigned([node]))
        live = sorted({*self._liveness.after[node], *self._exit.hidden})
        environment = self._translation.environment
        return Shared(
            f"rest_{next(self._rests)}",
            node,
            changed=tuple(name for name in live if name in assigned),
            kept=tuple(name for name in live if name not in assigned and name in environment),
        )

    def _define_rest(self, shared: Shared, rest: Rest) -> None:
        before = self._translation.environment
        kept = [value for name in shared.kept for value in values_in(before[name])]
        given = _unknown(kept)
        types = ["any"] * len(shared.changed) + [dialect.name_of(value) for value in given]
        function = self._builder.function(shared.function, types, self._exit.types)
        block = function.regions[0].blocks[0]
        arguments, count = list(block.arguments), len(shared.changed)
        inside: dict[str, Any] = dict(zip(shared.changed, arguments[:count], strict=True))
        for argument, value in zip(arguments[count:], given, strict=True):
            self._builder.note_elements(argument, self._builder.element_type(value))
        with self._builder.into(block):
            values = self._inside(kept, iter(arguments[count:]))
            inside.update({name: with_values(before[name], values) for name in shared.kept})
            self._translation.environment = inside
            results = [self._translation.value(one, shared.branching) for one in rest.finish(self)]
            self._builder.give_back(
                [
                    self._builder.cast(result, type_)
                    for result, type_ in zip(results, self._exit.types, strict=True)
                ]
            )
        self._translation.environment = before

    def _inside(self, kept: list[Any], arguments: Iterator[Any]) -> Iterator[Any]:
        """Yield what values are in the function of a rest: an argument of it, or a constant."""
        for value in kept:
            known = decisions.static(value)
            yield next(arguments) if known is decisions.ABSENT else self._builder.constant(known)

    def call_rest(self, shared: Shared) -> list[Any]:
        """Call a shared rest with the values that its names have here."""
        environment = self._translation.environment
        changed = [
            self._builder.cast(self._translation.value(environment[name], shared.branching), "any")
            if name in environment
            else self._stand_ins(["any"])[0]  # scopes.py has said so
            for name in shared.changed
        ]
        kept = [value for name in shared.kept for value in values_in(environment[name])]
        return self._builder.call_function(
            shared.function, [*changed, *_unknown(kept)], self._exit.types
        )

    def fall_off(self) -> list[Any]:
        """End a path that has no `return`."""
        return self._exit.fall_off()

    def visit_If(self, node: Any) -> None:
        """An `if` without a `return`: the branches hand on what is read after it."""
        condition = self._condition(node.test)
        taken = self._expressions.decided(condition)
        if taken is not None:
            self._visit_all(node.body if taken else node.orelse)
            return
        fork = self._builder.fork(condition)
        before, ends = self._translation.environment, []
        for block, branch in ((fork.then, node.body), (fork.otherwise, node.orelse)):
            self._translation.environment = dict(before)
            with self._builder.into(block):
                self._visit_all(branch)
            ends.append(self._translation.environment)
        self._translation.environment = dict(before)
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
                environment[name] = self._stand_ins(["any"])[0]
                continue
            self._refuse_choice_of_functions(node, name, first, second)
            with self._builder.into(fork.then):
                value = self._translation.value(first, node)
            with self._builder.into(fork.otherwise):
                pairs[name] = (value, self._translation.value(second, node))
        joined = fork.join(list(pairs.values()), _spoken(pairs))
        environment.update(zip(pairs, joined, strict=True))

    def _refuse_choice_of_functions(self, node: Any, name: str, *choices: Any) -> None:
        functions = [function_name(one) for one in choices]
        if any(functions):
            spellings = " or ".join(f"`{one}`" if one else "a value" for one in functions)
            self.source.fail(
                node,
                FUNCTION_VALUE,
                f"this `if` chooses a function, `{name}` is {spellings}: call it in each branch",
            )

    def _visit_all(self, statements: Sequence[Any]) -> None:
        for statement in statements:
            with self._builder.at(self._translation.place(statement)), self._beyond(statement):
                self._visit(statement)

    def visit_For(self, node: Any) -> None:
        """A `for`: a loop over the list of the items."""
        items = self._items(node.iter)
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
                self._bind(node.target, item, node)
                return self._close(loop, exit_)

        self._until_typed(node, names, attempt)

    def _items(self, node: Any) -> Any:
        with self._beyond(node):
            self._skip_given_up(node)
            return self._builder.items(self._expressions.value(node))
        return self._builder.items(self._stand_ins(["any"])[0])

    def visit_While(self, node: Any) -> None:
        """A `while`; a `break` is a condition beside the written one."""
        names = self._carried_names(node)
        breaks = flow.breaks(node.body)

        def attempt(types: Sequence[str]) -> LoopExit:
            head = [self._builder.constant(True)] if breaks else []
            exit_ = WhileExit(self._translation, node, names, ["attr"] * breaks + list(types))
            loop = self._open(names, head, exit_)
            with self._trip(loop, names, loop.condition):
                loop.decide(self._goes_on(loop, node) if breaks else self._test(node))
            with self._trip(loop, names):
                return self._close(loop, exit_)

        self._until_typed(node, names, attempt)

    def _test(self, node: Any) -> Any:
        return self._condition(node.test)

    def _goes_on(self, loop: Loop, node: Any) -> Any:
        """Ask the condition of a `while` unless it was left by `break`."""
        fork = self._builder.fork(loop.condition.arguments[0])
        with self._builder.into(fork.then):
            test = self._test(node)
        with self._builder.into(fork.otherwise):
            stop = self._builder.constant(False)
        return fork.join([(test, stop)])[0]

    def _carried_names(self, node: Any) -> list[str]:
        live, environment = self._liveness.after[node], self._translation.environment
        return [name for name in flow.assigned([node]) if name in live and name in environment]

    def _open(self, names: Sequence[str], head: Sequence[Any], exit_: LoopExit) -> Loop:
        environment = self._translation.environment
        initial = [self._translation.value(environment[name], exit_.node) for name in names]
        return self._builder.loop([*head, *initial], exit_.types)

    @contextlib.contextmanager
    def _trip(self, loop: Loop, names: Sequence[str], block: Any = None) -> Iterator[None]:
        """Translate inside of a block of a loop, the carried names bound to its arguments."""
        before, block = self._translation.environment, block or loop.body
        carried = list(block.arguments)[len(block.arguments) - len(names) :]
        self._translation.environment = {**before, **dict(zip(names, carried, strict=True))}
        with self._builder.into(block):
            yield
        self._translation.environment = before

    def _close(self, loop: Loop, exit_: LoopExit) -> LoopExit:
        """Translate the body, up to what its trips give."""
        outer, self._exit = self._exit, exit_
        values = self.path(exit_.node.body, End())
        self._exit = outer
        exit_.loop, exit_.values = loop, values
        return exit_

    def _until_typed(
        self, node: Any, names: Sequence[str], attempt: Callable[[Sequence[str]], LoopExit]
    ) -> None:
        """Build a loop, again with fewer static types while its trips change them."""
        environment = self._translation.environment
        open_ = self._changing.setdefault(node, set())
        for name in names:
            start = decisions.static(self._translation.value(environment[name], node))
            if start is None or start is UNDEFINED:
                open_.add(name)  # what a name starts with before it has its value
        while True:
            starts = {name: self._translation.value(environment[name], node) for name in names}
            exit_ = attempt(
                ["any" if name in open_ else dialect.name_of(starts[name]) for name in names]
            )
            if not exit_.changed:
                break
            open_ |= exit_.changed
        hidden = [""] * (len(exit_.types) - len(names))
        results = exit_.loop.join(exit_.values, [*hidden, *_spoken(names)])
        environment.update(zip(names, results[len(results) - len(names) :], strict=True))

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
            bindings = [self._expressions.visit(element) for element in value.elts]
            for target in node.targets:
                for name, binding in zip(target.elts, bindings, strict=True):
                    self._bind(name, binding, value)
            return
        binding = self._expressions.visit(value)
        for target in node.targets:
            self._bind(target, binding, value)

    def _bind(self, target: Any, binding: Any, node: Any) -> None:
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
            self._bind(element, value, node)

    def visit_AugAssign(self, node: Any) -> None:
        """`a += value`."""
        name = node.target.id
        left = self._translation.value(self._translation.local(name), node)
        if dialect.name_of(left) == "sequence":
            self.source.fail(
                node,
                IN_PLACE,
                f"this would change the list in place: write `{name} = {name} + ...`",
            )
        right = self._expressions.value(node.value)
        result = self._expressions.binary(node, left, node.op, right)
        self._translation.environment[name] = result

    def visit_AnnAssign(self, node: Any) -> None:
        """`a: type = value`: as in Python, the annotation of a local is not evaluated."""
        if node.value is not None:
            self._bind(node.target, self._expressions.visit(node.value), node.value)

    def visit_Expr(self, node: Any) -> None:
        """A docstring, or a call for its effect."""
        if isinstance(node.value, gast.Constant):
            return
        self._expressions.visit(node.value)

    def visit_Pass(self, node: Any) -> None:
        """Nothing."""


def _spoken(names: Iterable[str]) -> list[str]:
    """Return names as the author knows them: none for those that the front end adds."""
    return ["" if name.startswith(".") else name for name in names]


def _unknown(values: list[Any]) -> list[Any]:
    """Return the values that are no constants."""
    return [value for value in values if decisions.static(value) is decisions.ABSENT]


def _same_object(first: Any, second: Any) -> bool:
    return (
        isinstance(first, Static) and isinstance(second, Static) and first.object is second.object
    )


def _takes_apart(target: Any, value: Any) -> bool:
    """Say whether a tuple of names is assigned a tuple of as many elements, as in `a, b = b, a`."""
    return (
        isinstance(target, (gast.Tuple, gast.List))
        and isinstance(value, (gast.Tuple, gast.List))
        and len(target.elts) == len(value.elts)
        and not any(isinstance(one, gast.Starred) for one in target.elts)
    )
