"""Which names a body binds, and that each is bound on every path to where it is read.

The first pass over a body, and over the functions in it: it also finds syntax that no pass handles.
Not for: what the names of modules and closures are (capture.py), values (expressions.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import gast

from composite.compiler.errors.declarations import NOT_PLAIN
from composite.compiler.errors.names import NOT_ASSIGNED, PARTLY_ASSIGNED, TAKEN
from composite.compiler.errors.statements import DECORATED, IN_PLACE, NO_COROUTINE, RAISED, STARRED
from composite.compiler.frontend import advice
from composite.compiler.frontend.analysis import flow
from composite.compiler.frontend.analysis.paths import Paths
from composite.compiler.frontend.recovery import Mistakes
from composite.compiler.frontend.visitor import Visitor
from composite.compiler.source import Source


class Scopes(Visitor):
    """The names of one function.

    Attributes:
        locals: the names that the body binds, parameters first, in the order of the text.
        inner: the scopes of the functions and lambdas in it, by their nodes.
        mistakes: those that this pass has found; one in an inner function is a mistake of the
            statement that holds the function.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        definition = source.tree
        self.mistakes = Mistakes()
        self._refuse_variadic(definition.args)
        parameters = flow.parameters(definition)
        self.locals = tuple(dict.fromkeys([*parameters, *flow.assigned(definition.body)]))
        self.inner: dict[Any, Scopes] = {}
        self._paths = Paths(dict.fromkeys(parameters), {})
        self._statements(definition.body)

    def _refuse_variadic(self, arguments: Any) -> None:
        for one, stars in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
            if one is not None:
                self.source.fail(
                    one,
                    NOT_PLAIN,
                    f"`{stars}{one.id}` is not supported: a function here has plain parameters",
                )

    def _statements(self, statements: Sequence[Any]) -> None:
        for statement in statements:
            with self.mistakes.beyond(statement):
                self.visit(statement)
            if isinstance(statement, (gast.Return, gast.Raise)):
                self._paths.ended = True

    def _header(self, node: Any) -> None:
        """Visit the condition of a statement; its blocks are visited even after a mistake in it."""
        with self.mistakes.beyond(node):
            self.visit(node)

    def visit_If(self, node: Any) -> None:
        """Bind on every path what both branches bind."""
        self._header(node.test)
        before = self._paths
        ends = []
        for branch in (node.body, node.orelse):
            self._paths = before.copy()
            self._statements(branch)
            ends.append(self._paths)
        self._paths = before.after_branches(node, *ends)

    def visit_For(self, node: Any) -> None:
        """Bind the target in each trip, of which there may be none."""
        self._header(node.iter)
        self._trip(node, node.target)

    def visit_While(self, node: Any) -> None:
        """Read the condition before each trip, of which there may be none."""
        self._header(node.test)
        self._trip(node, None)

    def _trip(self, node: Any, target: Any) -> None:
        before = self._paths
        self._paths = before.copy()
        if target is not None:
            self._bind(target)
        self._statements(node.body)
        self._paths = before.after_loop(node, self._paths)

    def visit_Break(self, _node: Any) -> None:
        """End the path."""
        self._paths.ended = True

    visit_Continue = visit_Break

    def visit_ListComp(self, node: Any) -> None:
        """Read the parts; the targets are bound inside only."""
        before = self._paths
        self._paths = before.copy()
        for generator in node.generators:
            if generator.is_async:
                self.source.fail(
                    node, NO_COROUTINE, "an asynchronous comprehension is not supported"
                )
            self.visit(generator.iter)
            for name in flow.names(generator.target):
                self._paths.bound[name] = None
            for condition in generator.ifs:
                self.visit(condition)
        self.visit(node.elt)
        self._paths = before

    def visit_Return(self, node: Any) -> None:
        """Read the value; the path ends."""
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: Any) -> None:
        """Read the error; the path ends."""
        if node.cause is not None:
            self.source.fail(
                node.cause, RAISED, "`raise ... from` is not supported: leave out the cause"
            )
        if node.exc is None:
            self.source.fail(node, RAISED, "say what to raise: ValueError('...')")
        self.visit(node.exc)

    def visit_FunctionDef(self, node: Any) -> None:
        """Bind the function, which takes the values of the names that it reads."""
        if node.decorator_list:
            decorator = node.decorator_list[0]
            instead = advice.instead_of(getattr(decorator, "attr", "")) or "leave it out"
            self.source.fail(
                decorator,
                DECORATED,
                f"a decorator is not supported in the body of a composite: {instead}",
            )
        self._bind_name(node.name, node)
        self._function(node, node)

    def visit_Lambda(self, node: Any) -> None:
        """Take the values of the names that it reads."""
        returned = gast.copy_location(gast.Return(value=node.body), node.body)
        definition = gast.FunctionDef(
            name="<lambda>",
            args=node.args,
            body=[returned],
            decorator_list=[],
            returns=None,
            type_comment=None,
            type_params=[],
        )
        self._function(node, gast.copy_location(definition, node))

    def _function(self, node: Any, definition: Any) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        inner = self.inner[node] = Scopes(dataclasses.replace(self.source, tree=definition))
        inner.mistakes.raise_all()
        for name in flow.free(node):
            if name in self.locals:
                self._check_bound(name, node)
                self._paths.captured[name] = node

    def visit_Assign(self, node: Any) -> None:
        """Bind the targets after the value is read."""
        self.visit(node.value)
        for target in node.targets:
            self._bind(target)

    def visit_AugAssign(self, node: Any) -> None:
        """Read the target, then bind it."""
        if not isinstance(node.target, gast.Name):
            self._bind(node.target)
        self._read(node.target)
        self.visit(node.value)
        self._bind(node.target)

    def visit_AnnAssign(self, node: Any) -> None:
        """Bind the target if there is a value; Python does not evaluate a local's annotation."""
        if node.value is not None:
            self.visit(node.value)
            self._bind(node.target)

    def visit_Expr(self, node: Any) -> None:
        """Read the expression."""
        self.visit(node.value)

    def visit_Pass(self, node: Any) -> None:
        """Bind nothing."""

    def _bind(self, target: Any) -> None:
        if isinstance(target, gast.Name):
            self._bind_name(target.id, target)
        elif isinstance(target, (gast.Tuple, gast.List)):
            for element in target.elts:
                self._bind(element)
        elif isinstance(target, gast.Starred):
            self._bind(target.value)
        elif isinstance(target, gast.Subscript):
            self.source.fail(
                target,
                IN_PLACE,
                "values do not change in the body of a composite: build a new list, or call "
                "tf.raw_ops.TensorScatterUpdate for a tensor",
            )
        elif isinstance(target, gast.Attribute):
            self.source.fail(
                target,
                IN_PLACE,
                "values do not change in the body of a composite: assign to a plain name",
            )
        else:
            self.generic_visit(target)

    def _bind_name(self, name: str, node: Any) -> None:
        function = self._paths.captured.get(name)
        if function is not None:
            self.source.fail(
                node,
                TAKEN,
                f"`{name}` is assigned again after the function at line {function.lineno} has "
                "taken its value: assign to another name, or make it a parameter of the function",
            )
        self._paths.bound[name] = None

    def _read(self, node: Any) -> None:
        if node.id in self.locals:
            self._check_bound(node.id, node)

    def _check_bound(self, name: str, node: Any) -> None:
        if self._paths.ended or name in self.mistakes.unknown:
            return
        if name not in self._paths.bound or self._paths.bound[name] is not None:
            self.mistakes.unknown.add(name)  # said once
        if name not in self._paths.bound:
            self.source.fail(
                node, NOT_ASSIGNED, f"`{name}` is read before it is assigned: assign it first"
            )
        branching = self._paths.bound[name]
        if isinstance(branching, (gast.For, gast.While)):
            self.source.fail(
                node,
                PARTLY_ASSIGNED,
                f"`{name}` is assigned only in the loop at line {branching.lineno}, which may make "
                "no trip: assign it before the loop too",
            )
        if branching is not None:
            self.source.fail(
                node,
                PARTLY_ASSIGNED,
                f"`{name}` is assigned in one branch only of the `if` at line {branching.lineno}: "
                "assign it in the other branch too, or before the `if`",
            )

    def visit_Name(self, node: Any) -> None:
        """Check that the name is bound."""
        self._read(node)

    def visit_Slice(self, node: Any) -> None:
        """Read the bounds."""
        self._visit_parts(node)

    def _visit_parts(self, node: Any) -> None:
        for child in flow.children(node):
            if isinstance(child, gast.expr):
                self.visit(child)

    visit_Attribute = _visit_parts
    visit_BinOp = _visit_parts
    visit_BoolOp = _visit_parts
    visit_Compare = _visit_parts
    visit_Constant = _visit_parts
    visit_FormattedValue = _visit_parts
    visit_IfExp = _visit_parts
    visit_JoinedStr = _visit_parts
    visit_List = _visit_parts
    visit_Subscript = _visit_parts
    visit_Tuple = _visit_parts
    visit_UnaryOp = _visit_parts

    def visit_Call(self, node: Any) -> None:
        """Read the function and its arguments, which are written out."""
        self._visit_parts(node)
        for keyword in node.keywords:
            if keyword.arg is None:
                self.source.fail(
                    keyword.value,
                    STARRED,
                    "`**` is not supported in the body of a composite: write the arguments out",
                )
            self.visit(keyword.value)
