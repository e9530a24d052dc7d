"""Kinds of mistakes in the loops of a kernel: what each makes of a statement or an expression."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm import ir, tirx
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.proof.phases import BARRIER
from composite.compiler.tvm.tir.stand_ins import NAMED
from tests.compiler.tvm.rebuilding import Rebuilding
from tests.mutation.lowered import FUNCTION, ROUNDING, cut, in_floats, is_rounding
from tests.mutation.rebuilding import Altering, Changes, Places, rebuilt

_ORDERED = (tirx.Sub, tirx.Div, tirx.LT, tirx.GE, tirx.GT, tirx.LE)
_EXTREMES = {tirx.Min: tirx.Max, tirx.Max: tirx.Min}
_STAGES = (tirx.For, tirx.IfThenElse, tirx.AttrStmt)
_HUGE = 1e30
_FEWEST = 4  # lanes of a vector that one is dropped of


@dataclass(frozen=True)
class Kind:
    """A kind of mistake: in statements, in expressions, or in what is written for floats alone.

    The last is a `ROUNDING`, or a constant of an elementary `FUNCTION`.
    """

    statements: Callable[[Any], Changes] | None = None
    values: Callable[[Any], Changes] | None = None
    of_floats: str = ""

    def altered(self, function: Any, places: Places) -> Any:
        """Return a function, altered at a place of this kind; one of floats stays as it is."""
        if self.of_floats:
            return function
        altering = Altering(places, self.statements, self.values)
        return function.with_body(altering.statement(function.body))

    def in_floats(self, function: Any, target: Any, places: Places) -> Any:
        """Return a function of floats; it is altered here if this is a kind for floats alone."""
        return in_floats(function, target, self.of_floats, places)


def _is_float(e: Any) -> bool:
    return "float" in str(e.ty.dtype)


def _is_index(e: Any) -> bool:
    return str(e.ty.dtype) in ("int64", "int32")


def _const(value: float, like: Any) -> Any:
    return tirx.const(value, str(like.ty.dtype))


def _nothing() -> Any:
    return tir_stmt.Evaluate(tirx.const(0, "int32"))


def _with_parts(s: Any, first: int, end: int, parts: list[Any]) -> Any:
    return tirx.SeqStmt([*list(s.seq)[:first], *parts, *list(s.seq)[end:]])


def _stored(s: Any, value: Any) -> Any:
    return tir_stmt.BufferStore(s.buffer, value, list(s.indices))


class _Again(Rebuilding):
    """The same statement once more: its counters and buffers have names of their own."""

    def __init__(self) -> None:
        self._own: dict[str, Any] = {}

    def statement(self, s: Any) -> Any:
        kind = type(s)
        if kind is tirx.For:
            counter = self._own[s.loop_var.name] = tirx.Var(f"{s.loop_var.name}_again", "int64")
            low, extent = self.value(s.min), self.value(s.extent)
            return tirx.For(counter, low, extent, s.kind, self.statement(s.body))
        if kind is tirx.AllocBuffer:
            b = s.buffer
            name = f"{b.name}_again"
            self._own[b.name] = tirx.decl_buffer(b.shape, str(b.dtype), name, scope=b.scope())
            return tir_stmt.AllocBuffer(self._own[b.name], dict(s.annotations))
        if kind is tir_stmt.BufferStore:
            buffer = self._own.get(s.buffer.name, s.buffer)
            return tir_stmt.BufferStore(buffer, self.value(s.value), [self.value(s.indices[0])])
        return super().statement(s)

    def value(self, e: Any) -> Any:
        if type(e) is ir.Var:
            return self._own.get(e.name, e)
        if type(e) is ir.TensorLoad:
            places = [self.value(one) for one in e.indices]
            return tirx.BufferLoad(self._own.get(e.source.name, e.source), places)
        return rebuilt(e, self.value)


def _tails(s: Any) -> list[int]:
    """The places of loops and conditions that stand behind others."""
    kinds = [type(one) for one in s.seq] if type(s) is tirx.SeqStmt else []
    return [
        i
        for i, kind in enumerate(kinds)
        if kind in (tirx.For, tirx.IfThenElse) and any(k in _STAGES for k in kinds[:i])
    ]


def _tail_dropped(s: Any) -> Changes:
    for i in _tails(s):
        yield partial(_with_parts, s, i, i + 1, [_nothing()])
    if type(s) is tirx.IfThenElse and s.else_case is None:
        yield _nothing


def _twice(s: Any, place: int) -> Any:
    again = _Again().statement(s.seq[place])
    return _with_parts(s, place, place + 1, [s.seq[place], again])


def _tail_doubled(s: Any) -> Changes:
    for i in _tails(s):
        yield partial(_twice, s, i)


def _moved(e: Any, by: int) -> Any:
    if isinstance(e, tirx.Ramp):
        return tirx.Ramp(e.base + by, e.stride, e.lanes)
    return e + by


def _stored_further(s: Any, by: int) -> Any:
    return tir_stmt.BufferStore(s.buffer, s.value, [_moved(s.indices[0], by)])


def _loaded_further(e: Any, by: int) -> Any:
    return tirx.BufferLoad(e.source, [_moved(e.indices[0], by)])


def _is_cell(buffer: Any) -> bool:
    return all(isinstance(d, tirx.IntImm) and int(d.value) == 1 for d in buffer.shape)


def _store_shifted(s: Any) -> Changes:
    if type(s) is tir_stmt.BufferStore and not _is_cell(s.buffer):
        for by in (1, -1):
            yield partial(_stored_further, s, by)


def _load_shifted(e: Any) -> Changes:
    if type(e) is ir.TensorLoad and not _is_cell(e.source):
        for by in (1, -1):
            yield partial(_loaded_further, e, by)


def _number(e: Any) -> Any | None:
    """The float that an expression is, in each of its lanes."""
    while isinstance(e, tirx.Broadcast):
        e = e.value
    if type(e) is ir.Call and len(e.args) == 2:  # a fence
        e = e.args[1]
    return e if isinstance(e, tirx.FloatImm) else None


def _with_number(e: Any, number: Any) -> Any:
    if isinstance(e, tirx.FloatImm):
        return number
    return e if isinstance(e, ir.StringImm) else rebuilt(e, lambda p: _with_number(p, number))


def _start(s: Any) -> Changes:
    number = _number(s.value) if type(s) is tir_stmt.BufferStore else None
    if number is not None:
        value = float(number.value)
        other = value + 1 if abs(value) < _HUGE else 0.0
        yield lambda: _stored(s, _with_number(s.value, _const(other, number)))


def _fill_removed(s: Any) -> Changes:
    if type(s) is tir_stmt.BufferStore and _number(s.value) is not None:
        yield _nothing


def _combination(e: Any) -> Changes:
    if not _is_float(e):
        return
    if type(e) is tirx.Add:
        yield lambda: e.b
        yield lambda: tirx.Sub(e.a, e.b)
    if _is_fma(e):
        _, a, b, c = e.args
        yield lambda: tirx.Mul(a, b)
        yield lambda: tirx.Add(tirx.Add(a, b), c)


def _is_fma(e: Any) -> bool:
    name = getattr(getattr(e, "op", None), "name", "")
    return type(e) is ir.Call and name == "tirx.call_llvm_pure_intrin" and len(e.args) == 4


def _barrier_removed(s: Any) -> Changes:
    if type(s) is tirx.AttrStmt and s.attr_key == BARRIER:
        yield lambda: s.body


def _stages_swapped(s: Any) -> Changes:
    parts = list(s.seq) if type(s) is tirx.SeqStmt else []
    for i, (one, following) in enumerate(itertools.pairwise(parts)):
        if type(one) in _STAGES and type(following) in _STAGES:
            yield partial(_with_parts, s, i, i + 2, [following, one])


def _operands_swapped(e: Any) -> Changes:
    kind = type(e)
    if kind in _ORDERED and _is_float(e.a):
        yield lambda: kind(e.b, e.a)
    if kind is ir.Call and len(e.args) == 3 and _is_named(e.args[0]):
        yield lambda: ir.Call(e.op, [e.args[0], e.args[2], e.args[1]], ret_ty=e.ty)


def _is_named(e: Any) -> bool:
    return isinstance(e, ir.StringImm) and str(e.value).startswith(NAMED)


def _other_panel(e: Any) -> Changes:
    """The row, the block or the panel before the right one; for the first one itself."""
    if type(e) is tirx.Mul and _is_index(e) and not isinstance(e.a, tirx.IntImm):
        yield lambda: tirx.Mul(tirx.Max(e.a - 1, _const(0, e.a)), e.b)


def _choice_inverted(e: Any) -> Changes:
    if type(e) is tirx.Select:
        yield lambda: tirx.Select(e.condition, e.false_value, e.true_value)


def _branch_inverted(s: Any) -> Changes:
    if type(s) is tirx.IfThenElse:
        yield lambda: tirx.IfThenElse(tirx.Not(s.condition), s.then_case, s.else_case)


def _longer(s: Any, by: int) -> Any:
    return tirx.For(s.loop_var, s.min, s.extent + by, s.kind, s.body)


def _loop_off_by_one(s: Any) -> Changes:
    if type(s) is tirx.For:
        for by in (1, -1):
            yield partial(_longer, s, by)


def _constant_changed(e: Any) -> Changes:
    if isinstance(e, tirx.FloatImm) and abs(value := float(e.value)) < _HUGE:
        yield lambda: _const(value + 1, e)
        if value:
            yield lambda: _const(value * 1.25, e)


def _integer_changed(e: Any) -> Changes:
    if isinstance(e, tirx.IntImm) and _is_index(e):
        for by in (1, -1):
            yield partial(_const, int(e.value) + by, e)


def _extreme_changed(e: Any) -> Changes:
    if type(e) in _EXTREMES:
        yield lambda: _EXTREMES[type(e)](e.a, e.b)


def _lane_dropped(s: Any) -> Changes:
    if type(s) is not tir_stmt.BufferStore or not isinstance(s.indices[0], tirx.Ramp):
        return
    index, lanes = s.indices[0], int(s.indices[0].lanes)
    if lanes < _FEWEST or int(s.value.ty.dtype.lanes) != lanes:
        return

    def made() -> Any:
        kept = [tirx.const(i, "int32") for i in range(lanes - 1)]
        fewer = tirx.Ramp(index.base, index.stride, lanes - 1)
        return tir_stmt.BufferStore(s.buffer, tirx.Shuffle([s.value], kept), [fewer])

    yield made


def _store_dropped(s: Any) -> Changes:
    if type(s) is tir_stmt.BufferStore and _number(s.value) is None:
        yield _nothing


def _rounding_cut(e: Any) -> Changes:
    if is_rounding(e):
        yield lambda: cut(e)


KINDS = {
    "tail dropped": Kind(_tail_dropped),
    "tail doubled": Kind(_tail_doubled),
    "store shifted": Kind(_store_shifted),
    "load shifted": Kind(values=_load_shifted),
    "wrong start": Kind(_start),
    "wrong combination": Kind(values=_combination),
    "barrier removed": Kind(_barrier_removed),
    "stages swapped": Kind(_stages_swapped),
    "operands swapped": Kind(values=_operands_swapped),
    "other panel": Kind(values=_other_panel),
    "fill removed": Kind(_fill_removed),
    "choice inverted": Kind(values=_choice_inverted),
    "branch inverted": Kind(_branch_inverted),
    "loop off by one": Kind(_loop_off_by_one),
    "constant changed": Kind(values=_constant_changed),
    "integer changed": Kind(values=_integer_changed),
    "min for max": Kind(values=_extreme_changed),
    "lane dropped": Kind(_lane_dropped),
    "store dropped": Kind(_store_dropped),
    "rounding cut": Kind(values=_rounding_cut),
    "every rounding cut": Kind(of_floats=ROUNDING),
    "coefficient changed": Kind(of_floats=FUNCTION),
}
