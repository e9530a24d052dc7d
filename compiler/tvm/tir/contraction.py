"""Products and sums rounded as they are written, wherever their loops stand.

LLVM makes a fused multiply-add of a product and a sum where both are in one basic block. A product
that does not change in a loop leaves it, so that the same elements have other bits in a kernel of
other sizes. Here a product and a sum within one expression are one operation by name, and no other
product is combined with what reads it. Not for targets without fused multiply-adds, where nothing
is contracted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.ir.prim import expr as prim

from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.tir.stand_ins import StandIns

_OF_TWO = (
    prim.Div,
    prim.Max,
    prim.Min,
    prim.EQ,
    prim.NE,
    prim.LT,
    prim.LE,
    prim.GT,
    prim.GE,
    prim.And,
    prim.Or,
)


class Contraction:
    """Rewrites expressions; what stood for one over the ring stands for what it becomes."""

    def __init__(self, stand_ins: StandIns) -> None:
        self._stand_ins = stand_ins

    def of(self, value: Expr) -> Expr:
        """Return an expression whose products and sums LLVM leaves as they are.

        A sum with a product among its operands, the first if both are, becomes ``llvm.fma``.
        """
        made = self._rewritten(value)
        if made is not value and (stand_in := self._stand_ins.of(value)) is not None:
            self._stand_ins.add(made, stand_in)
        return made

    def _rewritten(self, value: Expr) -> Expr:
        if isinstance(value, prim.Add | prim.Sub | prim.Mul):
            return self._arithmetic(value) if _is_float(value) else value
        if isinstance(value, _OF_TWO):
            return self._rebuilt(value, (value.a, value.b), type(value))
        if isinstance(value, tirx.Select):
            given = (value.condition, value.true_value, value.false_value)
            return self._rebuilt(value, given, tirx.Select)
        if isinstance(value, tirx.Cast):
            dtype = str(value.ty.dtype)
            return self._rebuilt(value, (value.value,), lambda x: tirx.Cast(dtype, x))
        if isinstance(value, tirx.Broadcast):
            lanes = value.lanes
            return self._rebuilt(value, (value.value,), lambda x: tirx.Broadcast(x, lanes))
        if isinstance(value, tirx.Shuffle):
            places = value.indices
            return self._rebuilt(value, value.vectors, lambda *xs: tirx.Shuffle([*xs], places))
        return value

    def _arithmetic(self, value: Expr) -> Expr:
        a, b, adds = value.a, value.b, isinstance(value, prim.Add)
        if isinstance(value, prim.Mul):
            product = self._rebuilt(value, (a, b), prim.Mul)
            return _intrinsic("llvm.arithmetic.fence", product)
        if isinstance(a, prim.Mul):
            rest = self.of(b)
            return self._fused(a, rest if adds else _negative(rest))
        if isinstance(b, prim.Mul):
            return self._fused(b, self.of(a), negative=not adds)
        return self._rebuilt(value, (a, b), type(value))

    def _fused(self, product: Expr, rest: Expr, *, negative: bool = False) -> Expr:
        a, b = self.of(product.a), self.of(product.b)
        return _intrinsic("llvm.fma", _negative(a) if negative else a, b, rest)

    def _rebuilt(self, value: Expr, given: Sequence[Expr], make: Callable[..., Expr]) -> Expr:
        """Return the expression of rewritten operands; itself where they stay the same."""
        made = [self.of(one) for one in given]
        if all(one is other for one, other in zip(given, made, strict=True)):
            return value
        return make(*made)


def _intrinsic(name: str, *operands: Expr) -> Expr:
    return tirx.call_llvm_pure_intrin(str(operands[-1].ty.dtype), name, *operands)


def _negative(value: Expr) -> Expr:
    """Return -x, which LLVM makes of a product with -1, and which rounds nothing."""
    one, lanes = tirx.const(-1.0, str(value.ty.dtype).partition("x")[0]), value.ty.dtype.lanes
    return prim.Mul(value, tirx.Broadcast(one, lanes) if lanes > 1 else one)


def _is_float(value: Expr) -> bool:
    return str(value.ty.dtype).startswith("float")
