"""TIR expressions as integers: what an index is, and what follows from a condition.

A vector of integers is one integer that stands for any of its lanes: its lanes are the values of an
atom. What is not an integer of 64 bits, or may overflow one, is an atom of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir, tirx

from composite.compiler.tvm.ir.dims import Dim, Poly, symbol
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.proof.polynomials import atoms_of

_WIDE = 1 << 47
"""Sizes are below this; data in this range can be added and multiplied with them."""

Facts = list[Dim]
Condition = tuple[Facts, Facts]
"""What holds if a condition does, and what holds if it does not."""

_WIDTHS = {"bool": (0, 1)} | {
    f"{sign}int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32)
}

_INDICES = {"int32", "int64"}


class Expressions:
    """Evaluates expressions; ``load`` gives the integer that a load reads, or notes the access."""

    def __init__(self, integers: Integers, load: Callable[[Any, Dim | None], Dim | None]) -> None:
        self.integers = integers
        self.variables: dict[str, Dim] = {}
        self.divisors: list[Dim | str] = []  # what may be 0 and is divided by
        self._wild: set[str] = set()  # integers of 64 bits that are data
        self._wrapped: dict[tuple[type, Dim, Dim], Poly] = {}
        self._load = load
        self._fresh = 0

    def fresh(self, hint: str, dtype: str) -> Poly:
        """Return a new integer of which only its dtype is known, in each lane of a vector's."""
        self._fresh += 1
        made = self.integers.atom(f"{hint}#{self._fresh}")
        scalar, _, lanes = dtype.partition("x")
        if lanes:
            self.integers.vary(made, int(lanes))
        low, high = _WIDTHS.get(scalar, (None, None))
        if low is not None and high is not None:
            self.integers.learn(made - low)
            self.integers.learn(high - made)
        else:
            self._wild.update(atoms_of(made))
        return made

    def trust(self, made: Poly, ends: tuple[Dim, Dim]) -> None:
        """Note that an integer lies between others: it wraps around only if one of them may."""
        if self._wild.isdisjoint(name for end in ends for name in atoms_of(end)):
            self._wild.difference_update(atoms_of(made))

    def value(self, e: Any) -> Dim | None:
        """Return what an expression is, None if it is no integer; all that it loads is noted."""
        found = _VALUES.get(type(e))
        if found is not None:
            return found(self, e)
        if isinstance(e, ir.Call):
            return self._call(e)
        for child in children(e):
            self.value(child)
        return None

    def bound(self, name: str, e: Any) -> Dim | None:
        """Return what a variable is that is bound to an expression; None if it is no integer.

        What is not known of an index stays the same wherever the variable is read.
        """
        value, dtype = self.value(e), str(e.ty.dtype)
        return self.fresh(name, dtype) if value is None and _scalar(dtype) in _INDICES else value

    def _call(self, e: Any) -> Dim | None:
        name = getattr(e.op, "name", "")
        if name in {"tirx.address_of", "tirx.prefetch"}:
            return None  # touches nothing; a prefetch never faults
        for argument in e.args:
            if isinstance(argument, ir.Expr):
                self.value(argument)
        return None

    def _imm(self, e: Any) -> Dim | None:
        return int(e.value)

    def _var(self, e: Any) -> Dim | None:
        return self.variables.get(e.name)

    def _binary(self, e: Any) -> Dim | None:
        a, b = self.value(e.a), self.value(e.b)
        dtype = _scalar(e.ty.dtype) if a is not None and b is not None else ""
        if a is None or b is None or not _is_integer(dtype):
            self._note_divisor(e, b)
            return None
        if self._may_wrap(a) or self._may_wrap(b):
            self._note_divisor(e, b)
            return self._of_wrapping(type(e), a, b)
        found = _OPERATORS[type(e)](self, a, b)
        return found if found is None or dtype == "int64" or self._fits(found, dtype) else None

    def _may_wrap(self, p: Dim) -> bool:
        """Return whether arithmetic on an integer may leave 64 bits: any data may be in it."""
        return any(
            not self.integers.is_at_least(symbol(a), -_WIDE)
            or not self.integers.is_at_least(_WIDE, symbol(a))
            for a in atoms_of(p)
            if a in self._wild
        )

    def _of_wrapping(self, kind: type, a: Dim, b: Dim) -> Dim:
        """Return the integer that stands for a result which may have wrapped around."""
        key = (kind, a, b)
        if key not in self._wrapped:
            self._wrapped[key] = self.fresh("wrapped", "int64")
            lanes = [
                self.integers.lanes(n)
                for p in (a, b)
                for n in atoms_of(p)
                if self.integers.is_lane(n)
            ]
            if lanes:
                self.integers.vary(self._wrapped[key], lanes[0])
        return self._wrapped[key]

    def _note_divisor(self, e: Any, b: Dim | None) -> None:
        """Note what an integer is divided by that is not understood; the result is not either."""
        if type(e) in _DIVISIONS and _is_integer(e.ty.dtype):
            self._divide_by(b)

    def _divide_by(self, b: Dim | None) -> None:
        if b is None or not self.integers.is_nonzero(b):
            self.divisors.append("?" if b is None else b)

    def _quotient(self, a: Dim, b: Dim) -> Dim | None:
        found = self.integers.quotient(a, b)
        if found is None:
            self._divide_by(b)
        return found

    def _remainder(self, a: Dim, b: Dim) -> Dim | None:
        return None if self._quotient(a, b) is None else self.integers.remainder(a, b)

    def _select(self, e: Any) -> Dim | None:
        holds, fails = self.condition(e.condition)
        a, b = self.value(e.true_value), self.value(e.false_value)
        if a is None or b is None or not _is_integer(e.ty.dtype):
            return None
        if self.integers.is_impossible(fails):
            return a
        if self.integers.is_impossible(holds):
            return b
        # Two choices between the same are one only if all is known of what they hang on.
        own = None if type(e.condition) in _COMPARISONS and holds else self._fresh
        self._fresh += own is not None
        made = self.integers.either([(a, holds), (b, fails)], own)
        if any(map(self.integers.is_lane, [*atoms_of(a), *atoms_of(b)])):
            self.integers.vary(made, int(e.ty.dtype.lanes))
        return made

    def _cast(self, e: Any) -> Dim | None:
        value, (to, of) = self.value(e.value), (e.ty.dtype, e.value.ty.dtype)
        if value is None or not (_is_integer(to) and _is_integer(of)):
            return None
        if _scalar(to) == "int64" and _scalar(of) != "uint64":
            return value
        return value if self._fits(value, _scalar(to)) else None

    def _fits(self, value: Dim, dtype: str) -> bool:
        if dtype not in _WIDTHS:
            return False
        low, high = _WIDTHS[dtype]
        return self.integers.is_at_least(value, low) and self.integers.is_at_least(high, value)

    def _ramp(self, e: Any) -> Dim | None:
        base, step = self.value(e.base), self.value(e.stride)
        if base is None or step is None:
            return None
        return base + step * self.integers.lane(int(e.lanes))

    def _broadcast(self, e: Any) -> Dim | None:
        return self.value(e.value)

    def _buffer_load(self, e: Any) -> Dim | None:
        if len(e.indices) != 1:
            for i in e.indices:
                self.value(i)
            return self._load(e, None)
        return self._load(e, self.value(e.indices[0]))

    def condition(self, e: Any) -> Condition:
        """Return what holds if a condition does and if it does not; what it loads is noted."""
        kind = type(e)
        if kind is tirx.And or kind is tirx.Or:
            holds, fails = self.condition(e.a), self.condition(e.b)
            if kind is tirx.And:
                return holds[0] + fails[0], []
            return [], holds[1] + fails[1]
        if kind is tirx.Not:
            holds_not = self.condition(e.a)
            return holds_not[1], holds_not[0]
        if kind is tirx.IntImm:
            return ([0], [-1]) if e.value else ([-1], [0])
        if kind not in _COMPARISONS:
            self.value(e)
            return [], []
        a, b = self.value(e.a), self.value(e.b)
        if a is None or b is None:
            return [], []
        if kind is tirx.EQ or kind is tirx.NE:
            same = [a - b, b - a]
            other = [a - b - 1] if self.integers.is_at_least(a, b) else []
            other += [b - a - 1] if self.integers.is_at_least(b, a) else []
            return (same, other) if kind is tirx.EQ else (other, same)
        if kind is tirx.GT or kind is tirx.LE:
            a, b = b, a  # a < b, and not (a < b) the other way round
        less, not_less = [b - a - 1], [a - b]
        return (less, not_less) if kind in {tirx.LT, tirx.GT} else (not_less, less)


