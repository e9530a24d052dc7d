"""A program in Python on the paths that it does not take, because a tensor decides otherwise.

All paths that tensors decide are expanded, as in tracing: an error on one is an error of the call.
Python is made to take each in turn here, and the error has to be one of its own, at that line.

Not for: errors of values that nothing needs (lazy.py).
"""

from __future__ import annotations

import ast
import re
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from composite.checking.sample import Sample
from tests.fuzz.program import Program

# A program with more paths is judged by these; most have two or four.
_PATHS = 128


def raises_on_one(program: Program, version: int, op: Any, sample: Sample) -> bool:
    """Whether expansion refuses a call where Python raises on a path that tensors decide.

    False for errors of the run, which takes one path: the one that Python takes.
    """
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in sample.arrays()]
    try:
        op.expand(*sample.rebuilt(specs), **sample.attrs)
    except Exception as error:  # noqa: BLE001 - whatever it is, Python has to raise there too
        name = re.escape(program.file(version)[:-1])
        named = set(map(int, re.findall(name + r">:(\d+):", str(error))))
    else:
        return False
    return any(line in named for line in _lines_that_raise(program, sample))


def _lines_that_raise(program: Program, sample: Sample) -> Any:
    """The line of the error of each path that has one, the path that Python takes among them."""
    decisions = _Decisions()
    file = f"<fuzz {program.seed} paths>"
    names = {"_truth": decisions.truth, "_and": decisions.both, "_or": decisions.either}
    body = program.as_python(_Decided(), file, names)
    for _ in range(_PATHS):
        try:
            body(*sample.tensors(), **sample.attrs)
        except Exception as error:  # noqa: BLE001 - whatever the program raises
            frames = traceback.extract_tb(error.__traceback__)
            yield [frame.lineno for frame in frames if frame.filename == file][-1]
        if not decisions.next_path():
            return


class _Decisions:
    """What the tensors of a path decide, in order; those beyond are False until their turn."""

    def __init__(self) -> None:
        self._path: list[bool] = []
        self._taken = 0

    def truth(self, value: Any) -> bool:
        """Python's truth of a value that is known; the path's for a tensor."""
        if not tf.is_tensor(value):
            return bool(value)
        self._taken += 1
        if self._taken > len(self._path):
            self._path.append(False)
        return self._path[self._taken - 1]

    def both(self, *operands: Callable[[], Any]) -> Any:
        """`and`."""
        return self._first(operands, False)

    def either(self, *operands: Callable[[], Any]) -> Any:
        """`or`."""
        return self._first(operands, True)

    def _first(self, operands: Sequence[Callable[[], Any]], wanted: bool) -> Any:
        for operand in operands[:-1]:
            value = operand()
            truth = self.truth(value)
            if truth is wanted:
                # Asked again it decides the same.
                return truth if tf.is_tensor(value) else value
        return operands[-1]()

    def next_path(self) -> bool:
        """Goes on to the next path; False if there is none."""
        del self._path[self._taken :]
        self._taken = 0
        while self._path and self._path[-1]:
            self._path.pop()
        if self._path:
            self._path[-1] = True
        return bool(self._path)


class _Decided(ast.NodeTransformer):
    """Asks `_truth` for every decision."""

    def _tested(self, node: Any) -> Any:
        node = self.generic_visit(node)
        node.test = _call("_truth", [node.test])
        return node

    visit_If = visit_While = visit_IfExp = _tested

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            node.operand = _call("_truth", [node.operand])
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        none = ast.arguments([], [], None, [], [], None, [])
        name = "_and" if isinstance(node.op, ast.And) else "_or"
        return _call(name, [ast.Lambda(none, value) for value in node.values])


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), arguments, [])
