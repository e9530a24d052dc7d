"""Division of many values by one: its reciprocal is taken once, and no quotient is less exact.

A quotient from the reciprocal is off in the last place; what it leaves of the dividend, which a
fused multiply-add gives exactly, corrects it (Markstein, IBM J. Res. Dev. 34, 1990). The divisor is
scaled by a power of two first, so that its reciprocal is a normal number. Without fused
multiply-adds this would be wrong: ask the target.
"""

from __future__ import annotations

from .block import Block, const
from .graph import Body, Expr, Tensor, pointwise
from .numeric import bits, choose, element, is_nan, like, with_lanes

_EXPONENTS = {"float32": (23, 0xFF), "float64": (52, 0x7FF)}
OPS = ("RealDiv", "Div")


def _scale(block: Block, divisor: Expr) -> Expr:
    """Return a power of two that brings the divisor between 1/2 and 1, or as near as there is."""
    mantissa, mask = _EXPONENTS[element(divisor)]
    integer = f"int{64 if mantissa == 52 else 32}"
    vector = with_lanes(integer, divisor)
    exponent = block.let(bits(divisor, integer) & const(mask << mantissa, vector))
    least = const(1 << mantissa, vector)
    inverse = block.let(const((mask - 2) << mantissa, vector) - exponent)
    return block.let(bits(choose(inverse < least, least, inverse), element(divisor)))


def _reciprocal(block: Block, scaled: Expr) -> Expr:
    return block.let(like(1.0, scaled) / scaled)


def _quotient(block: Block, x: Expr, scale: Expr, scaled: Expr, inverse: Expr) -> Expr:
    x = block.let(x * scale)
    first = block.let(x * inverse)
    corrected = block.let(first + block.let(x - first * scaled) * inverse)
    # Infinite and zero operands leave nothing to correct.
    return choose(is_nan(corrected), first, corrected)


def divide_by_one(x: Tensor, divisor: Tensor) -> Tensor:
    """Return x / divisor, to be used where each element of the divisor divides many of x."""
    dtype = divisor.dtype
    scale = pointwise("DivisorScale", _scale, (divisor,), dtype, cost=4)
    multiply: Body = lambda _, a, b: a * b  # noqa: E731
    scaled = pointwise("ScaledDivisor", multiply, (divisor, scale), dtype)
    inverse = pointwise("Reciprocal", _reciprocal, (scaled,), dtype, cost=6)
    return pointwise("Quotient", _quotient, (x, scale, scaled, inverse), x.dtype, cost=6)
