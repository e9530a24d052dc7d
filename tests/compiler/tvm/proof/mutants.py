"""Kernels altered at one place, as a mistake would: an index off by one, a guard gone."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.proof.phases import BARRIER
from tests.compiler.tvm.rebuilding import Rebuilding


def places(function: Any) -> list[str]:
    """Return what can be altered, in the order of the text."""
    mutation = Mutation(None)
    mutation.statement(function.body)
    return mutation.places


def mutant(function: Any, number: int) -> Any:
    """Return the function altered at a place."""
    return function.with_body(Mutation(number).statement(function.body))


class Mutation(Rebuilding):
    """Rebuilds statements, altered at the place of a number in the order of the text.

    Attributes:
        places: What there was to alter.
    """

    def __init__(self, number: int | None) -> None:
        self._number = number
        self.places: list[str] = []

    def _here(self, what: str) -> bool:
        self.places.append(what)
        return len(self.places) - 1 == self._number

    def value(self, e: Any) -> Any:
        return e

    def statement(self, s: Any) -> Any:
        kind = type(s)
        if kind is tirx.For and self._here(f"{s.loop_var.name} once more"):
            return tirx.For(s.loop_var, s.min, s.extent + 1, s.kind, s.body)
        if kind is tirx.IfThenElse:
            if self._here(f"no guard {s.condition}"):
                return s.then_case
            made = super().statement(s)
            return tirx.IfThenElse(self._compare(s.condition), made.then_case, made.else_case)
        if kind is tirx.AssertStmt and self._here(f"no check {s.condition}"):
            return tirx.Evaluate(tirx.const(0, "int32"))
        if kind is tirx.AttrStmt and s.attr_key == BARRIER and self._here("no barrier"):
            return s.body
        if kind is tir_stmt.BufferStore:
            index = self._index(s.indices[0], s.buffer.name)
            is_index = str(s.value.ty.dtype) == "int64"
            value = self._bounds(s.value) if is_index else s.value
            return tir_stmt.BufferStore(s.buffer, value, [index])
        if kind is tirx.Bind:
            return tirx.Bind(s.var, self._bounds(s.value))
        return super().statement(s)

    def _index(self, e: Any, name: str) -> Any:
        if self._here(f"{name}[{e} + 1]"):
            return self._moved(e, 1)
        if self._here(f"{name}[{e} - 1]"):
            return self._moved(e, -1)
        return e

    def _moved(self, e: Any, by: int) -> Any:
        if isinstance(e, tirx.Ramp):
            return tirx.Ramp(e.base + by, e.stride, e.lanes)
        return e + by

    def _bounds(self, e: Any) -> Any:
        """Alter the first of the operations of an index."""
        if isinstance(e, tirx.Min | tirx.Max):
            if self._here(f"no bound {e.b}"):
                return e.a
            if self._here(f"bound {e.b} + 1"):
                return type(e)(e.a, e.b + 1)
        if isinstance(e, tirx.Mul) and self._here(f"{e} not a multiple"):
            return type(e)(e.a, e.b - 1)
        if isinstance(e, tirx.Div) and self._here(f"{e.b} - 1"):
            return type(e)(e.a, tirx.max(e.b - 1, tirx.const(1, "int64")))
        if isinstance(e, tirx.Add | tirx.Sub | tirx.Mul | tirx.Div | tirx.Mod):
            return type(e)(self._bounds(e.a), e.b)
        return e

    def _compare(self, e: Any) -> Any:
        is_order = isinstance(e, tirx.GE | tirx.LT) and str(e.a.ty.dtype) == "int64"
        if is_order and self._here(f"{e} off by one"):
            return type(e)(e.a, e.b + (1 if isinstance(e, tirx.LT) else -1))
        if isinstance(e, tirx.And):
            if self._here(f"no {e.b}"):
                return e.a
            return tirx.And(self._compare(e.a), e.b)
        return e
