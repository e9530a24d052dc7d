"""A program in Python on the paths that it does not take, because a tensor decides otherwise.

All paths that tensors decide are expanded, as in tracing: an error on one is an error of the call.
Python is made to take each in turn here, and the error has to be one of its own, at that line: the
first of all, or of those whose values something needs (lazy.py), which expansion meets first.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from composite.checking.sample import Sample
from tests.fuzz import lazy
from tests.fuzz.program import Program

# A program with more paths is judged by these; most have two or four. Each round may find more
# decisions that are late: a loop that is made to go on has more trips without end.
_PATHS, _ROUNDS = 128, 4

# A place where something is decided, and how often the run has been there.
_Time = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class _Asked:
    """A place where something is decided, and the names that are read there."""

    place: int
    names: tuple[str, ...]


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
    return any(
        line in named
        for waits in (False, True)
        for line in _lines_that_raise(program, sample, waits)
    )


def _lines_that_raise(program: Program, sample: Sample, waits: bool) -> Iterator[int]:
    """The line of the error of each path that has one, the path that Python takes among them.

    `waits`: errors of values that nothing needs are none.
    """
    file = f"<fuzz {program.seed} paths>"
    late: frozenset[_Time] = frozenset()
    for _ in range(_ROUNDS):
        decisions, decided = _Decisions(late), _Decided()
        names = {"_truth": decisions.truth, "_first": decisions.first, "_asked": decided.asked}
        changes = _Both(lazy.Waits(), decided) if waits else decided
        body = program.as_python(changes, file, lazy.names(None) | names)
        for _path in range(_PATHS):
            try:
                lazy.usable(body(*sample.tensors(), **sample.attrs))
            except Exception as error:  # noqa: BLE001 - whatever the program raises
                frames = traceback.extract_tb(error.__traceback__)
                yield [frame.lineno or 0 for frame in frames if frame.filename == file][-1]
            if not decisions.next_path():
                break
        if decisions.differed <= late:
            return
        late |= decisions.differed


class _Decisions:
    """What is decided when the op runs: by tensors, and by known values that follow from those.

    `if t: k = 1` makes `k` a number that only the run knows. So a decision is one that the paths of
    a next round decide if names in it have other values on other paths; `late` are those of rounds
    before.
    """

    def __init__(self, late: frozenset[_Time]) -> None:
        self.differed: set[_Time] = set()
        self._late = late
        self._path: list[bool] = []
        self._taken = 0  # of `_path`, by this run
        self._times: collections.Counter[int] = collections.Counter()  # by place, in this run
        self._values: dict[_Time, object] = {}

    def truth(self, value: Any, asked: _Asked, names: Mapping[str, Any]) -> bool:
        """What is decided at a place of the program: Python's truth, or the path's."""
        self._times[asked.place] += 1
        time = (asked.place, self._times[asked.place])
        known = [_known(names[name]) for name in asked.names if name in names]
        if self._values.setdefault(time, known) != known:
            self.differed.add(time)
        if not tf.is_tensor(value) and time not in self._late:
            return bool(value)
        if self._taken == len(self._path):
            self._path.append(False)
        self._taken += 1
        return self._path[self._taken - 1]

    def first(
        self,
        wanted: bool,
        asked: Sequence[_Asked],
        names: Mapping[str, Any],
        *operands: Callable[[], Any],
    ) -> Any:
        """The first operand whose truth is `wanted`, else the last: what `and` and `or` give."""
        for place, operand in zip(asked, operands[:-1], strict=True):
            value = operand()
            truth = self.truth(value, place, names)
            if truth is wanted:
                # What is asked again decides the same.
                return truth if tf.is_tensor(value) or bool(value) is not truth else value
        return operands[-1]()

    def next_path(self) -> bool:
        """Goes on to the next path; False if there is none."""
        del self._path[self._taken :]
        while self._path and self._path[-1]:
            self._path.pop()
        self._taken = 0
        self._times.clear()
        if self._path:
            self._path[-1] = True
        return bool(self._path)


class _Decided(ast.NodeTransformer):
    """Asks `_truth` for every decision, and `_first` for `and` and `or`."""

    def __init__(self) -> None:
        self.asked: list[_Asked] = []

    def _tested(self, node: Any) -> Any:
        test, node.test = self._truth(node.test), ast.Constant(True)  # to be visited once
        self.generic_visit(node)
        node.test = test
        return node

    visit_If = visit_While = visit_IfExp = _tested

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            node.operand = self._truth(node.operand)
            return node
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        asked = [self._asked(value) for value in node.values[:-1]]
        self.generic_visit(node)
        none = ast.arguments([], [], None, [], [], None, [])
        operands = [ast.Lambda(none, value) for value in node.values]
        wanted = ast.Constant(isinstance(node.op, ast.Or))
        return _call("_first", [wanted, ast.List(asked, ast.Load()), _call("locals"), *operands])

    def _truth(self, value: ast.expr) -> ast.Call:
        asked = self._asked(value)
        return _call("_truth", [self.visit(value), asked, _call("locals")])

    def _asked(self, value: ast.expr) -> ast.expr:
        """The record of a decision, as an expression."""
        names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        self.asked.append(_Asked(len(self.asked), tuple(sorted(names))))
        number = ast.Constant(len(self.asked) - 1)
        return ast.Subscript(ast.Name("_asked", ast.Load()), number, ast.Load())


class _Both(ast.NodeTransformer):
    def __init__(self, *changes: ast.NodeTransformer) -> None:
        self._changes = changes

    def visit(self, node: ast.AST) -> Any:
        for change in self._changes:
            node = change.visit(node)
        return node


def _call(name: str, arguments: Sequence[ast.expr] = ()) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _known(value: Any) -> object:
    """What can be known of a value before the run."""
    if isinstance(value, list | tuple):
        return [_known(item) for item in value]
    return list(value.shape) if tf.is_tensor(value) else value
