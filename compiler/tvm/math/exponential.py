"""e^x on vectors and scalars, and what the other functions of :mod:`.math` share with it.

The power of two nearest to e^x, times e^r for what is left; bounds are in :mod:`.math`, of which
the functions here are a part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.by_name import by_name
from composite.compiler.tvm.math.numeric import (
    absolute,
    bits,
    choose,
    element,
    like,
    neg,
    with_lanes,
)
from composite.compiler.tvm.tir.block import Block, const


@dataclass(frozen=True)
class Format:
    """What exp and log need to know of a float format."""

    width: int
    mantissa: int
    bias: int
    magic: float  # adding it leaves the nearest integer, plus the bias, in the low bits
    ln2_high: float  # so few bits that its product with an exponent is exact
    ln2_low: float
    exp_low: float  # exp is 0 below, infinite above
    exp_high: float
    expm1_low: float  # expm1 is -1 below
    tail: tuple[float, ...]  # (exp(r) - 1 - r) / r^2 on |r| <= ln(2)/2
    log: tuple[float, ...]  # fdlibm's Lg1...
    smallest: float  # the smallest normal number
    sqrt_half: int  # bits of sqrt(1/2), rounded up in the last place that log uses


_FORMATS = {
    "float32": Format(
        width=32,
        mantissa=23,
        bias=127,
        magic=12582912.0 + 127,
        ln2_high=0.693359375,
        ln2_low=-2.12194440e-4,
        exp_low=-104.0,
        exp_high=89.0,
        expm1_low=-18.0,
        tail=(
            0.4999999341226101,
            0.1666652010554623,
            0.04166839425915698,
            0.008368780622226178,
            0.0013814464752133849,
        ),
        log=(0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841),
        smallest=1.1754943508222875e-38,
        sqrt_half=0x3F3504F3,
    ),
    "float64": Format(
        width=64,
        mantissa=52,
        bias=1023,
        magic=6755399441055744.0 + 1023,
        ln2_high=6.93147180369123816490e-01,
        ln2_low=1.90821492927058770002e-10,
        exp_low=-746.0,
        exp_high=710.0,
        expm1_low=-38.0,
        tail=(
            0.5000000000000011,
            0.1666666666666641,
            0.04166666666652913,
            0.008333333333495452,
            0.0013888888943938522,
            0.00019841269505237104,
            2.4801492745867155e-05,
            2.7557586841886884e-06,
            2.76303847458657e-07,
            2.5000145041183234e-08,
        ),
        log=(
            6.666666666666735130e-01,
            3.999999999940941908e-01,
            2.857142874366239149e-01,
            2.222219843214978396e-01,
            1.818357216161805012e-01,
            1.531383769920937332e-01,
            1.479819860511658591e-01,
        ),
        smallest=2.2250738585072014e-308,
        sqrt_half=0x3FE6A09E667F3BCD,
    ),
}
_LOG2_E = 1.4426950408889634
_ROUNDED_LN2 = (0.693359375, -2.12192535400390625e-4)
"""float32's ln(2) in two parts, of which the first one's product with an exponent is exact."""
_LARGEST_EXPONENT = 0x4B400000 + 254
"""The bits of float32's ``magic`` without its bias, plus the exponent of the largest numbers."""
_EXP_TAIL = (
    0.4999999500022732,
    0.16666699992919737,
    0.04166806622028163,
    0.008326779693784387,
    0.0013838912594174605,
    0.00023250462274711098,
)
"""(exp(r) - 1 - r) / r^2 for float32 on -ln(2)/2 <= r <= ln(2)."""


def format_of(x: Expr) -> Format:
    """Return the format of an expression's elements."""
    return _FORMATS[element(x)]


def horner(block: Block, x: Expr, coefficients: Sequence[float]) -> Expr:
    """Return c0 + c1 x + c2 x^2 + ...; a last coefficient of 1 costs no product."""
    *others, last = coefficients
    total = x + like(others.pop(), x) if last == 1.0 and others else like(last, x)
    for c in reversed(others):
        total = total * x + like(c, x)
    return block.let(total)