def _scalar(dtype: Any) -> str:
    return str(dtype).partition("x")[0]


def _is_integer(dtype: Any) -> bool:
    return _scalar(dtype).startswith(("int", "uint", "bool"))


_CHILDREN = ("a", "b", "value", "condition", "true_value", "false_value", "base", "stride")


def children(e: Any) -> list[Any]:
    """Return what an expression is made of; a call's arguments are not among it."""
    if isinstance(e, tirx.Shuffle):
        return [*e.vectors, *e.indices]
    return [getattr(e, name) for name in _CHILDREN if hasattr(e, name)]


_DIVISIONS = {tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod}
_COMPARISONS = {tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE}
_OPERATORS: dict[type, Callable[[Expressions, Dim, Dim], Dim | None]] = {
    tirx.Add: lambda _, a, b: a + b,
    tirx.Sub: lambda own, a, b: own.integers.with_remainders(a - b),
    tirx.Mul: lambda _, a, b: a * b,
    tirx.Min: lambda own, a, b: own.integers.minimum(a, b),
    tirx.Max: lambda own, a, b: own.integers.maximum(a, b),
    tirx.Div: Expressions._quotient,
    tirx.Mod: Expressions._remainder,
    tirx.FloorDiv: Expressions._quotient,
    tirx.FloorMod: Expressions._remainder,
}
_VALUES: dict[type, Callable[[Expressions, Any], Dim | None]] = {
    tirx.IntImm: Expressions._imm,
    tirx.FloatImm: lambda *_: None,
    ir.Var: Expressions._var,
    tirx.Select: Expressions._select,
    tirx.Cast: Expressions._cast,
    tirx.Ramp: Expressions._ramp,
    tirx.Broadcast: Expressions._broadcast,
    ir.TensorLoad: Expressions._buffer_load,
    **dict.fromkeys(_OPERATORS, Expressions._binary),
}
