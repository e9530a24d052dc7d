"""Statements of a body: assignments, `if`, `return`.

A path ends with the values it returns, so an `if` that holds a `return` gives the results of the
op: what follows it belongs to the branches that go on. Where several go on, what follows becomes a
function of its own, called from each.

Not for: expressions (expressions.py); loops.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import gast

from composite.compiler.frontend import flow
from composite.compiler.frontend.bindings import Outputs, Translation
from composite.compiler.frontend.capture import Static
from composite.compiler.frontend.expressions import Expressions
from composite.compiler.frontend.liveness import Liveness
from composite.compiler.frontend.rests import End, Following, Rest, Shared
from composite.compiler.frontend.visitor import Visitor
from composite.compiler.schema import OpSchema
from composite.compiler.tfr import dialect


class Statements(Visitor):
    """Translates the statements of one body."""

    def __init__(
        self,
        translation: Translation,
        schema: OpSchema,
        liveness: Liveness,
        expressions: Expressions,
    ) -> None:
        super().__init__(translation.source)
        self._translation = translation
        self._builder = translation.builder
        self._expressions = expressions
        self._liveness = liveness
        self._schema = schema
        self._outputs = tuple("sequence" if out.is_list else "tensor" for out in schema.outputs)
        self._rests = 0

    def body(self) -> list[Any]:
        """Translate the whole body; returns the outputs."""
        definition = self.source.tree
        if self._outputs and not any(map(flow.returns, definition.body)):
            self.source.fail(definition, f"`{definition.name}` returns nothing: return its outputs")
        return self.path(definition.body, End())

    def path(self, statements: Sequence[Any], rest: Rest) -> list[Any]:
        """Translate statements and what comes after them, up to the returned values."""
        for index, statement in enumerate(statements):
            with self._builder.at(self._translation.place(statement)):
                if isinstance(statement, gast.Return):
                    return self._returned(statement)
                if isinstance(statement, gast.If) and flow.returns(statement):
                    following = Following(statements[index + 1 :], rest)
                    return self._fork_path(statement, following if following.statements else rest)
                self.visit(statement)
        return rest.finish(self)

    def _returned(self, node: Any) -> list[Any]:
        count = len(self._outputs)
        nothing = node.value is None or (
            isinstance(node.value, gast.Constant) and node.value.value is None
        )
        if count == 0 or nothing:
            if not nothing or count:
                self._fail_count(node, 0 if nothing else 1)
            return []
        if count == 1:
            return [self._output(node.value, self._expressions.value(node.value), 0)]
        if isinstance(node.value, (gast.Tuple, gast.List)):
            if len(node.value.elts) != count:
                self._fail_count(node, len(node.value.elts))
            values = [self._expressions.value(element) for element in node.value.elts]
            nodes = list(node.value.elts)
        else:
            values, nodes = self._unpacked(node.value, count), [node.value] * count
        return [
            self._output(at, value, index)
            for index, (at, value) in enumerate(zip(nodes, values, strict=True))
        ]

    def _fail_count(self, node: Any, count: int) -> None:
        names = ", ".join(output.name for output in self._schema.outputs)
        self.source.fail(
            node,
            f"this returns {_counted(count, 'value')}, and {self._schema.op_name} has "
            f"{_counted(len(self._outputs), 'output')}{names and ': '}{names}",
        )

    def _output(self, node: Any, value: Any, index: int) -> Any:
        """Give a returned value the type of its output."""
        want, have = self._outputs[index], dialect.name_of(value)
        if have in (want, "any") or (want, have) == ("tensor", "attr"):
            return self._builder.cast(value, want)
        what = {"tensor": "one tensor", "sequence": "a list of tensors", "dims": "a shape"}
        return self.source.fail(
            node,
            f"the output `{self._schema.outputs[index].name}` is {what[want]}, and this is "
            f"{what.get(have, 'an attribute')}",
        )

    def _fork_path(self, node: Any, rest: Rest) -> list[Any]:
        """Translate an `if` that holds a `return`, and all that follows."""
        condition = self._expressions.condition(node.test)
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
                ends.append(self.path(branch, shared or rest))
        self._translation.environment = before
        results = fork.join(list(zip(*ends, strict=True)))
        if shared is not None:
            self._define_rest(shared, rest)
        return [
            self._builder.cast(result, type_)
            for result, type_ in zip(results, self._outputs, strict=True)
        ]

    def _share(self, node: Any) -> Shared:
        """Name the rest after an `if`, with its parameters: what it reads that is no constant.

        What a branch assigns may be of any type by then; the rest keeps the type that it has here.
        """
        changed = set(flow.assigned([node]))
        environment = self._translation.environment
        parameters = []
        for name in sorted(self._liveness.after[node]):
            binding = environment.get(name)
            if name in changed:
                parameters.append((name, "any"))
            elif isinstance(binding, Outputs):
                parameters.append((name, "sequence"))
            elif binding is not None and not isinstance(binding, Static):
                parameters.append((name, dialect.name_of(binding)))
        self._rests += 1
        return Shared(f"rest_{self._rests - 1}", tuple(parameters))

    def _define_rest(self, shared: Shared, rest: Rest) -> None:
        types = [type_ for _, type_ in shared.parameters]
        function = self._builder.function(shared.function, types, self._outputs)
        block = function.regions[0].blocks[0]
        before = self._translation.environment
        inside: dict[str, Any] = {
            name: one for name, one in before.items() if isinstance(one, Static)
        }
        for (name, type_), argument in zip(shared.parameters, block.arguments, strict=True):
            binding = before.get(name)
            inside[name] = argument
            if type_ == "any":
                continue
            if isinstance(binding, Outputs):
                inside[name] = dataclasses.replace(binding, value=argument)
                binding = binding.value
            self._builder.note_elements(argument, self._builder.element_type(binding))
        self._translation.environment = inside
        with self._builder.into(block):
            self._builder.give_back(rest.finish(self))
        self._translation.environment = before

    def call_rest(self, shared: Shared) -> list[Any]:
        """Call a shared rest with the values that its names have here."""
        environment = self._translation.environment
        values = [
            self._builder.cast(self._translation.value(environment[name], self.source.tree), type_)
            for name, type_ in shared.parameters
        ]
        return self._builder.call_function(shared.function, values, self._outputs)

    def fall_off(self) -> list[Any]:
        """End a path that has no `return`."""
        if not self._outputs:
            return []
        text = f"{self._schema.op_name}: `{self.source.tree.name}` returns nothing on this path"
        return self._builder.fail("ValueError", [self._builder.constant(text)], self._outputs)

    def visit_If(self, node: Any) -> None:
        """An `if` without a `return`: the branches hand on what is read after it."""
        condition = self._expressions.condition(node.test)
        fork = self._builder.fork(condition)
        before, ends = self._translation.environment, []
        for block, branch in ((fork.then, node.body), (fork.otherwise, node.orelse)):
            self._translation.environment = dict(before)
            with self._builder.into(block):
                for statement in branch:
                    self.visit_at(statement)
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
            if isinstance(first, Static) and isinstance(second, Static):
                if first.object is second.object:
                    environment[name] = first
                    continue
                self._refuse_choice_of_functions(node, name, first, second)
            with self._builder.into(fork.then):
                value = self._translation.value(first, node)
            with self._builder.into(fork.otherwise):
                pairs[name] = (value, self._translation.value(second, node))
        environment.update(zip(pairs, fork.join(list(pairs.values())), strict=True))

    def _refuse_choice_of_functions(self, node: Any, name: str, *choices: Static) -> None:
        if any(callable(one.object) and not isinstance(one.object, type) for one in choices):
            spellings = " or ".join(f"`{one.spelling}`" for one in choices)
            self.source.fail(
                node,
                f"this `if` chooses a function, `{name}` is {spellings}: call it in each branch",
            )

    def visit_at(self, node: Any) -> None:
        """Translate a statement under its own location."""
        with self._builder.at(self._translation.place(node)):
            self.visit(node)

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
        values = self._taken_apart(binding, len(target.elts), node)
        for element, value in zip(target.elts, values, strict=True):
            self._bind(element, value, node)

    def _unpacked(self, node: Any, size: int) -> list[Any]:
        return self._taken_apart(self._expressions.visit(node), size, node)

    def _taken_apart(self, binding: Any, size: int, node: Any) -> list[Any]:
        if isinstance(binding, Outputs) and len(binding.names) != size:
            self.source.fail(
                node,
                f"{len(binding.names)} outputs ({', '.join(binding.names)}) are assigned to "
                f"{size} names",
            )
        value = self._translation.value(binding, node)
        if dialect.name_of(value) in ("tensor", "attr"):
            self.source.fail(
                node,
                "only a list, a shape or the outputs of an op can be taken apart; for a tensor "
                "call tf.raw_ops.Unpack",
            )
        return self._builder.unpack(value, size)

    def visit_AugAssign(self, node: Any) -> None:
        """`a += value`."""
        name = node.target.id
        left = self._translation.value(self._translation.environment[name], node)
        if dialect.name_of(left) == "sequence":
            self.source.fail(
                node, f"this would change the list in place: write `{name} = {name} + ...`"
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


def _counted(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


def _takes_apart(target: Any, value: Any) -> bool:
    """Say whether a tuple of names is assigned a tuple of as many elements, as in `a, b = b, a`."""
    return (
        isinstance(target, (gast.Tuple, gast.List))
        and isinstance(value, (gast.Tuple, gast.List))
        and len(target.elts) == len(value.elts)
    )
