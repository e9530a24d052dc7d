"""The loops of a kernel over the ring: arithmetic on floats becomes calls of the ring's functions.

Only expressions change. What computes an elementary function is replaced before, where it is
written: :attr:`Block.named` has the functions of :mod:`..math` written as calls by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import ir, tirx
from tvm.ir.prim import expr as prim
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.algebra import llvm, ring
from composite.compiler.tvm.codegen.block import NAMED, const, dtype_of, lanes_of
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.math import bfloat16
from composite.compiler.tvm.math.numeric import bits, element, like, with_lanes

_BINARY = {tirx.Add: "add", tirx.Sub: "sub", tirx.Mul: "mul"}
_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE)
_EQUALITIES = (tirx.EQ, tirx.NE)
_OTHER_BINARY = (
    tirx.Mod,
    tirx.FloorDiv,
    tirx.FloorMod,
    tirx.And,
    tirx.Or,
    prim.BitwiseAnd,
    prim.BitwiseOr,
    prim.BitwiseXor,
    prim.LShift,
    prim.RShift,
)
_FUNCTIONS = ("sqrt", "floor", "ceil", "nearbyint", "round", "trunc", "pow")
_LIBRARY = {"fmodf": "fmod", "fmod": "fmod"}
"""Functions of the C library."""
_UNCHANGED = ("tirx.reinterpret", "tirx.if_then_else", "tirx.address_of", "tirx.prefetch")


def in_ring(function: Any) -> Any:
    """Return a TIR function over the ring; NotCovered where it holds what has no meaning there."""
    made = _Rewriting()
    body = made.statement(function.body)
    for text in made.texts():
        zero = tirx.const(0, "int32")
        body = tirx.AttrStmt(zero, "pragma_import_llvm", ir.StringImm(text), body)
    return function.with_body(body)


def _is_float(e: Any) -> bool:
    return element(e).startswith("float")


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


class _Rewriting(Rebuilding):
    def __init__(self) -> None:
        self._done: dict[int, tuple[Any, Any]] = {}  # by identity, which the first one keeps
        self._used: dict[tuple[str, int, int, int], None] = {}

    def texts(self) -> list[str]:
        return [llvm.text(*key) for key in self._used]

    def _apply(self, name: str, *operands: Any) -> Any:
        """Return the call of a function of the ring, of the dtype of its operands."""
        first = operands[0]
        width, lanes = dtype_of(first).bits, lanes_of(first)
        self._used[name, width, lanes, len(operands)] = None
        dtype = with_lanes(f"uint{width}", first) if name == "order" else str(dtype_of(first))
        return tirx.call_pure_extern(dtype, llvm.symbol(name, width, lanes), *operands)

    def value(self, e: Any) -> Any:
        """Return an expression over the ring."""
        if isinstance(e, tirx.IntImm | tirx.FloatImm):  # equal ones of other dtypes have its hash
            return self._value(e)
        key = hash(e)
        if key not in self._done:
            self._done[key] = e, self._value(e)
        return self._done[key][1]

    def _value(self, e: Any) -> Any:
        rule = _RULES.get(type(e))
        if rule is None:
            raise NotCovered(f"{type(e).__name__} has no meaning over the ring")
        return rule(self, e)

    def _same(self, e: Any) -> Any:
        return e

    def _float(self, e: Any) -> Any:
        dtype = element(e)
        value = ring.constant(float(e.value), dtype)
        if value == 0:
            return const(0.0, dtype)
        width = ring.BITS[dtype]
        signed = value - (1 << width) if value >> (width - 1) else value
        return bits(const(signed, f"int{width}"), dtype)

    def _load(self, e: Any) -> Any:
        return tirx.BufferLoad(e.source, [self.value(i) for i in e.indices])

    def _binary(self, e: Any) -> Any:
        a, b, kind = self.value(e.a), self.value(e.b), type(e)
        if not _is_float(e.a):
            return kind(a, b)
        if kind in _BINARY:
            return self._apply(_BINARY[kind], a, b)
        if kind is tirx.Div:
            return self._apply("mul", a, self._apply("inverse", b))
        if kind in _EQUALITIES:
            same = _same_bits(a, b)
            return same if kind is tirx.EQ else tirx.Not(same)
        if kind in _COMPARISONS:
            return kind(self._apply("order", a), self._apply("order", b))
        if kind in (tirx.Max, tirx.Min):
            compared = tirx.GT if kind is tirx.Max else tirx.LT
            first = compared(self._apply("order", a), self._apply("order", b))
            return tirx.Select(first, a, b)
        raise NotCovered(f"{kind.__name__} of floats has no meaning over the ring")

    def _unary(self, e: Any) -> Any:
        return type(e)(self.value(e.a))

    def _select(self, e: Any) -> Any:
        parts = (e.condition, e.true_value, e.false_value)
        return tirx.Select(*(self.value(part) for part in parts))

    def _ramp(self, e: Any) -> Any:
        return tirx.Ramp(self.value(e.base), self.value(e.stride), e.lanes)

    def _broadcast(self, e: Any) -> Any:
        return tirx.Broadcast(self.value(e.value), e.lanes)

    def _shuffle(self, e: Any) -> Any:
        return tirx.Shuffle([self.value(v) for v in e.vectors], list(e.indices))

    def _cast(self, e: Any) -> Any:
        value, source, target = self.value(e.value), element(e.value), element(e)
        if not (source.startswith("float") or target.startswith("float")):
            return tirx.Cast(str(dtype_of(e)), value)
        return converted(value, source, target)

    def _call(self, e: Any) -> Any:
        name = str(getattr(e.op, "name", ""))
        arguments = [self.value(a) if isinstance(a, ir.Expr) else a for a in e.args]
        if name == "tirx.call_pure_extern":
            return self._extern(e, arguments)
        if name == "tirx.call_llvm_pure_intrin":
            return self._intrinsic(e, arguments)
        function = name.removeprefix("tirx.")
        if function in _FUNCTIONS and _is_float(e):
            is_zero = isinstance(e.args[0], tirx.FloatImm) and e.args[0].value == 0
            return arguments[0] if is_zero else self._apply(function, *arguments)  # see `literal`
        if name in _UNCHANGED:
            widened = self._widened(e)
            return ir.Call(e.op, arguments, ret_ty=e.ty) if widened is None else widened
        raise NotCovered(f"{name} has no meaning over the ring")

    def _widened(self, e: Any) -> Any | None:
        """Return a load of a bfloat16, if that is what an expression is, over the ring."""
        shift = e.args[0]
        is_widened = isinstance(shift, prim.LShift) and _is_float(e)
        return bits(self.value(shift.a), element(e)) if is_widened else None

    def _extern(self, e: Any, arguments: Sequence[Any]) -> Any:
        name = str(arguments[0].value)
        if name == NAMED + "absolute":
            (x,) = arguments[1:]
            minus = self._apply("neg", x)
            first = tirx.GT(self._apply("order", x), self._apply("order", minus))
            return tirx.Select(first, x, minus)
        if name == NAMED + "power":
            return self._power(*arguments[1:])
        if name.startswith(NAMED):
            return self._apply(name.removeprefix(NAMED), *arguments[1:])
        if name in _LIBRARY:
            return self._apply(_LIBRARY[name], *arguments[1:])
        if name == bfloat16.DOT:
            return self._dot_of_pairs(*arguments[1:])
        if not any(isinstance(a, ir.Expr) and _is_float(a) for a in arguments[1:]):
            return ir.Call(e.op, arguments, ret_ty=e.ty)
        raise NotCovered(f"{name} has no meaning over the ring")

    def _power(self, x: Any, y: Any) -> Any:
        """Return x^y, which is a product where the exponent is a small integer."""
        found = self._apply("power", x, y)
        for exponent, value in ring.powers(x, self._apply).items():
            number = self.value(like(exponent, y))
            found = tirx.Select(_same_bits(y, number), value, found)
        return found

    def _dot_of_pairs(self, sums: Any, a: Any, b: Any) -> Any:
        """Return sums to which both products of pairs of bfloat16 are added."""
        for part in (_lower_half, _upper_half):
            sums = self._apply("add", sums, self._apply("mul", part(a), part(b)))
        return sums

    def _intrinsic(self, e: Any, arguments: Sequence[Any]) -> Any:
        number = int(arguments[0].value)
        if number == _number("llvm.arithmetic.fence"):
            return arguments[1]
        if number == _number("llvm.fma"):
            a, b, c = arguments[1:]
            return self._apply("add", self._apply("mul", a, b), c)
        if not _is_float(e):
            return ir.Call(e.op, arguments, ret_ty=e.ty)
        raise NotCovered(f"LLVM's intrinsic {number} has no meaning over the ring")


def _same_bits(a: Any, b: Any) -> Any:
    unsigned = f"uint{dtype_of(a).bits}"
    return tirx.EQ(bits(a, unsigned), bits(b, unsigned))


def _lower_half(pair: Any) -> Any:
    words = bits(pair, "uint32")
    return bits(words & const(0xFFFF, with_lanes("uint32", pair)), "float32")


def _upper_half(pair: Any) -> Any:
    words = bits(pair, "uint32")
    return bits(words >> const(16, with_lanes("uint32", pair)), "float32")


def _number(intrinsic: str) -> int:
    from tvm.target import codegen

    return int(codegen.llvm_lookup_intrinsic_id(intrinsic))


def converted(value: Any, source: str, target: str) -> Any:
    """Return a conversion between dtypes: the lowest bits stay, and integers are elements."""
    if source.startswith("float"):
        value = bits(value, f"uint{ring.BITS[source]}")
    if not target.startswith("float"):
        return tirx.Cast(with_lanes(target, value), value)
    return bits(tirx.Cast(with_lanes(f"uint{ring.BITS[target]}", value), value), target)


_RULES: dict[type, Callable[[_Rewriting, Any], Any]] = {
    tirx.IntImm: _Rewriting._same,
    ir.Var: _Rewriting._same,
    ir.StringImm: _Rewriting._same,
    tirx.FloatImm: _Rewriting._float,
    ir.TensorLoad: _Rewriting._load,
    tirx.Not: _Rewriting._unary,
    prim.BitwiseNot: _Rewriting._unary,
    tirx.Select: _Rewriting._select,
    tirx.Ramp: _Rewriting._ramp,
    tirx.Broadcast: _Rewriting._broadcast,
    tirx.Shuffle: _Rewriting._shuffle,
    tirx.Cast: _Rewriting._cast,
    ir.Call: _Rewriting._call,
    **dict.fromkeys(
        (*_BINARY, tirx.Div, tirx.Max, tirx.Min, *_COMPARISONS, *_EQUALITIES, *_OTHER_BINARY),
        _Rewriting._binary,
    ),
}