def horner_by_parity(block: Block, x: Expr, coefficients: Sequence[float]) -> Expr:
    """Return what `horner` does, as E(x^2) + x O(x^2): half as many roundings after each other."""
    square = block.let(x * x)
    odd = horner(block, square, coefficients[1::2])
    return block.let(x * odd + horner(block, square, coefficients[::2]))


def is_negative(x: Expr) -> Expr:
    """Return where the sign bit is set, which a choice takes as it is, without a comparison."""
    integer = f"int{format_of(x).width}"
    return bits(x, integer) < const(0, with_lanes(integer, x))


def clamp(block: Block, x: Expr, low: float, high: float) -> Expr:
    """Return x within the bounds; NaN stays."""
    x = choose(x < like(low, x), like(low, x), x)
    return block.let(choose(x > like(high, x), like(high, x), x))


def _reduce(block: Block, x: Expr) -> tuple[Expr, Expr]:
    """Return (n, exp(r) - 1) with x = n ln(2) + r, |r| <= ln(2)/2; n is a whole float."""
    f = format_of(x)
    n = block.let(block.let(x * like(_LOG2_E, x) + like(f.magic, x)) - like(f.magic, x))
    r = block.let((x - n * like(f.ln2_high, x)) - n * like(f.ln2_low, x))
    tail = horner(block, r, f.tail)
    return n, block.let(r + r * r * tail)


def _power_of_two(block: Block, n: Expr) -> Expr:
    """Return 2^n from a whole float within the normal range.

    Adding ``magic`` leaves n + bias in the low bits: shifted up, they are the exponent.
    """
    f = format_of(n)
    raw = bits(n + like(f.magic, n), f"int{f.width}")
    shift = const(f.mantissa, with_lanes(f"int{f.width}", n))
    return block.let(bits(raw << shift, f"float{f.width}"))


def _exp_float32(block: Block, x: Expr) -> Expr:
    """Return e^x as 2^n e^r.

    2^n is a float for n from -126 to 127. Where x calls for n = 128, n stays 127 and r grows up to
    ln(2), for which the polynomial is fitted; beyond that the product overflows, as it must. Where
    x calls for n = -127, the exponent's bits are those of zero. The upper bound is put on n's bits,
    which costs less than one on x: r is infinite with x then, and so is e^r.
    """
    f = _FORMATS["float32"]
    x = block.let(choose(x < like(-88.0, x), like(-88.0, x), x))
    magic = like(f.magic, x)
    t = block.let(bits(x * like(_LOG2_E, x) + magic, "int32"))
    largest = const(_LARGEST_EXPONENT, with_lanes("int32", x))
    t = block.let(choose(t < largest, t, largest))
    n = block.let(magic - bits(t, "float32"))  # its negative: one constant less than t - magic
    r = block.let((x + n * like(f.ln2_high, x)) + n * like(f.ln2_low, x))
    p = horner(block, r, (1.0, 1.0, *_EXP_TAIL))
    return block.let(p * bits(t << const(f.mantissa, with_lanes("int32", x)), "float32"))


def falling_exp(
    block: Block, x: Expr, ln2: Sequence[float], low: Expr | None = None
) -> tuple[Expr, Expr]:
    """Return two factors of e^(x + low), float32, of x from -88 to 0 and ``low`` up to 0.1.

    The parts of ``ln2`` add up to it, or nearly so. There is no upper bound to put. The second
    factor is a power of two, and zero from e^-87.7 down, as the exponent is.
    """
    f = _FORMATS["float32"]
    magic = like(f.magic, x)
    t = block.let(x * like(_LOG2_E, x) + magic)
    n = block.let(magic - t)
    for part in ln2:
        x = block.let(x + n * like(part, x))
    if low is not None:
        x = block.let(x + low)
    return horner(block, x, (1.0, 1.0, *f.tail)), _power_in_low_bits(block, t)


