"""Expressions over the ring, as instructions of a program: see :mod:`.program`.

Arithmetic on floats becomes that of the ring. An expression that has a stand-in is replaced by it,
see :mod:`..tir.stand_ins`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import ir, tirx
from tvm.ir.prim import expr as prim

from composite.compiler.tvm.algebra import program, ring
from composite.compiler.tvm.algebra.memory import INT64, Accesses, kind_of
from composite.compiler.tvm.algebra.program import Kind, Value
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.math import bfloat16
from composite.compiler.tvm.tir.stand_ins import NAMED

_COMPUTED = {
    tirx.Add: "add",
    tirx.Sub: "sub",
    tirx.Mul: "mul",
    tirx.Div: "div",
    tirx.Mod: "mod",
    tirx.FloorDiv: "floordiv",
    tirx.FloorMod: "floormod",
    tirx.Max: "max",
    tirx.Min: "min",
    tirx.And: "and",
    tirx.Or: "or",
}
_COMPARED = {tirx.EQ: "eq", tirx.NE: "ne", tirx.LT: "lt", tirx.LE: "le"}
_TURNED = {tirx.GT: "lt", tirx.GE: "le"}
_OF_FLOATS = ("add", "sub", "mul")
_OF_BITS = {
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "shift_left": "shl",
    "shift_right": "shr",
}
_FUNCTIONS = ("sqrt", "floor", "ceil", "nearbyint", "round", "trunc", "pow")
_LIBRARY = {"fmodf": "fmod", "fmod": "fmod"}
"""Functions of the C library."""


class Expressions(Accesses):
    """Makes a program of expressions."""

    def branches(self, condition: Value, cases: Sequence[Callable[[], object]]) -> None:
        """Write what runs if a condition holds, and otherwise."""
        out, codes = self.out, []
        for case in cases:
            with out.scope() as code:
                case()
                out.end_statement()
            codes.append(code)
        lengths = [len(code) // program.ADVANCE for code in codes]
        past = len(codes) - 1  # the jump over the other case
        out.emit("jump_unless", 0, 0, lengths[0] + 1 + past, out.depth, condition.place)
        out.place(codes[0])
        if past:
            out.emit("jump", 0, 0, lengths[1] + 1, out.depth)
            out.place(codes[1])

    def move(self, place: int, value: Value, kind: Kind) -> None:
        """Copy words to a place."""
        self.out.emit("move", 0, kind.size, 0, self.out.depth, place, value.place)

    def value(self, e: Any) -> Value:
        """Return what an expression is over the ring."""
        if (stand_in := self.stand_ins.of(e)) is not None:
            e = stand_in
        kind = type(e)
        if kind is tirx.IntImm:
            own = kind_of(e)
            return self.out.constant(program.words(int(e.value), own))
        if kind is tirx.FloatImm:
            return self._float(e, 1)
        key = hash(e)
        found = self.out.known(key)
        if found is None:
            found = self.into(e, 0)
            self.out.keep(key, found)
        return found

    def index(self, e: Any) -> Value:
        """Return what an integer is in 64 bits."""
        if type(e) is tirx.IntImm:
            return self.out.constant(program.words(int(e.value), INT64))
        return self._converted(self.value(e), kind_of(e), INT64)

    def into(self, e: Any, place: int) -> Value:
        """Compute an expression, at a place if its last instruction may be told one."""
        if (stand_in := self.stand_ins.of(e)) is not None:
            e = stand_in
        kind = type(e)
        if kind in (tirx.IntImm, tirx.FloatImm) or (place and self.out.known(hash(e))):
            return self.value(e)
        rule = _RULES.get(kind)
        if rule is None:
            raise NotCovered(f"{kind.__name__} has no meaning over the ring")
        return rule(self, e, place)

    def _float(self, e: Any, lanes: int) -> Value:
        kind = kind_of(e)._replace(lanes=lanes)
        dtype = str(e.ty.dtype).partition("x")[0]
        return self.out.constant(program.words(ring.constant(float(e.value), dtype), kind))

    def _variable(self, e: Any, _: int) -> Value:
        raise NotCovered(f"{e} is no variable of the loops")

    def _arithmetic(self, e: Any, into: int) -> Value:
        out, kind, op = self.out, kind_of(e), _COMPUTED[type(e)]
        if not kind.is_float:
            return out.compute(op, kind, kind.size, self.value(e.a), self.value(e.b), into=into)
        if op == "add" and (product := self._product(e)) is not None:
            one, (a, b) = product
            values = (self.value(a), self.value(b), self.value(one))
            return out.compute("muladd", kind, kind.size, *values, into=into)
        a, b = self.value(e.a), self.value(e.b)
        if op in _OF_FLOATS:
            return out.compute(op, kind, kind.size, a, b, into=into)
        if op == "div":
            inverse = out.call("inverse", kind, b)
            return out.compute("mul", kind, kind.size, a, inverse, into=into)
        if op in ("max", "min"):
            pair = (a, b) if op == "min" else (b, a)
            return self._choice(self._ordered("lt", kind, *pair), a, b, kind, into)
        raise NotCovered(f"{type(e).__name__} of floats has no meaning over the ring")

    def _product(self, e: Any) -> tuple[Any, tuple[Any, Any]] | None:
        """Return a summand, and the factors of the other one if that is a product."""
        for one, other in ((e.a, e.b), (e.b, e.a)):
            if type(other) is tirx.Mul and self.out.known(hash(other)) is None:
                return one, (other.a, other.b)
        return None

    def _ordered(self, op: str, kind: Kind, a: Value, b: Value) -> Value:
        ranks = (self.out.call("order", kind, a), self.out.call("order", kind, b))
        return self.out.compute(op, kind, kind.lanes, *ranks)

    def _choice(self, condition: Value, a: Value, b: Value, kind: Kind, into: int = 0) -> Value:
        return self.out.compute("select", kind, kind.size, condition, a, b, extra=1, into=into)

    def _comparison(self, e: Any, _: int) -> Value:
        kind, op = kind_of(e.a), _COMPARED.get(type(e))
        a, b = self.value(e.a), self.value(e.b)
        if op is None:
            op, a, b = _TURNED[type(e)], b, a
        if kind.is_float and op in ("lt", "le"):
            return self._ordered(op, kind, a, b)
        return self.out.compute(op, kind, kind.lanes, a, b)

    def _not(self, e: Any, _: int) -> Value:
        kind = kind_of(e)
        ones = self.out.constant(program.words(1, kind))
        return self.out.compute("xor", kind, kind.size, self.value(e.a), ones)

    def _select(self, e: Any, into: int) -> Value:
        kind, conditions = kind_of(e), kind_of(e.condition).lanes
        condition = self.value(e.condition)
        if conditions != kind.lanes:
            wide = Kind(0, 8, kind.lanes, is_float=False)
            condition = self.out.compute("spread", wide, kind.lanes, condition)
        return self._choice(
            condition, self.value(e.true_value), self.value(e.false_value), kind, into
        )

    def _ramp(self, e: Any, into: int) -> Value:
        kind = kind_of(e)
        base, stride = self.value(e.base), self.value(e.stride)
        return self.out.compute("ramp", kind, kind.size, base, stride, into=into)

    def _broadcast(self, e: Any, into: int) -> Value:
        kind = kind_of(e)
        if self.stand_ins.of(e.value) is not None:
            return self.out.compute("spread", kind, kind.size, self.value(e.value), into=into)
        if type(e.value) is tirx.FloatImm:
            return self._float(e.value, kind.lanes)
        if type(e.value) is tirx.IntImm:
            return self.out.constant(program.words(int(e.value.value), kind))
        return self.repeated(e.value, kind, into)

    def _shuffle(self, e: Any, _: int) -> Value:
        out, kind = self.out, kind_of(e)
        vectors = [(self.value(v), kind_of(v).lanes) for v in e.vectors]
        lanes = [(v, lane) for v, count in vectors for lane in range(count)]
        depth, size = max(v.depth for v, _ in vectors), kind.bits // 8
        place = out.slot(kind.size, depth)
        for to, index in enumerate(e.indices):
            value, lane = lanes[int(index)]
            out.emit("move", 0, size, 0, depth, place + to * size, value.place + lane * size)
        return Value(place, depth)

    def _cast(self, e: Any, into: int) -> Value:
        value, source, target = self.value(e.value), kind_of(e.value), kind_of(e)
        if str(e.ty.dtype).startswith("bool"):
            zero = self.out.constant(program.words(0, source))
            return self.out.compute("ne", source, target.size, value, zero)
        return self._converted(value, source, target, into)

    def _converted(self, value: Value, source: Kind, target: Kind, into: int = 0) -> Value:
        """Return a conversion: the lowest bits stay, and integers are elements."""
        if source.bits == target.bits:
            return value
        out = self.out
        return out.compute("cast", source, target.size, value, extra=target.number, into=into)

    def _call(self, e: Any, into: int) -> Value:
        name = str(getattr(e.op, "name", "")).removeprefix("tirx.")
        if name == "call_pure_extern":
            return self._extern(str(e.args[0].value), list(e.args[1:]), kind_of(e), into)
        if name == "call_llvm_pure_intrin":
            return self._intrinsic(e, into)
        if name == "reinterpret":
            return self._bits(e)
        if name == "if_then_else":
            return self._either(e)
        kind = kind_of(e)
        if name in _OF_BITS and not kind.is_float:
            a, b = map(self.value, e.args)
            return self.out.compute(_OF_BITS[name], kind, kind.size, a, b, into=into)
        if name in _FUNCTIONS and kind.is_float:
            is_zero = isinstance(e.args[0], tirx.FloatImm) and e.args[0].value == 0
            values = [self.value(a) for a in e.args]
            return values[0] if is_zero else self.out.call(name, kind, *values)  # see `literal`
        raise NotCovered(f"{name} has no meaning over the ring")

    def _of_bits(self, e: Any, into: int) -> Value:
        kind = kind_of(e)
        values = self.value(e.a), self.value(e.b)
        return self.out.compute(_BITWISE[type(e)], kind, kind.size, *values, into=into)

    def _opposite(self, e: Any, _: int) -> Value:
        kind = kind_of(e)
        ones = self.out.constant(program.words(-1, kind))
        return self.out.compute("xor", kind, kind.size, self.value(e.a), ones)

    def _bits(self, e: Any) -> Value:
        """Return the same bits; of a load of a bfloat16, which is widened so, its element."""
        (value,) = e.args
        if kind_of(e).is_float and isinstance(value, prim.LShift):
            return self.value(value.a)
        return self.value(value)

    def _either(self, e: Any) -> Value:
        """Return one of two values, of which the other is not computed."""
        out, kind = self.out, kind_of(e)
        condition, place = self.value(e.args[0]), out.slot(kind.size, out.moment)
        moment = out.moment

        def case(value: Any) -> Callable[[], None]:
            return lambda: self.move(place, self.value(value), kind)

        self.branches(condition, [case(e.args[1]), case(e.args[2])])
        return Value(place, moment)

    def _extern(self, name: str, arguments: Sequence[Any], kind: Kind, into: int) -> Value:
        out = self.out
        values = [self.value(a) for a in arguments]
        if name == NAMED + "absolute":
            minus = out.call("neg", kind, values[0])
            is_larger = self._ordered("lt", kind, minus, values[0])
            return self._choice(is_larger, values[0], minus, kind)
        if name == NAMED + "power":
            return self._power(values[0], values[1], kind)
        if name.startswith(NAMED):
            return out.call(name.removeprefix(NAMED), kind, *values, into=into)
        if name in _LIBRARY:
            return out.call(_LIBRARY[name], kind, *values, into=into)
        if name == bfloat16.DOT:
            return self._dot(kind, values, 16, (False, False))
        if name.startswith("composite_dot_int16x"):
            return self._dot(kind, values, 16, (True, True))
        if name == "composite_dot_uint8_int8":
            return self._dot(kind, values, 8, (False, True))
        raise NotCovered(f"{name} has no meaning over the ring")

    def _power(self, x: Value, y: Value, kind: Kind) -> Value:
        """Return x^y, which is a product where the exponent is a small integer."""
        out = self.out

        def apply(name: str, *operands: Value) -> Value:
            if name in _OF_FLOATS:
                return out.compute(name, kind, kind.size, *operands)
            return out.call(name, kind, *operands)

        found = out.call("power", kind, x, y)
        dtype = f"float{kind.bits}"
        for exponent, value in ring.powers(x, apply).items():
            number = out.constant(program.words(ring.constant(exponent, dtype), kind))
            found = self._choice(out.compute("eq", kind, kind.lanes, y, number), value, found, kind)
        return found

    def _dot(self, kind: Kind, values: Sequence[Value], bits: int, signed: Sequence[bool]) -> Value:
        """Return sums to which the products of parts of words are added, each of so many bits."""
        out, (sums, *words) = self.out, values
        own = kind._replace(number=program.KINDS.index("int32"))
        for at in range(0, 32, bits):
            parts = []
            for word, is_signed in zip(words, signed, strict=True):
                left = out.constant(program.words(32 - bits - at, kind))
                right = out.constant(program.words(32 - bits, kind))
                high = out.compute("shl", own, kind.size, word, left)
                unsigned = own._replace(number=program.KINDS.index("uint32"))
                parts.append(
                    out.compute("shr", own if is_signed else unsigned, kind.size, high, right)
                )
            sums = out.compute("muladd", own, kind.size, *parts, sums)
        return sums

    def _intrinsic(self, e: Any, into: int) -> Value:
        number, kind = int(e.args[0].value), kind_of(e)
        if number == _number("llvm.arithmetic.fence"):
            return self.into(e.args[1], into) if into else self.value(e.args[1])
        if number == _number("llvm.fma"):
            values = [self.value(a) for a in e.args[1:]]
            return self.out.compute("muladd", kind, kind.size, *values, into=into)
        raise NotCovered(f"LLVM's intrinsic {number} has no meaning over the ring")


_lookups: dict[str, int] = {}


def _number(intrinsic: str) -> int:
    from tvm.target import codegen

    if intrinsic not in _lookups:
        _lookups[intrinsic] = int(codegen.llvm_lookup_intrinsic_id(intrinsic))
    return _lookups[intrinsic]


_BITWISE = {
    prim.BitwiseAnd: "and",
    prim.BitwiseOr: "or",
    prim.BitwiseXor: "xor",
    prim.LShift: "shl",
    prim.RShift: "shr",
}
_RULES: dict[type, Callable[[Expressions, Any, int], Value]] = {
    ir.Var: Expressions._variable,
    ir.TensorLoad: Expressions.load,
    tirx.Not: Expressions._not,
    prim.BitwiseNot: Expressions._opposite,
    tirx.Select: Expressions._select,
    tirx.Ramp: Expressions._ramp,
    tirx.Broadcast: Expressions._broadcast,
    tirx.Shuffle: Expressions._shuffle,
    tirx.Cast: Expressions._cast,
    ir.Call: Expressions._call,
    **dict.fromkeys(_COMPUTED, Expressions._arithmetic),
    **dict.fromkeys((*_COMPARED, *_TURNED), Expressions._comparison),
    **dict.fromkeys(_BITWISE, Expressions._of_bits),
}
