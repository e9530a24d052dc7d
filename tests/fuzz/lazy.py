"""A program in Python in which an error counts only if its value is used.

TensorFlow computes what is fetched, and the compiler drops what nothing reads: an expression that
would raise, but whose value goes nowhere, raises in Python alone. Here each expression that raises
gives a value that no expression can use and no result can hold. A condition that would raise is
decided one way or the other, and a loop over one makes one trip or none: if both give the same,
nothing needs it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tests.fuzz import dtypes
from tests.fuzz.program import Program


class Unusable:
    """The value of an expression that raised; every use of it raises, but for dtype and rank.

    Those of a tensor are known without its value, so that asking for them needs nothing.
    """

    def __init__(self, error: Exception, known: Callable[[], tf.TensorSpec | None]) -> None:
        self.error = error
        self._known = known

    @functools.cached_property
    def known(self) -> tf.TensorSpec | None:
        return self._known()

    @property
    def dtype(self) -> tf.DType:
        if self.known is None:
            raise self.error
        return self.known.dtype

    @property
    def shape(self) -> UnusableShape:
        if self.known is None or self.known.shape.rank is None:
            raise self.error
        return UnusableShape(self.error, self.known.shape.rank)

    def __bool__(self) -> bool:
        raise self.error

    def __iter__(self) -> Any:
        raise self.error

    def __eq__(self, other: object) -> bool:
        raise self.error

    def __ne__(self, other: object) -> bool:
        raise self.error

    __hash__ = None  # type: ignore[assignment]


class UnusableShape:
    """The shape of a value that cannot be used: it has a rank, and dims that cannot be used."""

    def __init__(self, error: Exception, rank: int) -> None:
        self.error = error
        self.rank = rank

    def __len__(self) -> int:
        return self.rank

    def __getitem__(self, _index: object) -> int:
        raise self.error

    def __iter__(self) -> Any:
        # To count the dims, or to put something for each into a list, needs none of them.
        return iter([Unusable(self.error, lambda: None) for _ in range(self.rank)])

    def __eq__(self, other: object) -> bool:
        raise self.error

    def __ne__(self, other: object) -> bool:
        raise self.error

    __hash__ = None  # type: ignore[assignment]


def python_function(program: Program, decision: bool) -> Callable[..., Any]:
    """The body of a program as Python, with errors that wait; raises those that the result holds.

    `decision` is what a condition is that raises.
    """
    names = {
        "_waits": _waits,
        "_items": lambda value: _items(value, decision),
        "_truth": lambda value: decision if isinstance(value, Unusable) else bool(value),
    }
    function = program.as_python(_Waits(), f"<fuzz {program.seed} lazy>", names)

    def body(*args: Any, **attrs: Any) -> Any:
        result = function(*args, **attrs)
        for value in tf.nest.flatten(result):
            if isinstance(value, Unusable):
                raise value.error
        return result

    return body


def _waits(expression: Callable[[], Any]) -> Any:
    try:
        return expression()
    except Exception as error:  # noqa: BLE001 - whatever the program raises
        return Unusable(error, dtypes.later(expression))


def _items(value: Any, decision: bool) -> Any:
    """What a loop goes through: of what cannot be gone through, one item or none."""
    items = _waits(lambda: list(value))
    return [items] * decision if isinstance(items, Unusable) else items


class _Waits(ast.NodeTransformer):
    """Puts each expression that can raise into `_waits(lambda: ...)`."""

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        assert isinstance(node.target, ast.Name)
        read = ast.Name(node.target.id, ast.Load())
        return self.visit(ast.Assign([node.target], ast.BinOp(read, node.op, node.value)))

    def visit_If(self, node: Any) -> Any:
        node = self.generic_visit(node)
        node.test = ast.Call(ast.Name("_truth", ast.Load()), [node.test], [])
        return node

    visit_While = visit_If

    def visit_For(self, node: Any) -> Any:
        node = self.generic_visit(node)
        node.iter = ast.Call(ast.Name("_items", ast.Load()), [node.iter], [])
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return node if ast.unparse(node).startswith("tf.") else self._wrapped(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        node.value = self.visit(node.value)
        if not any(isinstance(part, ast.Slice) for part in ast.walk(node.slice)):
            node.slice = self.visit(node.slice)
        return _call(node)

    def _wrapped(self, node: Any) -> Any:
        return _call(self.generic_visit(node))

    visit_BinOp = visit_UnaryOp = visit_Compare = visit_Call = _wrapped
    visit_ListComp = visit_IfExp = visit_BoolOp = _wrapped


def _call(node: Any) -> ast.Call:
    none = ast.arguments([], [], None, [], [], None, [])
    return ast.Call(ast.Name("_waits", ast.Load()), [ast.Lambda(none, node)], [])
