"""Loops with what stands over the ring in the place of floats that are written out."""

from __future__ import annotations

from typing import Any

from tvm import ir, tirx
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.tir.stand_ins import StandIns
from tests.compiler.tvm.rebuilding import Rebuilding
from tests.mutation.rebuilding import rebuilt


def over_ring(body: Any, stand_ins: StandIns) -> Any:
    """The statements, with stand-ins in place and without what they stand for."""
    return _Standing(stand_ins).statement(body)


class _Standing(Rebuilding):
    def __init__(self, stand_ins: StandIns) -> None:
        self._stand_ins = stand_ins
        self._reads_hidden = False

    def statement(self, s: Any) -> Any:
        """Return a statement, made again; nothing for one of what is stood for."""
        if isinstance(s, tirx.SeqStmt):
            made = [self.statement(one) for one in s.seq]
            return tirx.SeqStmt([one for one in made if not _is_nothing(one)] or [_nothing()])
        if isinstance(s, tirx.AllocBuffer | tir_stmt.BufferStore):
            if self._stand_ins.hides(s.buffer):
                return _nothing()
            stored = self._stand_ins.of(s.buffer)
            if isinstance(s, tir_stmt.BufferStore) and stored is not None:
                return tir_stmt.BufferStore(s.buffer, self.value(stored), list(s.indices))
        if isinstance(s, tirx.IfThenElse):
            self._reads_hidden = False
            self.value(s.condition)
            if self._reads_hidden:
                return _nothing()
        return super().statement(s)

    def value(self, e: Any) -> Any:
        """Return an expression, made again."""
        stand_in = self._stand_ins.of(e)
        if stand_in is not None:
            return self.value(stand_in)
        if isinstance(e, ir.TensorLoad):
            self._reads_hidden |= self._stand_ins.hides(e.source)
        return rebuilt(e, self.value) if isinstance(e, ir.Expr) else e


def _nothing() -> Any:
    return tir_stmt.Evaluate(tirx.const(0, "int32"))


def _is_nothing(s: Any) -> bool:
    return isinstance(s, tir_stmt.Evaluate) and isinstance(s.value, tirx.IntImm)
