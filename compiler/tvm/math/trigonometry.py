"""Sine, cosine, tangent and its inverse of vectors; :mod:`.accuracy` states their bounds.

Arguments below 71476 in size are brought to at most pi/4 in three steps (Cody and Waite, Software
Manual for the Elementary Functions, 1980, chapter 8); the constants of the steps, that bound and
the polynomials are Norbert Juffa's, for fused multiply-adds. A vector with a larger argument among
its lanes goes to libm, and so does float64. The polynomial of the arc tangent comes from
:mod:`.fit`.
"""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.by_name import by_name
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
    with_sign_of,
)
from composite.compiler.tvm.tir.block import Block, const, dtype_of, index, lanes_of

_LARGEST = 71476.0
_TWO_OVER_PI = 0.636619747
_MAGIC = 12582912.0  # adding it leaves the nearest integer in the low bits
_HALF_PI = tuple(
    float.fromhex(part) for part in ("-0x1.921fb0p+0", "-0x1.5110b4p-22", "-0x1.846988p-48")
)
_SINE = (2.86567956e-6, -1.98559923e-4, 8.33338592e-3, -1.66666672e-1)
_ARC_TANGENT = (
    0.002913840848165911, -0.01634251824135059, 0.04317387367182882, -0.07549287220209457,
    0.10664773050453538, -0.14210780245504348, 0.1999374397044857, -0.33333151722620497,
)  # fmt: skip
_RIGHT_ANGLE = (1.57079637, -4.37113883e-8)  # the second part is what the first lacks
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
    """Return the value, or libm's in the lanes that are too large for it."""
    result = block.registers(1, str(dtype_of(x)))
    block.store(result, 0, value)
    with block.when(_any_large(block, x)):
        is_large = absolute(block, x) > like(_LARGEST, x)
        block.store(result, 0, choose(is_large, lane_by_lane(block, f"{name}f", x), value))
    return block.let(tirx.BufferLoad(result, [index(0)]))


@by_name
def sine_after(block: Block, x: Expr, turns: Expr) -> Expr:
    """Return the sine of x plus so many quarters of a turn, int32; float32, at most 71476."""
    quarter, r = _reduced(block, x)
    quarter = block.let(quarter + turns)
    sine, cosine = _near_zero(block, r)
    value = block.let(choose(_has_bit(quarter, 1), cosine, sine))
    return choose(_has_bit(quarter, 2), neg(block, value), value)


@by_name
def sin(block: Block, x: Expr) -> Expr:
    """Return the sine."""
    if element(x) != "float32":
        return lane_by_lane(block, "sin", x)
    value = block.let(sine_after(block, x, const(0, with_lanes("int32", x))))
    value = choose(equal(x, like(0.0, x)), x, value)  # the sign of zero
    return _or_libm(block, "sin", x, value)


@by_name
def cos(block: Block, x: Expr) -> Expr:
    """Return the cosine."""
    if element(x) != "float32":
        return lane_by_lane(block, "cos", x)
    return _or_libm(block, "cos", x, sine_after(block, x, const(1, with_lanes("int32", x))))


@by_name
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


def _up_to_half(block: Block, ratio: Expr) -> Expr:
    """Return the arc tangent of 0 <= ratio <= 1."""
    s = block.let(ratio * ratio)
    tail = _polynomial(block, s, _ARC_TANGENT)
    return block.let(multiply_add(block, block.let(ratio * s), tail, ratio))


def _from(block: Block, angle: Expr, right_angles: int) -> Expr:
    """Return so many right angles without this one."""
    first, second = (like(right_angles * part, angle) for part in _RIGHT_ANGLE)
    return block.let((first - angle) + second)


@by_name
def atan(block: Block, x: Expr) -> Expr:
    """Return the arc tangent."""
    if element(x) != "float32":
        return lane_by_lane(block, "atan", x)
    size = block.let(absolute(block, x))
    steep = block.let(size > like(1.0, x))
    angle = _up_to_half(block, block.let(choose(steep, like(1.0, x) / size, size)))
    return with_sign_of(block, x, choose(steep, _from(block, angle, 1), angle))


@by_name
def atan2(block: Block, y: Expr, x: Expr) -> Expr:
    """Return the angle of the point (x, y), in the half turn of the sign of y."""
    if element(x) != "float32":
        return lane_by_lane(block, "atan2", y, x)
    across, up = block.let(absolute(block, x)), block.let(absolute(block, y))
    steep = block.let(up > across)
    most, least = choose(steep, up, across), block.let(choose(steep, across, up))
    ratio = block.let(choose(equal(least, most), like(1.0, x), least / most))  # infinities
    ratio = block.let(choose(equal(most, like(0.0, x)), least, ratio))
    angle = _up_to_half(block, ratio)
    angle = block.let(choose(steep, _from(block, angle, 1), angle))
    behind = bits(x, "int32") < const(0, with_lanes("int32", x))
    angle = block.let(choose(behind, _from(block, angle, 2), angle))
    return with_sign_of(block, y, angle)
