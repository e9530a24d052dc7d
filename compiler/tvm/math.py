"""Elementary functions on vectors, from arithmetic alone (``T.exp`` would call libm lane by lane).

Bounds are against float64 (float32) or long double (float64) over the whole range, infinities and
NaN included, and subnormal results; but e^x below 1.7e-38 in float32 is zero (TensorFlow's threads
flush what is below 1.2e-38, the smallest normal number). tests/compiler/tvm/test_math.py measures
them:

========  ===========  ===========
function  float32 ulp  float64 ulp
========  ===========  ===========
exp       1.5          1.5
expm1     2.0          2.0
log       1.0          1.5
log1p     2.0          2.0
tanh      4.5          3.5
sigmoid   2.5          2.5
erf       5.5          libm
erfc      6.0          libm
pow       1.0          libm
softplus  2.5          3.0
rsqrt     1.5          1.5
sin cos   1.5          libm
tan       3.0          libm
========  ===========  ===========

The exponentials of softmax have |x| / 2^28 of themselves more (:func:`exp_of_difference`).
Coefficients of exp, erfc and float32's tanh come from :mod:`.fit`. The logarithm is that of Sun's
fdlibm (e_log.c) and of FreeBSD's e_logf.c; erf in float32 is the rational function of Eigen, which
TensorFlow uses; :mod:`.trigonometry` has sin, cos, tan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from .block import Block, const
from .graph import Expr
from .numeric import (
    absolute,
    bits,
    choose,
    convert,
    differ,
    element,
    equal,
    is_nan,
    lane_by_lane,
    like,
    neg,
    with_lanes,
)

_INF = float("inf")


@dataclass(frozen=True)
class _Format:
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
    "float32": _Format(
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
    "float64": _Format(
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
_INFINITE_EXPONENT = 0x4B400000 + 255
"""The bits of float32's ``magic`` without its bias, plus the exponent of infinity."""


def _format(x: Expr) -> _Format:
    return _FORMATS[element(x)]


def _horner(block: Block, x: Expr, coefficients: Sequence[float]) -> Expr:
    """Return c0 + c1 x + c2 x^2 + ..."""
    total = like(coefficients[-1], x)
    for c in reversed(coefficients[:-1]):
        total = total * x + like(c, x)
    return block.let(total)


def _even_odd(block: Block, x: Expr, square: Expr, coefficients: Sequence[float]) -> Expr:
    """Return c0 + c1 x + c2 x^2 + ... as two polynomials in x^2, which go on side by side."""
    even, odd = (_horner(block, square, coefficients[i::2]) for i in (0, 1))
    return block.let(x * odd + even)


def _is_negative(x: Expr) -> Expr:
    """Return where the sign bit is set, which a choice takes as it is, without a comparison."""
    integer = f"int{_format(x).width}"
    return bits(x, integer) < const(0, with_lanes(integer, x))


def _clamp(block: Block, x: Expr, low: float, high: float) -> Expr:
    """Return x within the bounds; NaN stays."""
    x = choose(x < like(low, x), like(low, x), x)
    return block.let(choose(x > like(high, x), like(high, x), x))


def _reduce(block: Block, x: Expr) -> tuple[Expr, Expr]:
    """Return (n, exp(r) - 1) with x = n ln(2) + r, |r| <= ln(2)/2; n is a whole float."""
    f = _format(x)
    n = block.let(block.let(x * like(_LOG2_E, x) + like(f.magic, x)) - like(f.magic, x))
    r = block.let((x - n * like(f.ln2_high, x)) - n * like(f.ln2_low, x))
    tail = _horner(block, r, f.tail)
    return n, block.let(r + r * r * tail)


def _power_of_two(block: Block, n: Expr) -> Expr:
    """Return 2^n from a whole float within the normal range.

    Adding ``magic`` leaves n + bias in the low bits: shifted up, they are the exponent.
    """
    f = _format(n)
    raw = bits(n + like(f.magic, n), f"int{f.width}")
    shift = const(f.mantissa, with_lanes(f"int{f.width}", n))
    return block.let(bits(raw << shift, f"float{f.width}"))


