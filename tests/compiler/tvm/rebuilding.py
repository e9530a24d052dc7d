"""Makes the statements of a function again, with other expressions."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.tirx import stmt as tir_stmt


class Rebuilding:
    """Makes statements again, with what `value` makes of their expressions."""

    def value(self, e: Any) -> Any:
        """Return what takes the place of an expression."""
        raise NotImplementedError

    def statement(self, s: Any) -> Any:
        """Return a statement, made again."""
        kind = type(s)
        if kind is tirx.SeqStmt:
            return tirx.SeqStmt([self.statement(one) for one in s.seq])
        if kind is tirx.For:
            low, extent = self.value(s.min), self.value(s.extent)
            return tirx.For(s.loop_var, low, extent, s.kind, self.statement(s.body))
        if kind is tirx.IfThenElse:
            other = None if s.else_case is None else self.statement(s.else_case)
            return tirx.IfThenElse(self.value(s.condition), self.statement(s.then_case), other)
        if kind is tirx.AttrStmt:
            return tirx.AttrStmt(s.node, s.attr_key, s.value, self.statement(s.body))
        if kind is tir_stmt.BufferStore:
            places = [self.value(i) for i in s.indices]
            return tir_stmt.BufferStore(s.buffer, self.value(s.value), places)
        if kind is tirx.AssertStmt:
            return tirx.AssertStmt(self.value(s.condition), s.error_kind, s.message_parts)
        if kind is tir_stmt.Bind:
            return tir_stmt.Bind(s.var, self.value(s.value))
        if kind is tir_stmt.Evaluate:
            return tir_stmt.Evaluate(self.value(s.value))
        return s  # declarations of buffers
