"""Through the statements of a function, in their order: each access against what is known there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tvm import tirx
from tvm.tirx import stmt as tir_stmt
from tvm_ffi import structural_equal

from composite.compiler.tvm.ir.dims import Dim, product
from composite.compiler.tvm.proof.contents import Contents
from composite.compiler.tvm.proof.expressions import Expressions
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.proof.phases import BARRIER, LAUNCH, survey
from composite.compiler.tvm.proof.races import Races
from composite.compiler.tvm.proof.result import Proof, Unproven

_VIEW = "_flat"  # ends the names of views of arguments


class _Buffer(NamedTuple):
    size: Dim | None  # elements; None if that is no integer we understand
    bits: int  # of an element
    depth: int  # how many parallel loops and teams it lies in
    strides: tuple[Dim, ...]  # of its dimensions, those of one element apart


class Walk:
    """One function; :meth:`run` gives what is proven of it.

    Of loops that are there twice one is looked at, unless ``each`` is: then ``outside`` has all
    loads and stores that are not proven to be inside of their buffers.
    """

    def __init__(
        self, name: str, function: Any, minimums: Mapping[str, int], *, each: bool = False
    ) -> None:
        self.outside: list[Any] = []
        self._each = each
        self._name = name
        self._function = function
        self._integers = Integers()
        self._expressions = Expressions(self._integers, self._load)
        self._survey = survey(function.body)
        self._contents = Contents(self._integers, self._expressions, self._survey.stores)
        self._races = Races(self._integers, self._survey.regions)
        self._buffers: dict[str, _Buffer] = {}
        self._minimums = minimums
        self._accesses = 0
        self._loads: set[str] = set()
        self._unproven: dict[Unproven, None] = {}

    def run(self) -> Proof:
        """Look at everything."""
        for buffer in self._function.params:
            self._declare_parameter(buffer)
        self._statement(self._function.body)
        for divisor in self._expressions.divisors:
            self._fail("", divisor, "is divided by and may be 0")
        for buffer, index, reason in self._races.unproven:
            self._fail(buffer, index, reason)
        arguments = (buffer.name for buffer in self._function.params)
        loads = tuple(name for name in arguments if name + _VIEW in self._loads)
        return Proof(self._accesses, self._races.overlaps, tuple(self._unproven), loads)

    def _fail(self, buffer: str, index: object, reason: str) -> None:
        self._unproven[Unproven(self._name, buffer, str(index), reason)] = None

    def _declare_parameter(self, buffer: Any) -> None:
        for dim in buffer.shape:
            if isinstance(dim, tirx.Var) and dim.name not in self._expressions.variables:
                size = self._integers.atom(dim.name)
                self._integers.learn(size - self._minimums.get(dim.name, 0))
                self._expressions.variables[dim.name] = size
        self._declare(buffer)

    def _declare(self, buffer: Any) -> None:
        sizes = [self._expressions.value(dim) for dim in buffer.shape]
        known = [size for size in sizes if size is not None]
        size = product(known) if len(known) == len(sizes) else None
        if buffer.name in self._buffers:
            self._fail(buffer.name, "", "is the name of two buffers")
        bits = max(8, buffer.dtype.bits)
        inner = [product(known[i:]) for i in range(1, len(known))] if size is not None else []
        self._buffers[buffer.name] = _Buffer(size, bits, self._races.depth, tuple(inner))
        self._contents.declare(buffer)

    def _statement(self, s: Any) -> None:
        _STATEMENTS[type(s)](self, s)

    def _sequence(self, s: Any) -> None:
        for one in s.seq:
            self._statement(one)

    def _bind(self, s: Any) -> None:
        value = self._expressions.bound(s.var.name, s.value)
        if value is not None:
            self._expressions.variables[s.var.name] = value

    def _allocate(self, s: Any) -> None:
        self._declare(s.buffer)

    def _view(self, s: Any) -> None:
        """Take a view of an argument: it must be all of it, and no more."""
        name = s.buffer.name
        argument = name.removesuffix(_VIEW)
        if argument == name:
            self._fail(name, "", "is a view that is not understood")
            return
        self._declare(s.buffer)
        whole, view = self._buffers.get(argument), self._buffers[name]
        if whole is None or view.size is None or whole[:2] != view[:2]:
            self._fail(name, "", f"is not known to be as large as {argument}")
        else:
            self._buffers[name] = view._replace(strides=whole.strides)

    def _evaluate(self, s: Any) -> None:
        self._expressions.value(s.value)

    def _assert(self, s: Any) -> None:
        holds, _ = self._expressions.condition(s.condition)
        for fact in holds:
            self._integers.learn(fact)
            self._contents.check(fact)

    def _if(self, s: Any) -> None:
        if not self._each and self._races.depth == 0 and _is_same_loop(s.then_case, s.else_case):
            # By one thread or by several: what holds whichever is chosen is proven once.
            self._expressions.condition(s.condition)
            self._contents.never(survey(s.then_case).stores)
            with self._contents.scope():
                self._statement(s.else_case)
            return
        cases = (s.then_case, s.else_case)
        for facts, case in zip(self._expressions.condition(s.condition), cases, strict=True):
            if case is None:
                continue
            if self._integers.is_impossible(facts):
                self._contents.never(survey(case).stores)
            else:
                with self._integers.scope(), self._contents.scope():
                    for fact in facts:
                        self._integers.learn(fact)
                    self._statement(case)

    def _attribute(self, s: Any) -> None:
        if s.attr_key == LAUNCH:
            with self._races.region():
                self._statement(s.body)
            return
        self._statement(s.body)
        if s.attr_key == BARRIER:
            self._races.meet()

    def _for(self, s: Any) -> None:
        first, count = self._expressions.value(s.min), self._expressions.value(s.extent)
        if first is None or count is None:
            first, count = 0, self._expressions.fresh("count", "int64")
        if self._integers.is_at_least(0, count):
            self._contents.never(survey(s.body).stores)
            return
        if count == 1:
            self._expressions.variables[s.loop_var.name] = first
            with self._contents.loop(s.loop_var.name, first, count):
                self._statement(s.body)
            return
        parallel = s.kind == tir_stmt.ForKind.PARALLEL
        is_single = not parallel and self._integers.is_at_least(1, count)
        with self._integers.scope(), self._contents.loop(s.loop_var.name, first, count) as checked:
            counter = 0 if is_single else self._integers.atom(s.loop_var.name)
            self._expressions.variables[s.loop_var.name] = counter + first
            self._integers.learn(counter)
            self._integers.learn(count - 1 - counter)
            self._integers.learn(count - 1)
            if parallel:
                with self._races.tasks(s.loop_var.name, count):
                    self._statement(s.body)
            else:
                self._statement(s.body)
        for fact in checked:
            self._integers.learn(fact)

    def _store(self, s: Any) -> None:
        value = self._expressions.value(s.value)
        index = self._expressions.value(s.indices[0]) if len(s.indices) == 1 else None
        self._access(s, s.buffer.name, index)
        self._contents.store(s.buffer, index, value)

    def _load(self, e: Any, index: Dim | None) -> Dim | None:
        name = e.source.name
        self._loads.add(name)
        self._access(e, name, index)
        return self._contents.load(e, index)

    def _access(self, access: Any, name: str, index: Dim | None) -> None:
        self._accesses += 1
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size is None or index is None:
            self._fail(name, "?", "is an index that is not understood")
            self.outside.append(access)
            return
        beyond = self._beyond(index, buffer.size)
        for reason in beyond:
            self._fail(name, index, reason)
        if beyond:
            self.outside.append(access)
        if buffer.depth == 0 and self._races.depth:  # a thread has its own of others
            is_store = isinstance(access, tir_stmt.BufferStore)
            self._races.access(name, index, is_store=is_store, strides=buffer.strides)

    def _beyond(self, index: Dim, size: Dim) -> list[str]:
        found = []
        if not self._integers.is_at_least(index):
            found.append("may be below 0")
        if not self._integers.is_at_least(size - 1, index):
            found.append(f"may be {size} or more")
        return found


def _is_same_loop(serial: Any, parallel: Any) -> bool:
    """Return whether two loops are one, but that the iterations of the second are tasks."""
    if not (isinstance(serial, tirx.For) and isinstance(parallel, tirx.For)):
        return False
    kinds = tir_stmt.ForKind
    if (serial.kind, parallel.kind) != (kinds.SERIAL, kinds.PARALLEL):
        return False
    if survey(serial).regions:
        return False  # tasks inside of each iteration: they are inside of tasks in the other
    same = tirx.For(parallel.loop_var, parallel.min, parallel.extent, kinds.SERIAL, parallel.body)
    return structural_equal(serial, same)


_STATEMENTS: dict[type, Callable[[Walk, Any], None]] = {
    tirx.SeqStmt: Walk._sequence,
    tirx.Bind: Walk._bind,
    tirx.AllocBuffer: Walk._allocate,
    tirx.DeclBuffer: Walk._view,
    tirx.Evaluate: Walk._evaluate,
    tirx.AssertStmt: Walk._assert,
    tirx.IfThenElse: Walk._if,
    tirx.AttrStmt: Walk._attribute,
    tirx.For: Walk._for,
    tir_stmt.BufferStore: Walk._store,
}