def _exp_float32(block: Block, x: Expr) -> Expr:
    """Return e^x as 2^(n-1) times 2 e^r: n - 1 is in the exponent's range for n from -125 to 128.

    Above, the product overflows, or the exponent's bits are those of infinity; below, those of
    zero. The upper bound is put on n's bits, which costs less than one on x: r is infinite with x
    then, and so is e^r.
    """
    f = _FORMATS["float32"]
    x = block.let(choose(x < like(-87.0, x), like(-87.0, x), x))
    magic = like(f.magic - 1, x)
    t = block.let(bits(x * like(_LOG2_E, x) + magic, "int32"))
    largest = const(_INFINITE_EXPONENT, with_lanes("int32", x))
    t = block.let(choose(t < largest, t, largest))
    n = block.let(magic - bits(t, "float32"))  # its negative: one constant less than t - magic
    r = block.let((x + n * like(f.ln2_high, x)) + n * like(f.ln2_low, x))
    tail = _horner(block, r, [2 * c for c in f.tail])
    p = block.let(like(2.0, x) + r * (like(2.0, x) + r * tail))
    return block.let(p * bits(t << const(f.mantissa, with_lanes("int32", x)), "float32"))


def _falling_exp(
    block: Block, x: Expr, ln2: Sequence[float], low: Expr | None = None
) -> tuple[Expr, Expr]:
    """Return two factors of e^(x + low), float32, of x from -88 to 0 and ``low`` up to 0.1.

    Within 1.5 ulp if the parts of ``ln2`` add up to it. There is no upper bound to put. The second
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
    p = _horner(block, x, (1.0, 1.0, *f.tail))
    shift = const(f.mantissa, with_lanes("int32", x))
    return p, block.let(bits(bits(t, "int32") << shift, "float32"))


def _rounded_ln2(block: Block) -> Sequence[float]:
    return (sum(_ROUNDED_LN2),) if block.fuses else _ROUNDED_LN2


def _at_least_zero_exponent(block: Block, x: Expr) -> Expr:
    return block.let(choose(x < like(-88.0, x), like(-88.0, x), x))


def exp_of_difference(block: Block, x: Expr) -> Expr:
    """Return e^x of differences x <= 0: in float32 within 1.5 ulp and |x| / 2^28 of itself.

    The difference was rounded by up to |x| / 2^25 already.
    """
    if element(x) != "float32":
        return exp(block, x)
    fraction, power = _falling_exp(block, _at_least_zero_exponent(block, x), _rounded_ln2(block))
    return block.let(fraction * power)


def _exp_of_minus_size(block: Block, x: Expr) -> Expr:
    """Return e^-|x|, within 1.5 ulp."""
    x = block.let(neg(block, absolute(block, x)))
    if element(x) != "float32":
        return exp(block, x)
    f = _FORMATS["float32"]
    x = _at_least_zero_exponent(block, x)
    fraction, power = _falling_exp(block, x, (f.ln2_high, f.ln2_low))
    return block.let(fraction * power)


def exp(block: Block, x: Expr) -> Expr:
    """Return e^x, within 1.5 ulp; in float64 the power is applied in halves, for subnormals."""
    if element(x) == "float32":
        return _exp_float32(block, x)
    f = _format(x)
    n, p = _reduce(block, _clamp(block, x, f.exp_low, f.exp_high))
    half = block.let(block.let(n * like(0.5, x) + like(f.magic, x)) - like(f.magic, x))
    first = _power_of_two(block, half)
    return block.let((p * first + first) * _power_of_two(block, block.let(n - half)))


def expm1(block: Block, x: Expr) -> Expr:
    """Return e^x - 1 without cancellation, within 2 ulp."""
    f = _format(x)
    clamped = _clamp(block, x, f.expm1_low, f.exp_high)
    n, p = _reduce(block, clamped)
    # 2^(n-1): with n up to 128 (1024) the power itself would overflow before the product does.
    scale = _power_of_two(block, block.let(n - like(1.0, x)))
    y = (p * scale + (scale - like(0.5, x))) * like(2.0, x)
    return block.let(choose(equal(x, like(0.0, x)), x, y))


def _log_parts(block: Block, x: Expr) -> tuple[Expr, Expr]:
    """Return (k, f) with x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for positive finite x."""
    f = _format(x)
    integer = f"int{f.width}"
    small = block.let(x < like(f.smallest, x))
    scaled = choose(small, x * like(float(1 << (f.mantissa + 2)), x), x)
    raw = block.let(bits(scaled, integer))
    vector = with_lanes(integer, x)
    one = f.bias << f.mantissa
    shifted = block.let(raw + const(one - f.sqrt_half, vector))
    exponent = (shifted >> const(f.mantissa, vector)) - const(f.bias, vector)
    mask = (1 << f.mantissa) - 1
    m = bits((shifted & const(mask, vector)) + const(f.sqrt_half, vector), element(x))
    k = convert(convert(exponent, "int32"), element(x))
    k = choose(small, k - like(float(f.mantissa + 2), x), k)
    return block.let(k), block.let(m - like(1.0, x))


def _log_finite(block: Block, x: Expr, correction: Expr | None = None) -> Expr:
    """Return log(x) + correction for positive finite x, by fdlibm's formula."""
    f = _format(x)
    k, z = _log_parts(block, x)
    s = block.let(z / (like(2.0, x) + z))
    square = block.let(s * s)
    r = block.let(square * _horner(block, square, f.log))
    half = block.let(like(0.5, x) * z * z)
    low = k * like(f.ln2_low, x)
    if correction is not None:
        low = low + correction
    return block.let(k * like(f.ln2_high, x) - ((half - (s * (half + r) + low)) - z))


