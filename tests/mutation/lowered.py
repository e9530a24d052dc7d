"""Loops that name their elementary functions, with the functions written out.

That is what a kernel of floats has. Here it is made of the loops that name them, so that one
mistake is made in the kernel of floats and in that over the ring alike.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

from tvm import ir, tirx

from composite.compiler.tvm import math
from composite.compiler.tvm.lower import normalization
from composite.compiler.tvm.math import numeric
from composite.compiler.tvm.target import Target
from composite.compiler.tvm.tir.block import Block, const
from composite.compiler.tvm.tir.stand_ins import NAMED
from tests.compiler.tvm.rebuilding import Rebuilding
from tests.mutation.rebuilding import Altering, Changes, Places, rebuilt

ROUNDING, FUNCTION = "rounding", "function"
_COUNTS_FROM = 1_000_000  # names of its own
_KEPT_BY_HALF = 0xFFFFE000  # bits of a float32
_OTHER = 1.01  # times a coefficient


def in_floats(
    function: Any, target: Target, changed: str = "", places: Places | None = None
) -> Any:
    """Return a function of floats.

    `places`: of what is changed, a `ROUNDING` or a constant of a `FUNCTION`.
    """
    made = _Lowering(target, changed, places or Places())
    return function.with_body(made.statement(function.body))


class _Continuing(Block):
    """Statements in front of another one, with names that no other has."""

    def __init__(self, count: int, fuses: bool) -> None:
        super().__init__()
        self._count = count
        self.fuses = fuses

    @property
    def count(self) -> int:
        return self._count

    def go_on(self, count: int) -> None:
        self._count = count

    def in_front_of(self, last: Any, alter: Callable[[Any], Any]) -> Any:
        (before,) = self._scopes
        self._scopes = [[*map(alter, before), last]]
        return self.finish()


class _Lowering(Rebuilding):
    def __init__(self, target: Target, changed: str, places: Places) -> None:
        self._fuses = target.has_fma
        self._changed = changed
        self._places = places
        self._block = _Continuing(_COUNTS_FROM, self._fuses)
        self._cuts = changed == ROUNDING and places.altered("rounding", iter([_cuts])) is not None
        self._functions = {f.__name__: f for f in _functions()}
        self._altering = Altering(places, values=_coefficients)

    def statement(self, s: Any) -> Any:
        """Return a statement behind those that compute its functions."""
        if isinstance(s, tirx.SeqStmt | tirx.AttrStmt | tirx.AllocBuffer | tirx.DeclBuffer):
            return super().statement(s)
        outer, self._block = self._block, _Continuing(self._block.count, self._fuses)
        made = super().statement(s)
        changes = self._changed == FUNCTION
        alter = self._altering.statement if changes else lambda one: one
        made = self._block.in_front_of(made, alter)
        count, self._block = self._block.count, outer
        self._block.go_on(count)
        return made

    def value(self, e: Any) -> Any:
        e = rebuilt(e, self.value)
        kind = type(e)
        if kind is ir.Call and isinstance(first := e.args[0], ir.StringImm):
            name = str(first.value)
            if name.startswith(NAMED):
                return self._functions[name.removeprefix(NAMED)](self._block, *e.args[1:])
        if kind is tirx.Cast:
            return self._cast(e)
        return e

    def _cast(self, e: Any) -> Any:
        value, source, target = e.value, numeric.element(e.value), numeric.element(e)
        if is_rounding(e):
            if self._cuts:
                return cut(e)
            is_half = target == "float16"
            return e if is_half else numeric.to_storage(self._block, value.args[0], "bfloat16")
        if source in ("float32", "float64") and target in ("int32", "int64"):
            return numeric.cast(self._block, value, source, target)
        return e


def _cuts() -> str:
    return "cut"


def is_rounding(e: Any) -> bool:
    """Whether an expression is a float32 as it is stored in 16 bits."""
    if type(e) is not tirx.Cast:
        return False
    source, target = numeric.element(e.value), numeric.element(e)
    if target == "float16":
        return bool(source == "float32")
    is_bits = type(e.value) is ir.Call and e.value.op.name == "tirx.reinterpret"
    return target == "uint16" and is_bits and numeric.element(e.value.args[0]) == "float32"


def cut(e: Any) -> Any:
    """What becomes of a rounding that cuts the bits off which are too many."""
    if numeric.element(e) == "uint16":
        shift = const(16, numeric.with_lanes("uint32", e.value))
        return numeric.convert(e.value >> shift, "uint16")
    word = numeric.bits(e.value, "uint32")
    kept = const(_KEPT_BY_HALF, numeric.with_lanes("uint32", word))
    return numeric.convert(numeric.bits(word & kept, "float32"), "float16")


def _coefficients(e: Any) -> Changes:
    if isinstance(e, tirx.FloatImm) and (value := float(e.value)):
        yield lambda: tirx.const(value * _OTHER, str(e.ty.dtype))


def _functions() -> Iterator[Callable[..., Any]]:
    """The functions that are written by name."""
    modules = [importlib.import_module(f"{math.__name__}.{m.name}") for m in _modules()]
    for module in (*modules, normalization):
        for one in vars(module).values():
            if hasattr(one, "__wrapped__") and callable(one):
                yield one


def _modules() -> Iterator[pkgutil.ModuleInfo]:
    return pkgutil.iter_modules(math.__path__)
