"""Division of many values by one: its reciprocal is taken once, and no quotient is less exact.

The reciprocal is held in two parts, so that a quotient costs two products and an addition and is
rounded as the division would be, but for ties within 2^-22 of a place (Brisebarre, Muller, Raina,
Accelerating Correctly Rounded Floating-Point Division when the Divisor Is Known in Advance, 2004).
Quotients below 1e-30 may be further off (:mod:`.accuracy`). Without fused multiply-adds all would
be wrong: ask the target.
"""

from __future__ import annotations

from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import (
    bits,
    choose,
    element,
    like,
    multiply_add,
    with_lanes,
)
from composite.compiler.tvm.tir.block import Block, const, dtype_of

_EXPONENTS = {"float32": (23, 0xFF), "float64": (52, 0x7FF)}
OPS = ("RealDiv", "Div")


def _integers(x: Expr) -> str:
    return f"int{dtype_of(x).bits}"


def _scale(block: Block, divisor: Expr) -> Expr:
    """Return a power of two that brings the divisor near 1, or as near as there is.

    Below 1 it becomes 1/2 to 1, else 1 to 2. So no dividend overflows that is scaled up, and none
    underflows that is scaled down, unless the quotient does.
    """
    with block.stand_ins.standing(like(1.0, divisor)) as found:
        return found(_power_near(block, divisor))


def _power_near(block: Block, divisor: Expr) -> Expr:
    mantissa, mask = _EXPONENTS[element(divisor)]
    integer = _integers(divisor)
    vector = with_lanes(integer, divisor)
    exponent = block.let(bits(divisor, integer) & const(mask << mantissa, vector))
    one, least = (const(field << mantissa, vector) for field in (mask // 2, 1))
    below = const((mask - 2) << mantissa, vector) - exponent
    inverse = block.let(choose(exponent < one, below, below + least))
    return block.let(bits(choose(inverse < least, least, inverse), element(divisor)))


def _scaled(_: Block, divisor: Expr, scale: Expr) -> Expr:
    return divisor * scale


def _high(block: Block, scaled: Expr) -> Expr:
    """Return the reciprocal, rounded towards zero."""
    nearest = block.let(like(1.0, scaled) / scaled)
    with block.stand_ins.standing(nearest) as found:
        return found(_towards_zero(block, nearest, scaled))


def _towards_zero(block: Block, nearest: Expr, scaled: Expr) -> Expr:
    integer = _integers(scaled)
    smaller = bits(nearest, integer) - const(1, with_lanes(integer, scaled))
    too_large = multiply_add(block, nearest, scaled, like(-1.0, scaled)) > like(0.0, scaled)
    return block.let(choose(too_large, bits(smaller, element(scaled)), nearest))


def _low(block: Block, scaled: Expr, high: Expr) -> Expr:
    """Return what the reciprocal is more, or next to nothing, but of its sign.

    Of its sign, as infinite dividends would make NaN of two parts of different signs, or of zero.
    """
    with block.stand_ins.standing(like(0.0, scaled)) as found:
        return found(_rest(block, scaled, high))


def _rest(block: Block, scaled: Expr, high: Expr) -> Expr:
    minus = multiply_add(block, high, scaled, like(-1.0, scaled))
    rest = block.let((like(0.0, scaled) - minus) * high)
    return block.let(choose(minus < like(0.0, scaled), rest, high * like(2.0**-60, high)))


def _quotient(block: Block, x: Expr, scale: Expr, high: Expr, low: Expr) -> Expr:
    x = block.let(x * scale)
    return multiply_add(block, x, high, block.let(x * low))


def divide_by_one(x: Tensor, divisor: Tensor) -> Tensor:
    """Return x / divisor, to be used where each element of the divisor divides many of x."""
    dtype = divisor.dtype
    scale = pointwise("DivisorScale", _scale, (divisor,), dtype, cost=4)
    scaled = pointwise("ScaledDivisor", _scaled, (divisor, scale), dtype)
    high = pointwise("Reciprocal", _high, (scaled,), dtype, cost=10)
    low = pointwise("ReciprocalRest", _low, (scaled, high), dtype, cost=5)
    return pointwise("Quotient", _quotient, (x, scale, high, low), x.dtype, cost=3)
