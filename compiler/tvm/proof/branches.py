"""Sizes at which the statements of a kernel run: what is left out at some sizes, or runs once more.

A kernel whose sizes vary has one loop for small sizes and another one for large sizes, and pieces
of rows and tiles that some sizes alone leave over. A check at two sizes may run few of them.

A branch that runs in the first trip of a loop alone does not show where later trips read and write.
So each branch is also taken in a later trip of each loop around it.

All candidates are followed through the statements at once, as vectors; of each loop every one of
them follows some trips. So what is found to be taken is taken; a branch that is taken in other
trips alone may be overlooked.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tvm import ir, tirx
from tvm.tirx import stmt as tir_stmt

Sizes = Mapping[str, int]
_Vector = np.ndarray[Any, Any]

_CANDIDATES = (
    *(1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 20, 24, 31, 32, 33, 40, 48, 57, 63, 64, 65),
    *(81, 97, 127, 128, 129, 160, 200, 257, 321, 400, 513, 640, 801, 1025, 1300, 2049, 4097),
)
_MOST = 1000
"""Calls that are followed."""
_MOST_ELEMENTS = 1 << 20
"""Of the buffers of a call: a check computes with them."""
_MOST_WORK = 1 << 28
"""Elements times the largest size: a product of rows by rows grows so."""
_TRIPS = 6
"""Trips of a loop that each call follows: the first, the last, and others."""


def telling(functions: Sequence[Any], minimums: Sizes, known: Sequence[Sizes]) -> list[Sizes]:
    """Return sizes, few and small ones first, that take each branch which no known sizes take.

    Args:
        functions: TIR functions of the same sizes.
        minimums: For each symbol the least value that the kernel is used for; 0 if not given.
        known: Sizes that are looked at in any case.
    """
    buffers = [b for f in functions for b in f.params]
    names = sorted({d.name for b in buffers for d in b.shape if isinstance(d, tirx.Var)})
    if not names:
        return []
    walk = _Walk(names, [*known, *_calls(names, minimums)])
    elements, largest = walk.elements(buffers), walk.largest()
    small = (elements <= _MOST_ELEMENTS) & (elements * largest <= _MOST_WORK)
    small[: len(known)] = False
    taken = walk.run(functions)
    open_ = taken[~taken[:, : len(known)].any(axis=1)]
    order = np.argsort(elements, kind="stable")
    order = order[small[order]]
    return [walk.calls[place] for place in _covering(open_[:, order], order)]


def _covering(taken: _Vector, places: _Vector) -> list[int]:
    """Return which calls, the first ones where there is a choice, take all that any of them do."""
    taken = taken[taken.any(axis=1)]
    chosen: list[int] = []
    left = taken
    while left.size:
        chosen.append(int(left.sum(axis=0).argmax()))
        left = left[~left[:, chosen[-1]]]
    for number, one in enumerate(chosen):
        others = [*chosen[:number], *chosen[number + 1 :]]
        own = taken[~taken[:, others].any(axis=1)]  # what no other takes
        chosen[number] = int(own.all(axis=0).argmax()) if own.size else one
    return [int(places[one]) for one in dict.fromkeys(chosen)]


def _calls(names: Sequence[str], minimums: Sizes) -> list[Sizes]:
    """Return sizes to choose from."""
    for step in range(1, len(_CANDIDATES) + 1):
        own = [
            [s for s in _CANDIDATES[::step] if s >= minimums.get(n, 0)] or [minimums[n]]
            for n in names
        ]
        if math.prod(map(len, own)) <= _MOST:
            break
    every = itertools.islice(itertools.product(*own), _MOST)
    return [dict(zip(names, sizes, strict=True)) for sizes in every]


class _Walk:
    """Goes through statements; each element of a vector is one call in one of its trips."""

    def __init__(self, names: Sequence[str], calls: Sequence[Sizes]) -> None:
        self.calls = calls
        self._count = len(calls)
        self._lanes = np.arange(self._count * _TRIPS)
        self._values: dict[str, _Vector | None] = {
            name: np.tile([c[name] for c in calls], _TRIPS).astype(np.int64) for name in names
        }
        self._loops = 0
        self._here = np.ones_like(self._lanes, bool)  # which lanes the statement runs in
        self._later: list[_Vector] = []  # of each loop around it, which lanes are in a later trip
        self._taken: list[_Vector] = []

    def elements(self, buffers: Sequence[Any]) -> _Vector:
        """Return how many elements the buffers of each call have."""
        one = np.ones_like(self._lanes)
        sizes = [[self._value(dim) for dim in b.shape] for b in buffers]
        known = [math.prod((one if d is None else d for d in dims), start=one) for dims in sizes]
        return np.sum(known, axis=0)[: self._count]

    def largest(self) -> _Vector:
        """Return the largest size of each call."""
        return np.array([max(call.values()) for call in self.calls])

    def run(self, functions: Sequence[Any]) -> _Vector:
        """Return for each branch, both ways, which of the calls take it."""
        for function in functions:
            self._statement(function.body, np.ones_like(self._lanes, bool))
        branches = np.array(self._taken, bool).reshape(-1, _TRIPS, self._count)
        return np.asarray(branches.any(axis=1))

    def _statement(self, s: Any, here: _Vector) -> None:
        kind, self._here = type(s), here
        if kind is tirx.SeqStmt:
            for one in s.seq:
                self._statement(one, here)
        elif kind is tirx.AttrStmt:
            self._statement(s.body, here)
        elif kind is tirx.For:
            self._loop(s, here)
        elif kind is tirx.IfThenElse:
            self._branch(s, here)
        elif kind is tirx.Bind:
            self._values[s.var.name] = self._value(s.value)
        elif kind is tir_stmt.BufferStore and _is_cell(s.buffer):
            self._store(s, here)

    def _store(self, s: Any, here: _Vector) -> None:
        value, before = self._value(s.value), self._values.get(s.buffer.name)
        if value is not None and before is not None:
            value = np.where(here, value, before)
        self._values[s.buffer.name] = value

    def _loop(self, s: Any, here: _Vector) -> None:
        first, count = self._value(s.min), self._value(s.extent)
        self._values[s.loop_var.name] = None
        if first is None or count is None:
            self._statement(s.body, here)
            return
        runs = here & (count > 0)
        self._take(runs, here & ~runs)
        self._loops += 1
        trip = self._trip(np.maximum(count, 1))
        self._values[s.loop_var.name] = first + trip
        self._later.append(trip > 0)
        self._statement(s.body, runs)
        self._later.pop()

    def _take(self, *ways: _Vector) -> None:
        """Note which lanes go these ways, and which of them in a later trip of each loop around."""
        self._taken += [one & later for one in ways for later in (True, *self._later)]

    def _trip(self, count: _Vector) -> _Vector:
        """Return a trip of a loop for each lane: the first, the last or any other one."""
        drawn = (self._lanes * 2654435761 + self._loops * 40503) >> 7
        return np.choose(drawn % 3, [0 * count, count - 1, (drawn >> 9) % count])

    def _branch(self, s: Any, here: _Vector) -> None:
        holds = self._value(s.condition)
        yes, no = (here, here) if holds is None else (here & (holds != 0), here & (holds == 0))
        if holds is not None:
            self._take(yes, no)
        self._statement(s.then_case, yes)
        if s.else_case is not None:
            self._statement(s.else_case, no)

    def _value(self, e: Any) -> _Vector | None:
        """Return an integer of each call; None if it does not follow from sizes and trips."""
        kind = type(e)
        if kind is tirx.IntImm:
            return np.full_like(self._lanes, int(e.value))
        if kind is ir.Var:
            return self._values.get(e.name)
        if kind is ir.TensorLoad:
            return self._values.get(e.source.name) if _is_cell(e.source) else None
        if kind in _OPERATORS:
            a, b = self._value(e.a), self._value(e.b)
            if a is None or b is None:
                return None
            if kind in {tirx.Min, tirx.Max}:
                self._taken += [self._here & (a < b), self._here & (a > b)]
            return _OPERATORS[kind](a, b)
        if kind is tirx.Not:
            holds = self._value(e.a)
            return None if holds is None else (holds == 0).astype(np.int64)
        if kind is tirx.Select:
            parts = [self._value(one) for one in (e.condition, e.true_value, e.false_value)]
            holds, yes, no = parts
            if holds is None or yes is None or no is None:
                return None
            self._taken += [self._here & (holds != 0), self._here & (holds == 0)]
            return np.where(holds != 0, yes, no)
        return self._value(e.value) if kind is tirx.Cast and _is_index(e.value) else None


def _is_index(e: Any) -> bool:
    return str(e.ty.dtype) in {"int32", "int64"}


def _is_cell(buffer: Any) -> bool:
    """Return whether a buffer is one integer that a kernel keeps for itself."""
    size = buffer.shape[0]
    is_one = len(buffer.shape) == 1 and isinstance(size, tirx.IntImm) and int(size.value) == 1
    return is_one and buffer.scope() == "local" and str(buffer.dtype) in {"int32", "int64"}


def _quotient(a: _Vector, b: _Vector) -> _Vector:
    """Return a quotient of integers, rounded towards 0; 0 where there is none."""
    whole = np.abs(a) // np.maximum(np.abs(b), 1)
    return np.where(b == 0, 0, whole * np.sign(a) * np.sign(b))


def _whole(compare: Callable[[_Vector, _Vector], _Vector]) -> Callable[[_Vector, _Vector], _Vector]:
    return lambda a, b: compare(a, b).astype(np.int64)


_OPERATORS: dict[type, Callable[[_Vector, _Vector], _Vector]] = {
    tirx.Add: np.add,
    tirx.Sub: np.subtract,
    tirx.Mul: np.multiply,
    tirx.Min: np.minimum,
    tirx.Max: np.maximum,
    tirx.Div: _quotient,
    tirx.Mod: lambda a, b: a - b * _quotient(a, b),
    tirx.LT: _whole(np.less),
    tirx.LE: _whole(np.less_equal),
    tirx.GT: _whole(np.greater),
    tirx.GE: _whole(np.greater_equal),
    tirx.EQ: _whole(np.equal),
    tirx.NE: _whole(np.not_equal),
    tirx.And: _whole(np.logical_and),
    tirx.Or: _whole(np.logical_or),
}
