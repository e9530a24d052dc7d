"""The loops of a kernel over the ring, as a program of words: see :mod:`.program`.

The statements are those of the kernel; what their expressions are is in :mod:`.expressions`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from tvm import ir, tirx
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.algebra import program
from composite.compiler.tvm.algebra.expressions import Expressions
from composite.compiler.tvm.algebra.memory import (
    KINDS,
    Buffer,
    Hidden,
    any_kind,
    kind_of,
    place_of,
)
from composite.compiler.tvm.algebra.program import Value
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.tir.stand_ins import StandIns

_PLACE = 32  # bits of a place within a buffer
_IN_FRAME = 16 * 1024  # bytes of a workspace that a frame has room for


def in_ring(functions: Mapping[str, Any], stand_ins: StandIns) -> bytes:
    """Return the library of TIR functions over the ring; NotCovered where one has no meaning."""
    return program.library([_Loops(f, stand_ins).program(name) for name, f in functions.items()])


class _Loops(Expressions):
    """Makes a program of statements."""

    def __init__(self, function: Any, stand_ins: StandIns) -> None:
        super().__init__(stand_ins)
        self._function = function
        self._parallel = 0  # how many parallel loops, or teams, are around

    def program(self, name: str) -> bytes:
        """Return the program."""
        self._declare(self._function.params)
        self._statement(self._function.body)
        return self.out.finish(name)

    def _declare(self, parameters: Sequence[Any]) -> None:
        for parameter in parameters:
            kind = KINDS[parameter.dtype]
            number = self.out.buffer()
            self.buffers[hash(parameter)] = Buffer(number << _PLACE, kind, None)
            said = [number, kind.size, len(parameter.shape)]
            for size in parameter.shape:
                said += self._size(size)
            self.out.parameters.append(said)

    def _size(self, size: Any) -> tuple[int, int]:
        """Return how the runtime learns or checks a size: 0 known, 1 a symbol, 2 anything."""
        if isinstance(size, tirx.IntImm):
            return 0, int(size.value)
        if not isinstance(size, ir.Var):
            return 2, 0
        found = self.out.known(hash(size))
        if found is None:
            found = Value(self.out.permanent(8), 0)
            self.out.keep(hash(size), found)
        return 1, found.place

    # Statements

    def _statement(self, s: Any) -> None:
        rule = _STATEMENTS.get(type(s))
        if rule is None:
            raise NotCovered(f"{type(s).__name__} has no meaning over the ring")
        rule(self, s)

    def _sequence(self, s: Any) -> None:
        statements = list(s.seq)
        for one, following in itertools.zip_longest(statements, statements[1:]):
            if type(one) is tir_stmt.AllocBuffer:
                if self.stand_ins.hides(one.buffer):
                    continue
                whole = type(following) is tir_stmt.BufferStore
                self._allocate(one.buffer, fill=not (whole and _fills(one.buffer, following)))
            else:
                self._statement(one)

    def _only(self, s: Any) -> None:
        self._allocate(s.buffer, fill=False)

    def _allocate(self, buffer: Any, *, fill: bool) -> None:
        out, kind = self.out, KINDS.get(buffer.dtype) or any_kind(buffer.dtype)
        size = buffer.shape[0]
        count = int(size.value) if isinstance(size, tirx.IntImm) else None
        if self._parallel and count is not None and count * kind.size <= _IN_FRAME:
            place = out.slot(count * kind.size, out.depth)
            self.buffers[hash(buffer)] = Buffer(place, kind, count)
            if fill:
                out.emit("fill", 0, 0, count * kind.size, out.depth, place)
            return
        number = out.buffer()
        self.buffers[hash(buffer)] = Buffer(number << _PLACE, kind, count)
        out.emit("allocate", 0, 0, kind.size, out.depth, number, self.index(size).place)
        out.end_statement()

    def _view(self, s: Any) -> None:
        """Take a flat view of a parameter for the same memory."""
        (pointer,) = s.data.args
        whole = self.buffers.get(hash(pointer.args[0]))
        if whole is None:
            raise NotCovered(f"{s.buffer} is a view of what has no meaning over the ring")
        kind = KINDS[s.buffer.dtype]
        self.buffers[hash(s.buffer)] = Buffer(whole.place, kind, None)

    def _for(self, s: Any) -> None:
        out = self.out
        if s.kind == tir_stmt.ForKind.PARALLEL:
            self._parallel_for(s)
            return
        low, extent = self.index(s.min), self.index(s.extent)
        counter, end = out.slot(8, out.depth), out.slot(8, out.depth)
        with out.scope() as code:
            out.keep(hash(s.loop_var), Value(counter, out.depth))
            self._statement(s.body)
            out.end_statement()
        length = len(code) // program.ADVANCE
        out.emit("loop", 0, 0, length + 2, out.depth, counter, low.place, extent.place, end)
        out.place(code)
        out.emit("next", 0, 0, -length, out.depth, counter, end)
        out.end_statement()

    def _parallel_for(self, s: Any) -> None:
        out = self.out
        low, extent = self.index(s.min), self.index(s.extent)
        counter = out.slot(8, out.depth)
        with out.scope() as code, self._in_parallel():
            out.keep(hash(s.loop_var), Value(counter, out.depth))
            self._statement(s.body)
            out.end_statement()
            out.emit("end", 0, 0, 0, out.depth)
        length = len(code) // program.ADVANCE + 1
        out.emit("parallel", 0, 0, length, out.depth, counter, low.place, extent.place)
        out.place(code)
        out.end_statement()

    @contextmanager
    def _in_parallel(self) -> Any:
        self._parallel += 1
        yield
        self._parallel -= 1

    def _if(self, s: Any) -> None:
        try:
            condition = self.value(s.condition)
        except Hidden:  # within an expression that has a stand-in
            return
        cases = [s.then_case] if s.else_case is None else [s.then_case, s.else_case]
        self.branches(condition, [partial(self._statement, case) for case in cases])
        self.out.end_statement()

    def _attribute(self, s: Any) -> None:
        out, key = self.out, str(s.attr_key)
        if key == "pragma_parallel_launch_point":
            with out.scope() as code, self._in_parallel():
                self._statement(s.body)
                out.end_statement()
                out.emit("end", 0, 0, 0, out.depth)
            out.emit("team", 0, 0, len(code) // program.ADVANCE + 1, out.depth)
            out.place(code)
            return
        if key not in ("pragma_import_llvm", "pragma_parallel_barrier_when_finish"):
            raise NotCovered(f"{key} has no meaning over the ring")
        self._statement(s.body)
        if key == "pragma_parallel_barrier_when_finish":
            out.emit("meet", 0, 0, 0, out.depth)

    def _assert(self, s: Any) -> None:
        out, condition = self.out, self.value(s.condition)
        text = "".join(str(part.value) for part in s.message_parts)
        number = len(out.messages)
        out.messages += [str(s.error_kind.value), text]
        out.emit("assert", 0, 0, number, out.depth, condition.place)
        out.end_statement()

    def _bind(self, s: Any) -> None:
        out, value = self.out, self.value(s.value)
        if value.depth > out.depth:
            kind = kind_of(s.value)
            place = out.slot(kind.size, out.depth)
            self.move(place, value, kind)
            value = Value(place, out.depth)
        out.keep(hash(s.var), value)
        out.end_statement()

    def _evaluate(self, s: Any) -> None:
        name = str(getattr(getattr(s.value, "op", None), "name", ""))
        if name != "tirx.prefetch" and not isinstance(s.value, tirx.IntImm):
            raise NotCovered(f"{name or type(s.value).__name__} has no meaning over the ring")

    def _store(self, s: Any) -> None:
        if self.stand_ins.hides(s.buffer):
            return
        out, index = self.out, s.indices[0]
        stored = self.stand_ins.of(s.buffer)
        stored = s.value if stored is None else stored
        buffer = self.buffers[hash(s.buffer)]
        place = place_of(buffer, index)
        kind = kind_of(s.value)
        if place is not None and kind.size == buffer.element.size:
            value = self.into(stored, place)
            if value.place != place:
                self.move(place, value, kind)
        else:
            value = self.value(stored)
            op, places, scale = self.address(buffer, index)
            lanes = kind.lanes
            out.emit(op[1], kind.number, lanes, scale, out.depth, value.place, *places)
        out.end_statement()


def _fills(buffer: Any, store: Any) -> bool:
    """Whether a store leaves nothing of a buffer as it was."""
    size = buffer.shape[0]
    index = store.indices[0]
    one = isinstance(size, tirx.IntImm) and int(size.value) == 1
    return one and hash(store.buffer) == hash(buffer) and type(index) is tirx.IntImm


_STATEMENTS: dict[type, Callable[[_Loops, Any], None]] = {
    tirx.SeqStmt: _Loops._sequence,
    tirx.For: _Loops._for,
    tirx.IfThenElse: _Loops._if,
    tirx.AttrStmt: _Loops._attribute,
    tirx.AssertStmt: _Loops._assert,
    tir_stmt.AllocBuffer: _Loops._only,
    tir_stmt.DeclBuffer: _Loops._view,
    tir_stmt.BufferStore: _Loops._store,
    tir_stmt.Bind: _Loops._bind,
    tir_stmt.Evaluate: _Loops._evaluate,
}
