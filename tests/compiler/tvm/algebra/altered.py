"""Kernels whose arithmetic is altered at one place; every access stays what it is."""

from __future__ import annotations

from typing import Any

from tvm import ir, tirx

from tests.compiler.tvm.rebuilding import Rebuilding

_SWAPPED = {
    tirx.Add: tirx.Sub,
    tirx.Sub: tirx.Add,
    tirx.LT: tirx.GE,
    tirx.GT: tirx.LE,
    tirx.LE: tirx.GT,
    tirx.GE: tirx.LT,
}


def places(function: Any) -> list[str]:
    """What can be altered, in the order of the text."""
    altering = _Altering(None)
    altering.statement(function.body)
    return altering.places


def altered(function: Any, number: int) -> Any:
    """The function, altered at a place."""
    return function.with_body(_Altering(number).statement(function.body))


class _Altering(Rebuilding):
    """Rebuilds what computes floats, altered at the place of a number."""

    def __init__(self, number: int | None) -> None:
        self._number = number
        self.places: list[str] = []

    def _here(self, what: str) -> bool:
        self.places.append(what)
        return len(self.places) - 1 == self._number

    def value(self, e: Any) -> Any:
        return self._value(e) if "float" in str(e.ty.dtype) else e

    def _value(self, e: Any) -> Any:
        kind = type(e)
        if kind is tirx.FloatImm:
            own = self._here(f"{e} + 1")
            return tirx.const(float(e.value) + 1, str(e.ty.dtype)) if own else e
        if kind in (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div):
            if self._here(f"no {e.b}"):
                return e.a
            if kind in _SWAPPED and self._here(f"other sign of {e.b}"):
                return _SWAPPED[kind](e.a, e.b)
            return kind(self._value(e.a), self._value(e.b))
        if kind is tirx.Select:
            if type(e.condition) in _SWAPPED and self._here(f"not {e.condition}"):
                opposite = _SWAPPED[type(e.condition)](e.condition.a, e.condition.b)
                return tirx.Select(opposite, e.true_value, e.false_value)
            return tirx.Select(e.condition, self._value(e.true_value), self._value(e.false_value))
        if kind is tirx.Broadcast:
            return tirx.Broadcast(self._value(e.value), e.lanes)
        if kind is ir.Call and len(e.args) == 4 and self._here(f"no sum in {e}"):  # llvm.fma
            return e.args[1] * e.args[2]
        return e
