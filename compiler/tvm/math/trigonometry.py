"""Sine, cosine and tangent of vectors; :mod:`.math` states the bounds on their errors.

Arguments below 71476 in size are brought to at most pi/4 in three steps (Cody and Waite, Software
Manual for the Elementary Functions, 1980, chapter 8); the constants of the steps, that bound and
the polynomials are Norbert Juffa's, for fused multiply-adds. A vector with a larger argument among
its lanes goes to libm, and so does float64.
"""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.codegen.block import Block, const, dtype_of, index, lanes_of
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import (
    absolute,
    bits,
    choose,
    differ,
    element,
    equal,
    lane_by_lane,
    like,
    multiply_add,
    neg,
    with_lanes,
)

_LARGEST = 71476.0
_TWO_OVER_PI = 0.636619747
_MAGIC = 12582912.0  # adding it leaves the nearest integer in the low bits
_HALF_PI = tuple(
    float.fromhex(part) for part in ("-0x1.921fb0p+0", "-0x1.5110b4p-22", "-0x1.846988p-48")
)
_SINE = (2.86567956e-6, -1.98559923e-4, 8.33338592e-3, -1.66666672e-1)
_COSINE = (2.44677067e-5, -1.38877297e-3, 4.16666567e-2, -5.00000000e-1, 1.0)


def _reduced(block: Block, x: Expr) -> tuple[Expr, Expr]:
    """Return (q, r) with x = q pi/2 + r, |r| <= pi/4; q as an integer, right modulo 4."""
    magic = like(_MAGIC, x)
    t = block.let(multiply_add(block, x, like(_TWO_OVER_PI, x), magic))
    n = block.let(t - magic)
    r = x
    for part in _HALF_PI:
        r = multiply_add(block, n, like(part, x), r)
    return block.let(bits(t, "int32")), r


def _polynomial(block: Block, s: Expr, coefficients: tuple[float, ...]) -> Expr:
    total = like(coefficients[0], s)
    for c in coefficients[1:]:
        total = multiply_add(block, total, s, like(c, s))
    return total


def _near_zero(block: Block, r: Expr) -> tuple[Expr, Expr]:
    """Return the sine and the cosine of |r| <= pi/4."""
    s = block.let(r * r)
    sine = multiply_add(block, _polynomial(block, s, _SINE), block.let(s * r), r)
    return sine, _polynomial(block, s, _COSINE)


def _has_bit(x: Expr, bit: int) -> Expr:
    vector = with_lanes("int32", x)
    return differ(x & const(bit, vector), const(0, vector))


def _any_large(block: Block, x: Expr) -> Expr:
    size = block.let(absolute(block, x))
    if lanes_of(x) > 1:  # NaN is no maximum, and not large
        kind = f"llvm.vector.reduce.fmax.v{lanes_of(x)}f32"
        size = block.let(tirx.call_llvm_pure_intrin("float32", kind, size))
    return size > like(_LARGEST, size)


def _or_libm(block: Block, name: str, x: Expr, value: Expr) -> Expr:
    """Return the value, or libm's for all lanes if one is too large for it."""
    result = block.registers(1, str(dtype_of(x)))
    block.store(result, 0, value)
    with block.when(_any_large(block, x)):
        block.store(result, 0, lane_by_lane(block, f"{name}f", x))
    return block.let(tirx.BufferLoad(result, [index(0)]))


def sine_after(block: Block, x: Expr, turns: Expr) -> Expr:
    """Return the sine of x plus so many quarters of a turn, int32; float32, at most 71476."""
    quarter, r = _reduced(block, x)
    quarter = block.let(quarter + turns)
    sine, cosine = _near_zero(block, r)
    value = block.let(choose(_has_bit(quarter, 1), cosine, sine))
    return choose(_has_bit(quarter, 2), neg(block, value), value)


def sin(block: Block, x: Expr) -> Expr:
    """Return the sine."""
    if element(x) != "float32":
        return lane_by_lane(block, "sin", x)
    value = block.let(sine_after(block, x, const(0, with_lanes("int32", x))))
    value = choose(equal(x, like(0.0, x)), x, value)  # the sign of zero
    return _or_libm(block, "sin", x, value)


def cos(block: Block, x: Expr) -> Expr:
    """Return the cosine."""
    if element(x) != "float32":
        return lane_by_lane(block, "cos", x)
    return _or_libm(block, "cos", x, sine_after(block, x, const(1, with_lanes("int32", x))))


def tan(block: Block, x: Expr) -> Expr:
    """Return the tangent: sine over cosine, or minus the inverse in odd quarters."""
    if element(x) != "float32":
        return lane_by_lane(block, "tan", x)
    quarter, r = _reduced(block, x)
    sine, cosine = _near_zero(block, r)
    odd = _has_bit(quarter, 1)
    above = block.let(choose(odd, neg(block, cosine), sine))
    value = block.let(above / choose(odd, sine, cosine))
    value = choose(equal(x, like(0.0, x)), x, value)
    return _or_libm(block, "tan", x, value)