def log(block: Block, x: Expr) -> Expr:
    """Return the natural logarithm, within 1 ulp (1.5 in float64)."""
    y = _log_finite(block, x)
    y = choose(equal(x, like(_INF, x)), x, y)
    y = choose(equal(x, like(0.0, x)), like(-_INF, x), y)
    return block.let(choose(x >= like(0.0, x), y, like(float("nan"), x)))


def log1p(block: Block, x: Expr) -> Expr:
    """Return log(1 + x) without cancellation, within 2 ulp."""
    one = like(1.0, x)
    u = block.let(one + x)
    # What rounding took from 1 + x, divided by u, is the derivative's share of it.
    lost = choose(x > one, one - (u - x), x - (u - one))
    y = _log_finite(block, u, block.let(lost / u))
    y = choose(equal(x, like(_INF, x)), x, y)
    y = choose(equal(x, neg(block, one)), like(-_INF, x), y)
    y = choose(absolute(block, x) < like(_format(x).smallest, x), x, y)
    return block.let(choose(x >= neg(block, one), y, like(float("nan"), x)))


_TANH = (
    (1.0000000075321538, 0.1367615780363264, 0.0038620528739969017, 2.777545206452744e-05,
     2.954355987486443e-08, -1.0916967129357236e-11),
    (1.0, 0.4700949637722184, 0.027226979656483578, 0.0003923953596269576,
     1.2649715681604413e-06),
)  # fmt: skip


def _tanh_float32(block: Block, x: Expr) -> Expr:
    """Return x P(x^2) / Q(x^2), which is more than 1 at 9.2, so that ±1 is what is left of it.

    Not nearly ±1: 1 + tanh(-inf) is 0, and GELU multiplies it with infinity.
    """
    z = _clamp(block, x, -9.2, 9.2)
    s = block.let(z * z)
    y = block.let(z * _horner(block, s, _TANH[0])) / _horner(block, s, _TANH[1])
    return _clamp(block, block.let(y), -1.0, 1.0)


def tanh(block: Block, x: Expr) -> Expr:
    """Return the hyperbolic tangent within 4.5 ulp, in float64 as expm1(2x) / (expm1(2x) + 2)."""
    if element(x) == "float32":
        return _tanh_float32(block, x)
    t = expm1(block, _clamp(block, x, -20.0, 20.0) * like(2.0, x))
    y = t / (t + like(2.0, x))
    # expm1(2x) is exact in its sign of zero, and x is its own tanh below the square root of an ulp.
    return block.let(choose(absolute(block, x) < like(1e-9, x), x, y))


def sigmoid(block: Block, x: Expr) -> Expr:
    """Return 1 / (1 + e^-x), within 2.5 ulp also where it is tiny."""
    e = _exp_of_minus_size(block, x)
    one = like(1.0, x)
    return block.let(choose(_is_negative(x), e, one) / (one + e))


def softplus(block: Block, x: Expr) -> Expr:
    """Return softplus, log(1 + e^x) = max(x, 0) + log1p(e^-|x|), within 2.5 ulp (3 in float64)."""
    zero = like(0.0, x)
    tail = log1p(block, _exp_of_minus_size(block, x))
    return block.let(choose(x < zero, zero, x) + tail)


