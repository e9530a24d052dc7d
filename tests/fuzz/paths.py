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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from composite.checking.sample import Sample
from tests.fuzz import lazy
from tests.fuzz.program import Program

# A program with more paths is judged by these; most have two or four. Each round may find more
# decisions that are late. A loop that is made to go on would have trips without end: what is
# decided at one place again and again is decided both ways in the first trips alone.
_PATHS, _ROUNDS, _TRIPS = 128, 4, 3

# A place where something is decided, and how often the run has been there.
_Time = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class _Asked:
    """A place where something is decided.

    Attributes:
        names: what is read there.
        loops: what it stands in.
        ends: the loops that it may end.
    """

    place: int
    names: tuple[str, ...]
    loops: frozenset[int]
    ends: frozenset[int]


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
    a next round decide if names in it have other values on other paths, or in other trips of a loop
    that such a decision ends; `late` are those of rounds before.
    """

    def __init__(self, late: frozenset[_Time]) -> None:
        self.differed: set[_Time] = set()
        self._late = late
        self._path: list[bool] = []
        self._taken = 0  # of `_path`, by this run
        self._times: collections.Counter[int] = collections.Counter()  # by place, in this run
        self._values: dict[_Time, object] = {}
        self._ended: set[int] = set()  # loops whose trips the run counts
        self._in_trips: dict[int, object] = {}  # by place in such a loop

    def truth(self, value: Any, asked: _Asked, names: Mapping[str, Any]) -> bool:
        """What is decided at a place of the program: Python's truth, or the path's."""
        self._times[asked.place] += 1
        time = (asked.place, self._times[asked.place])
        known = [_known(names[name]) for name in asked.names if name in names]
        if self._values.setdefault(time, known) != known:
            self.differed.add(time)
        if (
            asked.loops & self._ended and self._in_trips.setdefault(asked.place, known) != known
        ):  # each trip's is then what the loop carries
            self.differed |= {(asked.place, n + 1) for n in range(self._times[asked.place])}
        if not tf.is_tensor(value) and time not in self._late:
            return bool(value)
        self._ended |= asked.ends
        if self._times[asked.place] > _TRIPS:
            return self._times[asked.place] % 2 == 0  # so that every loop ends
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
        self._loops: list[int] = []  # around what is visited: of this function
        self._count = 0
        self._ends: frozenset[int] = frozenset()  # what the decision that is visited may end

    def _tested(self, node: Any, ends: Iterable[int] = ()) -> Any:
        before, self._ends = self._ends, frozenset(ends)
        test, node.test = self._truth(node.test), ast.Constant(True)  # to be visited once
        self._ends = before
        self.generic_visit(node)
        node.test = test
        return node

    visit_IfExp = _tested

    def visit_If(self, node: ast.If) -> Any:
        kinds = [type(one) for one in _of_function(node)]
        if ast.Return in kinds:
            return self._tested(node, self._loops)
        return self._tested(node, self._loops[-1:] if ast.Break in kinds else ())

    def visit_For(self, node: Any) -> Any:
        self._count += 1
        self._loops.append(self._count)
        is_while = isinstance(node, ast.While)
        node = self._tested(node, self._loops[-1:]) if is_while else self.generic_visit(node)
        self._loops.pop()
        return node

    visit_While = visit_For

    def visit_FunctionDef(self, node: Any) -> Any:
        around, self._loops = self._loops, []
        node = self.generic_visit(node)
        self._loops = around
        return node

    visit_Lambda = visit_FunctionDef

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
        loops = frozenset(self._loops)
        self.asked.append(_Asked(len(self.asked), tuple(sorted(names)), loops, self._ends))
        number = ast.Constant(len(self.asked) - 1)
        return ast.Subscript(ast.Name("_asked", ast.Load()), number, ast.Load())


class _Both(ast.NodeTransformer):
    def __init__(self, *changes: ast.NodeTransformer) -> None:
        self._changes = changes

    def visit(self, node: ast.AST) -> Any:
        for change in self._changes:
            node = change.visit(node)
        return node


def _of_function(node: ast.AST) -> Iterator[ast.AST]:
    """What a statement is made of, but for functions in it."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield from _of_function(child)


def _call(name: str, arguments: Sequence[ast.expr] = ()) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _known(value: Any) -> object:
    """What can be known of a value before the run."""
    if isinstance(value, list | tuple):
        return [_known(item) for item in value]
    return list(value.shape) if tf.is_tensor(value) else value
