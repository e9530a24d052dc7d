"""Functions made again with one place altered, which a number selects in the order of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tvm import ir, tirx
from tvm.ir.prim import expr as prim

from tests.compiler.tvm.rebuilding import Rebuilding

Changes = Iterator[Callable[[], Any]]
"""What a statement or an expression may become by one mistake; made when it is called."""

_BINARY = (
    *(tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod),
    *(tirx.Min, tirx.Max, tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE),
    *(tirx.And, tirx.Or, prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor),
    *(prim.LShift, prim.RShift),
)

_SHORT = 100


def rebuilt(e: Any, part: Callable[[Any], Any]) -> Any:
    """Return an expression, made again of what `part` makes of its own."""
    kind = type(e)
    if kind in _BINARY:
        return kind(part(e.a), part(e.b))
    if kind in (tirx.Not, prim.BitwiseNot):
        return kind(part(e.a))
    if kind is tirx.Select:
        return tirx.Select(*(part(one) for one in (e.condition, e.true_value, e.false_value)))
    if kind is tirx.Cast:
        return tirx.Cast(str(e.ty.dtype), part(e.value))
    if kind is tirx.Ramp:
        return tirx.Ramp(part(e.base), part(e.stride), e.lanes)
    if kind is tirx.Broadcast:
        return tirx.Broadcast(part(e.value), e.lanes)
    if kind is tirx.Shuffle:
        return tirx.Shuffle([part(one) for one in e.vectors], list(e.indices))
    if kind is ir.TensorLoad:
        return tirx.BufferLoad(e.source, [part(one) for one in e.indices])
    if kind is ir.Call:
        arguments = [part(one) if isinstance(one, ir.Expr) else one for one in e.args]
        return ir.Call(e.op, arguments, ret_ty=e.ty)
    return e


class Places:
    """Counts what can be altered; one place of it is.

    Attributes:
        count: How many places there were.
        what: What the one was, and what it became.
    """

    def __init__(self, number: int | None = None) -> None:
        self._number = number
        self.count = 0
        self.what = ""

    def altered(self, one: Any, changes: Changes) -> Any | None:
        """Count the places of a statement or an expression; what it becomes, if one is chosen."""
        for make in changes:
            self.count += 1
            if self.count - 1 == self._number:
                made = make()
                self.what = f"{_short(one)} -> {_short(made)}"
                return made
        return None


def _touches_nothing(e: Any) -> bool:
    return type(e) is ir.Call and getattr(e.op, "name", "") == "tirx.prefetch"


def _short(one: Any) -> str:
    text = " ".join(str(one).replace("T.int64", "").split())
    return text if len(text) < _SHORT else f"{text[: _SHORT // 2]} ... {text[-_SHORT // 2 :]}"


class Altering(Rebuilding):
    """Makes statements again, altered at one place of a kind of mistake."""

    def __init__(
        self,
        places: Places,
        statements: Callable[[Any], Changes] | None = None,
        values: Callable[[Any], Changes] | None = None,
    ) -> None:
        self._places = places
        self._statements, self._values = statements, values

    def statement(self, s: Any) -> Any:
        """Return a statement, altered if the place is in it."""
        if self._statements is not None:
            made = self._places.altered(s, self._statements(s))
            if made is not None:
                return made
        return super().statement(s)

    def value(self, e: Any) -> Any:
        """Return an expression, altered if the place is in it."""
        if self._values is None or isinstance(e, ir.StringImm) or _touches_nothing(e):
            return e
        made = self._places.altered(e, self._values(e))
        return rebuilt(e, self.value) if made is None else made