_ERF = (
    (-1.60960333262415e-02, -2.95459980854025e-03, -7.34990630326855e-04, -5.69250639462346e-05,
     -2.10102402082508e-06, 2.77068142495902e-08, -2.72614225801306e-10),
    (-1.42647390514189e-02, -7.37332916720468e-03, -1.68282697438203e-03, -2.13374055278905e-04,
     -1.45660718464996e-05),
)  # fmt: skip


def erf(block: Block, x: Expr) -> Expr:
    """Return the error function, x P(x^2) / Q(x^2) up to 4; float64 goes to libm."""
    if element(x) == "float64":
        return lane_by_lane(block, "erf", x)
    z = _clamp(block, x, -4.0, 4.0)
    s = block.let(z * z)
    ratio = block.let(_horner(block, s, _ERF[0]) / _horner(block, s, _ERF[1]))
    return _clamp(block, block.let(z * ratio), -1.0, 1.0)


_ERFC = (
    (1.0000000052085356, 1.235490186930572, 0.7284455059734721, 0.227681276528379,
     0.032463551444927456),
    (1.0, 2.3638698839719035, 2.395778407608119, 1.3194657601297295, 0.4035811617660218,
     0.057539495199104444),
)  # fmt: skip
_ERFC_ZERO = 9.38
"""From here on the power of two in e^(-x^2) is zero, and erfc less than 1.7e-38 / 2."""


def erfc(block: Block, x: Expr) -> Expr:
    """Return 1 - erf(x), also where that is tiny, within 6 ulp; float64 goes to libm.

    P(|x|) / Q(|x|) e^(-x^2), where P and Q make up for what :func:`_falling_exp` is off. x^2 is
    taken in two parts, of which the first is exact, as e^(x^2) would have all of its rounding.
    """
    if element(x) == "float64":
        return lane_by_lane(block, "erfc", x)
    size = block.let(absolute(block, x))
    size = block.let(choose(size > like(_ERFC_ZERO, x), like(_ERFC_ZERO, x), size))
    vector = with_lanes("int32", x)
    high = block.let(bits(bits(size, "int32") & const(~0xFFF, vector), "float32"))
    low = block.let((high - size) * (size + high))
    square = block.let(size * size)
    over, under = (_even_odd(block, size, square, c) for c in _ERFC)
    ratio = over / under
    minus = neg(block, block.let(high * high))
    fraction, power = _falling_exp(block, minus, _rounded_ln2(block), low)
    y = block.let(fraction * block.let(ratio * power))
    return block.let(choose(_is_negative(x), like(2.0, x) - y, y))


def rsqrt(block: Block, x: Expr) -> Expr:
    """Return 1 / sqrt(x), within 1.5 ulp: two exact operations, and no approximation to refine."""
    return block.let(like(1.0, x) / tirx.sqrt(x))


def power(block: Block, x: Expr, y: Expr) -> Expr:
    """Return x^y with C's special cases; float32 through float64, float64 through libm."""
    if element(x) == "float64":
        return block.let(tirx.pow(x, y))
    base, exponent = block.let(convert(x, "float64")), block.let(convert(y, "float64"))
    one = like(1.0, base)
    size = block.let(absolute(block, base))
    result = exp(block, block.let(exponent * log(block, size)))
    result = choose(equal(size, one), one, result)  # 1^inf and (-1)^inf are 1
    whole = block.let(equal(tirx.nearbyint(exponent), exponent))
    half = block.let(exponent * like(0.5, base))
    odd = block.let(tirx.And(whole, differ(tirx.nearbyint(half), half)))
    # The sign is that of the base, minus zero included, for an odd exponent.
    raw = bits(base, "int64")
    below = block.let(raw < const(0, with_lanes("int64", base)))
    result = block.let(result)
    result = choose(tirx.And(below, odd), neg(block, result), result)
    nan = like(float("nan"), base)
    result = choose(tirx.And(base < like(0.0, base), tirx.Not(whole)), nan, result)
    minus_infinity = equal(base, like(-_INF, base))
    result = choose(
        tirx.And(minus_infinity, tirx.Not(whole)),
        choose(exponent > like(0.0, base), like(_INF, base), like(0.0, base)),
        result,
    )
    result = choose(tirx.Or(is_nan(base), is_nan(exponent)), nan, result)
    result = choose(tirx.Or(equal(exponent, like(0.0, base)), equal(base, one)), one, result)
    return block.let(convert(result, "float32"))