_SIXTEENTHS = 786432.0 + 127
"""As float32's ``magic``, but that adding it leaves four bits of the fraction."""
HALF_REDUCED = 0.78125 * math.log(2) / 2
"""The largest number that :func:`half_reduced` leaves, as the first one that it does."""


def half_reduced(block: Block, x: Expr) -> tuple[Expr, Expr]:
    """Return (u, 2^n) with x = n ln(2)/2 + u, float32, of x from 0 to 40.

    n is 0 up to ``HALF_REDUCED``, and u from that less ln(2)/2 to that.
    """
    whole = const(~0xF, with_lanes("int32", x))
    t = block.let(x * like(2 * _LOG2_E, x) + like(_SIXTEENTHS + 0.1875, x))
    t = block.let(bits(block.let(bits(t, "int32") & whole), "float32"))
    n = block.let(like(_SIXTEENTHS, x) - t)
    for part in rounded_ln2(block):
        x = block.let(x + n * like(part / 2, x))
    shift = const(19, with_lanes("int32", t))
    return x, block.let(bits(bits(t, "int32") << shift, "float32"))


def _power_in_low_bits(block: Block, t: Expr) -> Expr:
    """Return 2^n from float32's ``magic`` plus n."""
    shift = const(_FORMATS["float32"].mantissa, with_lanes("int32", t))
    return block.let(bits(bits(t, "int32") << shift, "float32"))


def rounded_ln2(block: Block) -> Sequence[float]:
    """Return float32's ln(2) in as many parts as the machine needs for exact products."""
    return (sum(_ROUNDED_LN2),) if block.fuses else _ROUNDED_LN2


def _from_zero_exponent(block: Block, x: Expr) -> Expr:
    return block.let(choose(x < like(-88.0, x), like(-88.0, x), x))


@by_name
def exp_of_difference(block: Block, x: Expr) -> Expr:
    """Return e^x of differences x <= 0: in float32, what ln(2) is rounded by adds up.

    The difference was rounded by more already.
    """
    if element(x) != "float32":
        return exp(block, x)
    fraction, power = falling_exp(block, _from_zero_exponent(block, x), rounded_ln2(block))
    return block.let(fraction * power)


def exp_of_minus_size(block: Block, x: Expr) -> Expr:
    """Return e^-|x|."""
    x = block.let(neg(block, absolute(block, x)))
    if element(x) != "float32":
        return exp(block, x)
    f = _FORMATS["float32"]
    x = _from_zero_exponent(block, x)
    fraction, power = falling_exp(block, x, (f.ln2_high, f.ln2_low))
    return block.let(fraction * power)


@by_name
def exp(block: Block, x: Expr) -> Expr:
    """Return e^x; in float64 the power is applied in halves, for subnormals."""
    if element(x) == "float32":
        return _exp_float32(block, x)
    f = format_of(x)
    n, p = _reduce(block, clamp(block, x, f.exp_low, f.exp_high))
    half = block.let(block.let(n * like(0.5, x) + like(f.magic, x)) - like(f.magic, x))
    first = _power_of_two(block, half)
    return block.let((p * first + first) * _power_of_two(block, block.let(n - half)))


@by_name
def expm1(block: Block, x: Expr) -> Expr:
    """Return e^x - 1 without cancellation."""
    f = format_of(x)
    clamped = clamp(block, x, f.expm1_low, f.exp_high)
    n, p = _reduce(block, clamped)
    # 2^(n-1): with n up to 128 (1024) the power itself would overflow before the product does.
    scale = _power_of_two(block, block.let(n - like(1.0, x)))
    y = (p * scale + (scale - like(0.5, x))) * like(2.0, x)
    # Half of what is smaller is no normal number, and the sign of zero is lost.
    return block.let(choose(absolute(block, x) < like(4 * f.smallest, x), x, y))
