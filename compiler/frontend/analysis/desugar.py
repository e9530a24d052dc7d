"""Desugaring: `return` in a loop, the `else` of a loop and `assert` become simpler statements.

    for x in xs:                        left = None; done = False
        if c:                           for x in xs:
            return x          ->            if c:
        ...                                     left = x; done = True; break
    rest                                    ...
                                        if done: return left
                                        rest

`assert test, message` is `if not test: raise AssertionError(message)`.

The names that it adds begin with a dot, which no name of a source does. `break` and `continue`
stay. The tree that is given is not changed: statements that change are made anew, and share with
the old ones only the expressions, which no pass writes to.

Not for: translating loops (loops.py).
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from typing import Any

import gast

from composite.compiler.frontend.analysis import flow
from composite.compiler.source import Source
from composite.compiler.tfr.constants import UNDEFINED


def desugar(source: Source) -> Source:
    """Return a source without `assert`, and whose loops have no `return` and no `else`."""
    if not isinstance(source.tree.body, list):  # of a lambda: an expression
        return source
    writer = _Writer()
    body = writer.statements(source.tree.body)
    if not writer.count:
        return source
    return dataclasses.replace(source, tree=_with_body(source.tree, body))


class _Writer:
    """Makes statements anew; `count` is how many of them were desugared, and numbers names."""

    def __init__(self) -> None:
        self.count = 0

    def statements(self, statements: Sequence[Any]) -> list[Any]:
        return [new for statement in statements for new in self._statement(statement)]

    def _statement(self, node: Any) -> list[Any]:
        if isinstance(node, gast.If):
            branches = self.statements(node.body), self.statements(node.orelse)
            return [_at(node, gast.If(node.test, *branches))]
        if isinstance(node, gast.Assert):
            return [self._assertion(node)]
        if isinstance(node, gast.FunctionDef):
            return [_with_body(node, self.statements(node.body))]
        if isinstance(node, (gast.For, gast.While)):
            return self._loop(node)
        return [node]

    def _assertion(self, node: Any) -> Any:
        """Make an `assert` an `if`; without a message of its own, it says its test."""
        self.count += 1
        text = ast.unparse(gast.gast_to_ast(node.test))
        message = node.msg or _at(node, gast.Constant(text, None))
        error = _at(node, gast.Call(_load(node, "AssertionError"), [message], []))
        test = _at(node.test, gast.UnaryOp(gast.Not(), node.test))
        return _at(node, gast.If(test, [_at(node, gast.Raise(error, None))], []))

    def _loop(self, node: Any) -> list[Any]:
        # From the inside out: a `return` that an inner loop hands on is one of this loop's.
        body, orelse = self.statements(node.body), self.statements(node.orelse)
        before: list[Any] = []
        after: list[Any] = []
        if any(map(flow.returns, body)):
            before, body, after = self._returns(node, body)
        if orelse and flow.breaks(body):
            self.count += 1
            broken = f".broken_{self.count}"
            before.append(_assign(node, broken, False))
            body = _replaced(body, gast.Break, lambda at: [_assign(at, broken, True), at])
            after.append(_at(node, gast.If(_load(node, broken), [_at(node, gast.Pass())], orelse)))
        else:
            self.count += bool(orelse)
            after.extend(orelse)
        if isinstance(node, gast.For):
            loop = gast.For(node.target, node.iter, body, [], node.type_comment)
        else:
            loop = gast.While(node.test, body, [])
        return [*before, _at(node, loop), *after]

    def _returns(self, node: Any, body: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        self.count += 1
        done, left = f".done_{self.count}", f".left_{self.count}"

        valued = False  # a bare `return` stays one: an op may have no outputs

        def leave(at: Any) -> list[Any]:
            nonlocal valued
            valued = valued or at.value is not None
            value = at.value if at.value is not None else _at(at, gast.Constant(None, None))
            kept = _at(at, gast.Assign([_store(at, left)], value, None))
            return [kept, _assign(at, done, True), _at(at, gast.Break())]

        first = next(one for one in body if flow.returns(one))
        replaced = _replaced(body, gast.Return, leave)
        given = _at(first, gast.Return(_load(first, left) if valued else None))
        after = _at(node, gast.If(_load(node, done), [given], []))
        before = [_assign(node, done, False), _assign(node, left, UNDEFINED)]
        return before, replaced, [after]


def _replaced(statements: Sequence[Any], kind: Any, replace: Any) -> list[Any]:
    """Return statements with those of a kind replaced, in branches as well, not in loops."""
    result: list[Any] = []
    for one in statements:
        if isinstance(one, kind):
            result.extend(replace(one))
        elif isinstance(one, gast.If):
            branches = (_replaced(branch, kind, replace) for branch in (one.body, one.orelse))
            result.append(_at(one, gast.If(one.test, *branches)))
        else:
            result.append(one)
    return result


def _with_body(node: Any, body: list[Any]) -> Any:
    fields = {field: getattr(node, field, None) for field in node._fields}
    return _at(node, type(node)(**{**fields, "body": body}))


def _at(place: Any, node: Any) -> Any:
    return gast.copy_location(node, place)


def _load(place: Any, name: str) -> Any:
    return _at(place, gast.Name(name, gast.Load(), None, None))


def _store(place: Any, name: str) -> Any:
    return _at(place, gast.Name(name, gast.Store(), None, None))


def _assign(place: Any, name: str, value: object) -> Any:
    constant = _at(place, gast.Constant(value, None))
    return _at(place, gast.Assign([_store(place, name)], constant, None))
