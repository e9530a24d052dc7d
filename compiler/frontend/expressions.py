"""Expressions of a body: gast -> values of the IR, operands from left to right.

`visit` gives a binding (bindings.py); `value` gives a value of the IR.
Not for: statements (statements.py), calls (calls.py), and what has a file of its own: attributes,
subscripts, comprehensions, strings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gast

from composite.compiler.errors.expressions import (
    IDENTITY,
    OPERANDS,
    TENSOR_MEMBERSHIP,
)
from composite.compiler.errors.names import ENDLESS, NO_CONSTANT, NOT_DEFINED
from composite.compiler.errors.statements import NOT_APART
from composite.compiler.frontend import (
    attributes,
    comprehensions,
    decisions,
    operators,
    subscripts,
)
from composite.compiler.frontend.analysis import capture, flow
from composite.compiler.frontend.analysis.capture import MISSING, Static
from composite.compiler.frontend.bindings import (
    Function,
    OnePass,
    Outputs,
    Translation,
    is_value,
    known,
)
from composite.compiler.frontend.calls import Calls, Unit
from composite.compiler.frontend.recovery import UnknownError
from composite.compiler.frontend.strings import Strings
from composite.compiler.frontend.visitor import Visitor
from composite.compiler.tfr import Fork, NotConstantError, dialect

# Methods of a shape, with how many arguments: the function that each is.
_METHODS = {("as_list", 0): "list", ("is_compatible_with", 1): "is_compatible_with"}


class Expressions(Visitor):
    """Translates expressions at the builder's insertion point."""

    def __init__(self, translation: Translation, unit: Unit) -> None:
        super().__init__(translation.source)
        self._translation = translation
        self._builder = translation.builder
        self._locals = frozenset(translation.body.scopes.locals)
        self._calls = Calls(translation, self.visit, unit)
        self._strings = Strings(translation, self.visit)

    def visit(self, node: Any) -> Any:
        """Translate a node; the ops that it builds have the node's location."""
        # A name builds no op, and all ops of a function of the library have the place of the call.
        if isinstance(node, gast.Name) or self._translation.in_library:
            return super().visit(node)
        with self._builder.at(self._translation.place(node)):
            return super().visit(node)

    def iterated(self, node: Any) -> Any:
        """Translate a node to the value whose items a loop goes through."""
        return self._translation.iterated(self.visit(node), node)

    def value(self, node: Any) -> Any:
        """Translate a node to a value of the IR."""
        binding = self.visit(node)
        if not isinstance(binding, Static):
            return self._translation.value(binding, node)
        with self._builder.at(self._translation.place(node)):
            return self._translation.value(binding, node)

    def decided(self, condition: Any) -> bool | None:
        """Return the truth of a condition if constants decide it in a function that is inlined.

        In the op's own body both branches are translated, so that mistakes show at once.
        """
        return None if self._translation.caller is None else decisions.truth(condition)

    def visit_Constant(self, node: Any) -> Any:
        """None, booleans, numbers and strings."""
        if isinstance(node.value, (bytes, complex)) or node.value is Ellipsis:
            self.source.fail(
                node,
                NO_CONSTANT,
                f"{node.value!r} cannot be a constant of an op; use a str, or a NumPy array at the "
                "top of the module",
            )
        return self._constant(node, node.value)

    def _constant(self, node: Any, value: object) -> Any:
        try:
            return self._builder.constant(value)
        except NotConstantError as error:
            self.source.fail(node, NO_CONSTANT, str(error))

    def visit_Name(self, node: Any) -> Any:
        """A local value, or what the function captures."""
        environment, unknown = self._translation.environment, self._translation.mistakes.unknown
        if node.id in environment or node.id in self._locals or node.id in unknown:
            return self._translation.read(node.id, node)
        captured = capture.capture(self.source, node.id)
        if captured is not MISSING:
            return Static(captured, node.id)
        unknown.add(node.id)  # said once
        if node.id == self.source.function.__name__:
            self.source.fail(node, ENDLESS, f"`{node.id}` calls itself, and that would never end")
        return self.source.fail(
            node,
            NOT_DEFINED,
            f"`{node.id}` is not defined here or in the module when the op is compiled; define it "
            "above the op",
        )

    def visit_Attribute(self, node: Any) -> Any:
        """A member of a module, `.shape` and `.dtype` of a tensor, an output of an op by name."""
        return attributes.translate(self, self._translation, node)

    def visit_Subscript(self, node: Any) -> Any:
        """An element or a slice of a list, a shape or a string; any indexing of a tensor."""
        return subscripts.translate(self, self._builder, node)

    def visit_ListComp(self, node: Any) -> Any:
        """`[value for target in items if condition]`: a loop that carries the list."""
        return comprehensions.translate(self, self._translation, node)

    def visit_Tuple(self, node: Any) -> Any:
        """A tuple of values."""
        return self._builder.make_tuple([self.value(element) for element in node.elts])

    def visit_List(self, node: Any) -> Any:
        """A list of values."""
        return self._builder.make_list([self.value(element) for element in node.elts])

    def taken_apart(self, binding: Any, size: int, node: Any) -> list[Any]:
        """Take a binding apart into `size` values."""
        if isinstance(binding, Outputs) and len(binding.names) != size:
            self.source.fail(
                node,
                NOT_APART,
                f"{len(binding.names)} outputs ({', '.join(binding.names)}) are assigned to "
                f"{size} names",
            )
        value = self._translation.iterated(binding, node)
        if dialect.name_of(value) in ("tensor", "attr"):
            self.source.fail(
                node,
                NOT_APART,
                "only a list, a shape or the outputs of an op can be taken apart; for a tensor "
                "call tf.unstack",
            )
        return self._builder.unpack(value, size)

    def taken_around(self, binding: Any, before: int, after: int, node: Any) -> list[Any]:
        """Take `before` values from the start of a binding and `after` from its end.

        Between them is one list of the others: `a, *b, c = xs`.
        """
        builder = self._builder
        items = builder.builtin("list", [self._translation.iterated(binding, node)])

        def part(value: Any, start: int | None, stop: int | None) -> Any:
            return builder.subscript(value, "s", [*map(builder.constant, (start, stop, None))])

        rest = part(items, before, None)
        first = builder.unpack(part(items, None, before), before)
        if not after:
            return [*first, rest]
        last = builder.unpack(part(rest, -after, None), after)
        return [*first, part(rest, None, -after), *last]

    def function(self, node: Any) -> Function:
        """Bind a function or lambda of the body to what it reads here."""
        body = self._translation.body.inner(node)
        arguments, environment = node.args, self._translation.environment
        positional = [*arguments.posonlyargs, *arguments.args]
        last = positional[len(positional) - len(arguments.defaults) :]
        pairs = [
            *zip(last, arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        defaults = {one.id: self.visit(value) for one, value in pairs if value is not None}
        read = flow.free(node)
        if not self._translation.mistakes.unknown.isdisjoint(read):
            raise UnknownError
        captured = {name: environment[name] for name in read if name in environment}
        for binding in (*captured.values(), *defaults.values()):
            if isinstance(binding, OnePass):  # of which each call would take a part
                self._translation.value(binding, node)
        made = Function(body, captured, defaults)
        if body.name in read and body.name in self._locals:
            made.captured[body.name] = made
        return made

    visit_Lambda = function

    def visit_Call(self, node: Any) -> Any:
        """A call of an op, a function, or a method of a shape."""
        function = _METHODS.get((getattr(node.func, "attr", ""), len(node.args)))
        if isinstance(node.func, gast.Attribute) and function and not node.keywords:
            owner = self.visit(node.func.value)
            # A part of a shape is a sequence: whether it is one of dims, the expansion sees.
            owners = ("dims", "sequence") if function == "is_compatible_with" else ("dims",)
            if is_value(owner) and dialect.name_of(owner) in owners:
                return self._builder.builtin(function, [owner, *map(self.value, node.args)])
        if isinstance(node.func, gast.Attribute) and node.func.attr in ("format", "join"):
            owner = self.visit(node.func.value)
            if is_value(owner) or isinstance(known(owner), str):
                return self._strings.method(node, owner)
        return self._calls.call(node)

    def visit_UnaryOp(self, node: Any) -> Any:
        """`-a`, `+a`, `~a`, `not a`; `-1` is one constant."""
        literal: Any = node.operand.value if isinstance(node.operand, gast.Constant) else None
        if isinstance(node.op, gast.USub) and type(literal) in (int, float):
            return self._constant(node, -literal)
        name, operand = operators.UNARY[type(node.op)], self.value(node.operand)
        return self._builder.unary(name, operand)

    def visit_BinOp(self, node: Any) -> Any:
        """An arithmetic or bit operator; `%` of a text that is written out formats it."""
        left = self.value(node.left)
        template = known(left)
        if isinstance(node.op, gast.Mod) and isinstance(template, str):
            return self._strings.percent(template, node.right)
        return self.binary(node, left, node.op, self.value(node.right))

    def binary(self, node: Any, left: Any, operator: Any, right: Any) -> Any:
        """Apply a binary operator of gast to two values."""
        name = operators.BINARY[type(operator)]
        types = (dialect.name_of(left), dialect.name_of(right))
        if name == "matmul" and not {"tensor", "any"} >= set(types):
            self.source.fail(node, OPERANDS, "`@` multiplies two tensors")
        if name == "mod" and isinstance(known(left), str):  # of `%=`
            self.source.fail(node, OPERANDS, "`%=` on a text is not supported: write `s = s % x`")
        return self._builder.binary(name, left, right)

    def visit_Compare(self, node: Any) -> Any:
        """A comparison, or a chain in which each operand is evaluated once and only if needed."""
        left, right = self.value(node.left), self.value(node.comparators[0])
        answer = self._compare(node, node.ops[0], left, right)
        return self._chain(
            node, answer, right, list(zip(node.ops, node.comparators, strict=True))[1:]
        )

    def _chain(self, node: Any, answer: Any, left: Any, links: list[tuple[Any, Any]]) -> Any:
        if not links:
            return answer
        (operator, right_node), *rest = links

        def go_on() -> Any:
            right = self.value(right_node)
            return self._chain(node, self._compare(node, operator, left, right), right, rest)

        return self.choose(answer, go_on, lambda: answer)

    def _compare(self, node: Any, operator: Any, left: Any, right: Any) -> Any:
        name = operators.COMPARE[type(operator)]
        types = {dialect.name_of(left), dialect.name_of(right)}
        if name in ("in", "not_in") and "tensor" in types:
            self.source.fail(
                node,
                TENSOR_MEMBERSHIP,
                "`in` on tensors is not supported: compare, and reduce with tf.raw_ops.Any",
            )
        if name in ("is", "is_not") and not any(_identifies(known(v)) for v in (left, right)):
            self.source.fail(node, IDENTITY, "`is` compares with None, True or False: write `==`")
        return self._builder.compare(name, left, right)

    def visit_BoolOp(self, node: Any) -> Any:
        """`and`, `or`: the first operand that decides, the others not evaluated."""
        *firsts, last = node.values
        is_and = isinstance(node.op, gast.And)

        def from_(operands: list[Any]) -> Any:
            if not operands:
                return self.value(last)
            first = self.value(operands[0])
            others: Callable[[], Any] = lambda: from_(operands[1:])  # noqa: E731
            keep: Callable[[], Any] = lambda: first  # noqa: E731
            return self.choose(first, *((others, keep) if is_and else (keep, others)))

        return from_(firsts)

    def visit_IfExp(self, node: Any) -> Any:
        """`a if condition else b`."""
        condition = self.value(node.test)
        return self.choose(
            condition, lambda: self.value(node.body), lambda: self.value(node.orelse)
        )

    def choose(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """Build an `if` between two values, or only the value that a decided condition chooses."""
        taken = self.decided(condition)
        if taken is not None:
            return then() if taken else otherwise()
        fork = Fork(self._builder, condition)
        with self._builder.into(fork.then):
            first = then()
        with self._builder.into(fork.otherwise):
            second = otherwise()
        return fork.join([(first, second)])[0]

    def visit_JoinedStr(self, node: Any) -> Any:
        """An f-string of what is known when the op is expanded."""
        return self._strings.joined(node)


def _identifies(value: object) -> bool:
    return value is None or value is True or value is False
