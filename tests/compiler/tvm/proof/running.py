"""A kernel's TIR run step by step on one set of sizes: which elements each task loads and stores.

The numbers are not computed: only integers are, since indices and conditions are made of them. Data
that may be indices come from a generator, some of them out of range.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from tvm import ir, tirx
from tvm.tirx import stmt as tir_stmt

Task = tuple[int, int] | None
"""How many tasks a loop has (as many: on the same threads), and which of them it is."""


class Failed(Exception):
    """The kernel ends with an error of its own: an index is out of range."""


class TooLong(Exception):
    """More steps than a test has time for."""


class Run:
    """Runs a function at once; the attributes tell what happened.

    Attributes:
        outside: Accesses outside of their buffers.
        stored_twice: Elements that two tasks store between two barriers.
        crossed: Elements that a task loads and another one stores.
        failed: Whether it ended with an error of its own.
    """

    def __init__(self, function: Any, sizes: Mapping[str, int], seed: int = 0) -> None:
        self.outside: set[str] = set()
        self.stored_twice: set[tuple[str, int]] = set()
        self.crossed: set[tuple[str, int]] = set()
        self.failed = False
        self._random = random.Random(seed)
        self._variables: dict[str, Any] = dict(sizes)
        self._sizes: dict[str, int] = {}
        self._scope: dict[str, int] = {}
        self._memory: dict[str, dict[int, Any]] = defaultdict(dict)
        self._task: Task = None
        self._depth = 0
        self._stores: dict[tuple[str, int], set[Task]] = defaultdict(set)
        self._loads: dict[tuple[str, int], set[Task]] = defaultdict(set)
        self._steps = 0
        for buffer in function.params:
            self._declare(buffer)
        try:
            self._do(function.body)
        except Failed:  # whatever was stored before counts
            self.failed = True
        self._meet()

    def _declare(self, buffer: Any) -> None:
        size = 1
        for dim in buffer.shape:
            size *= self._value(dim)
        self._sizes[buffer.name], self._scope[buffer.name] = size, self._depth

    def _meet(self) -> None:
        for element, tasks in self._stores.items():
            if len(tasks) > 1:
                self.stored_twice.add(element)
            if self._loads[element] - tasks:
                self.crossed.add(element)
        self._stores.clear()
        self._loads.clear()

    def _access(self, name: str, index: Any, *, is_store: bool) -> list[int]:
        places = index if isinstance(index, list) else [index]
        for place in places:
            if place is None or not 0 <= place < self._sizes[name]:
                self.outside.add(f"{name}[{place}] of {self._sizes[name]}")
                continue
            if self._depth and not self._scope[name]:
                (self._stores if is_store else self._loads)[name, place].add(self._task)
        return places

    def _do(self, s: Any) -> None:  # noqa: C901, PLR0912 - a case for each kind of statement
        self._steps += 1
        if self._steps > 8_000:
            raise TooLong
        kind = type(s)
        if kind is tirx.SeqStmt:
            for one in s.seq:
                self._do(one)
        elif kind is tirx.For:
            self._loop(s)
        elif kind is tirx.IfThenElse:
            if self._value(s.condition):
                self._do(s.then_case)
            elif s.else_case is not None:
                self._do(s.else_case)
        elif kind is tirx.Bind:
            self._variables[s.var.name] = self._value(s.value)
        elif kind in {tirx.AllocBuffer, tirx.DeclBuffer}:
            self._declare(s.buffer)
            self._memory[s.buffer.name].clear()
        elif kind is tir_stmt.BufferStore:
            value = self._value(s.value)
            self._store(s.buffer.name, self._value(s.indices[0]), value)
        elif kind is tirx.AssertStmt:
            if not self._value(s.condition):
                raise Failed
        elif kind is tirx.AttrStmt:
            self._attribute(s)
        else:
            self._value(s.value)

    def _attribute(self, s: Any) -> None:
        launches = s.attr_key == "pragma_parallel_launch_point"
        self._depth += launches
        self._do(s.body)
        self._depth -= launches
        if launches or "barrier" in s.attr_key:
            self._meet()

    def _loop(self, s: Any) -> None:
        first, count = self._value(s.min), self._value(s.extent)
        if first is None or count is None:
            raise TooLong  # it was read where nothing was written
        is_parallel = s.kind == tir_stmt.ForKind.PARALLEL and self._task is None
        alone = is_parallel and self._depth == 0
        self._depth += is_parallel
        for i in range(first, first + count):
            self._variables[s.loop_var.name] = i
            if is_parallel:
                self._task = (count, i)
            self._do(s.body)
        self._depth -= is_parallel
        if is_parallel:
            self._task = None
        if alone:
            self._meet()

    def _store(self, name: str, index: Any, value: Any) -> None:
        places = self._access(name, index, is_store=True)
        values = (
            value if isinstance(value, list) and isinstance(index, list) else [value] * len(places)
        )
        for place, one in zip(places, values, strict=True):
            self._memory[name][place] = one

    def _value(self, e: Any) -> Any:  # noqa: C901, PLR0912 - a case for each kind
        kind = type(e)
        if kind is tirx.IntImm:
            return int(e.value)
        if kind is ir.Var:
            return self._variables.get(e.name)
        if kind is ir.TensorLoad:
            return self._load(e)
        if kind is tirx.Ramp:
            base, step = self._value(e.base), self._value(e.stride)
            return None if base is None else [base + step * i for i in range(int(e.lanes))]
        if kind is tirx.Broadcast:
            return [self._value(e.value)] * int(e.lanes)
        if kind is ir.Call:
            if e.op.name not in {"tirx.address_of", "tirx.prefetch"}:
                for argument in e.args:
                    if isinstance(argument, ir.Expr):
                        self._value(argument)
            return None
        if kind is tirx.Select:
            return _each(
                lambda c, a, b: None if c is None else a if c else b,
                *map(self._value, (e.condition, e.true_value, e.false_value)),
            )
        if kind is tirx.Cast:
            value = self._value(e.value)
            return value if "int" in str(e.ty.dtype) or "bool" in str(e.ty.dtype) else None
        if kind is tirx.Not:
            return _each(lambda a: None if a is None else not a, self._value(e.a))
        if kind is tirx.Shuffle:
            for one in e.vectors:
                self._value(one)
            return None
        if kind in _OPERATORS:
            a, b = self._value(e.a), self._value(e.b)
            return _each(
                lambda x, y: None if x is None or y is None else _OPERATORS[kind](x, y), a, b
            )
        return None

    def _load(self, e: Any) -> Any:
        name, index = e.source.name, self._value(e.indices[0])
        places = self._access(name, index, is_store=False)
        dtype = str(e.ty.dtype)
        if "int" not in dtype and "bool" not in dtype:
            return None
        found = [self._memory[name].setdefault(p, self._draw(name)) for p in places]
        return found if isinstance(index, list) else found[0]

    def _draw(self, name: str) -> int | None:
        return self._random.randint(-3, 40) if name.startswith("in") else None


def _each(function: Any, *values: Any) -> Any:
    lanes = next((len(v) for v in values if isinstance(v, list)), 0)
    if not lanes:
        return function(*values)
    columns = [v if isinstance(v, list) else [v] * lanes for v in values]
    return [function(*row) for row in zip(*columns, strict=True)]


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    tirx.Add: lambda a, b: a + b,
    tirx.Sub: lambda a, b: a - b,
    tirx.Mul: lambda a, b: a * b,
    tirx.Min: min,
    tirx.Max: max,
    tirx.Div: _truncated,
    tirx.Mod: lambda a, b: a - b * _truncated(a, b),
    tirx.FloorDiv: lambda a, b: a // b,
    tirx.FloorMod: lambda a, b: a % b,
    tirx.LT: lambda a, b: a < b,
    tirx.LE: lambda a, b: a <= b,
    tirx.GT: lambda a, b: a > b,
    tirx.GE: lambda a, b: a >= b,
    tirx.EQ: lambda a, b: a == b,
    tirx.NE: lambda a, b: a != b,
    tirx.And: lambda a, b: a and b,
    tirx.Or: lambda a, b: a or b,
}
