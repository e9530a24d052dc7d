"""Elementary functions on vectors, from arithmetic alone (``T.exp`` would call libm lane by lane).

How far they are off is in :mod:`.accuracy`, for infinities, NaN and subnormal results too; but in
float32 an e^x that is subnormal may be zero, which TensorFlow's threads make of it anyway.

Coefficients of exp, erfc and float32's tanh come from :mod:`.fit`. The logarithm is that of Sun's
fdlibm (e_log.c) and of FreeBSD's e_logf.c; erf in float32 is the rational function of Eigen, which
TensorFlow uses; :mod:`.trigonometry` has sin, cos, tan, atan.
"""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.by_name import by_name
from composite.compiler.tvm.math.exponential import (
    clamp,
    exp,
    exp_of_difference,
    exp_of_minus_size,
    expm1,
    falling_exp,
    format_of,
    half_reduced,
    horner,
    horner_by_parity,
    is_negative,
    rounded_ln2,
)
from composite.compiler.tvm.math.numeric import (
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
    with_sign_of,
)
from composite.compiler.tvm.tir.block import Block, const

__all__ = [
    "erf",
    "erfc",
    "exp",
    "exp_of_difference",
    "exp_of_minus_square",
    "expm1",
    "log",
    "log1p",
    "power",
    "rsqrt",
    "sigmoid",
    "softplus",
    "tanh",
]

_INF = float("inf")


def _log_parts(block: Block, x: Expr) -> tuple[Expr, Expr]:
    """Return (k, f) with x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for positive finite x."""
    f = format_of(x)
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
    f = format_of(x)
    k, z = _log_parts(block, x)
    s = block.let(z / (like(2.0, x) + z))
    square = block.let(s * s)
    r = block.let(square * horner(block, square, f.log))
    half = block.let(like(0.5, x) * z * z)
    low = k * like(f.ln2_low, x)
    if correction is not None:
        low = low + correction
    return block.let(k * like(f.ln2_high, x) - ((half - (s * (half + r) + low)) - z))


@by_name
def log(block: Block, x: Expr) -> Expr:
    """Return the natural logarithm."""
    y = _log_finite(block, x)
    y = choose(equal(x, like(_INF, x)), x, y)
    y = choose(equal(x, like(0.0, x)), like(-_INF, x), y)
    return block.let(choose(x >= like(0.0, x), y, like(float("nan"), x)))


@by_name
def log1p(block: Block, x: Expr) -> Expr:
    """Return log(1 + x) without cancellation."""
    one = like(1.0, x)
    u = block.let(one + x)
    # What rounding took from 1 + x, divided by u, is the derivative's share of it.
    lost = choose(x > one, one - (u - x), x - (u - one))
    y = _log_finite(block, u, block.let(lost / u))
    y = choose(equal(x, like(_INF, x)), x, y)
    y = choose(equal(x, neg(block, one)), like(-_INF, x), y)
    y = choose(absolute(block, x) < like(format_of(x).smallest, x), x, y)
    return block.let(choose(x >= neg(block, one), y, like(float("nan"), x)))


_TANH_IS_ONE = 8.667
"""From here on float32's hyperbolic tangent is 1; of larger numbers the sums below are ties."""
_TANH = (-0.33333183264192934, 0.1332086583588965, -0.051002603376430866)
"""(tanh(u) - u) / u^3 as a polynomial of u^2, for |u| <= ln(2)/4."""


def _tanh_float32(block: Block, x: Expr) -> Expr:
    """Return (d - 2 + 2w) / d for d = (m + 1) + (m - 1) w, m = 2^n and w = tanh(u).

    |x| is n ln(2)/2 + u, and e^2|x| is m (1 + w) / (1 - w). What d is rounded by has a small share
    in the quotient, as d - 2 is exact. Where n is 0 it is w; at the end it is 1, exactly: GELU
    multiplies 1 + tanh(-inf) with infinity, which must be 0.
    """
    size = block.let(absolute(block, x))
    size = block.let(choose(size > like(_TANH_IS_ONE, x), like(_TANH_IS_ONE, x), size))
    u, m = half_reduced(block, size)
    s = block.let(u * u)
    w = block.let(block.let(u * s) * horner(block, s, _TANH) + u)
    one, two = like(1.0, x), like(2.0, x)
    under = block.let(block.let(m - one) * w + block.let(m + one))
    over = block.let(w * two + block.let(under - two))
    return with_sign_of(block, x, block.let(over / under))


@by_name
def tanh(block: Block, x: Expr) -> Expr:
    """Return the hyperbolic tangent, in float64 as expm1(2x) / (expm1(2x) + 2)."""
    if element(x) == "float32":
        return _tanh_float32(block, x)
    t = expm1(block, clamp(block, x, -20.0, 20.0) * like(2.0, x))
    y = t / (t + like(2.0, x))
    # expm1(2x) is exact in its sign of zero, and x is its own tanh below the square root of an ulp.
    return block.let(choose(absolute(block, x) < like(1e-9, x), x, y))


@by_name
def sigmoid(block: Block, x: Expr) -> Expr:
    """Return 1 / (1 + e^-x), also where it is tiny."""
    e = exp_of_minus_size(block, x)
    one = like(1.0, x)
    return block.let(choose(is_negative(x), e, one) / (one + e))


@by_name
def softplus(block: Block, x: Expr) -> Expr:
    """Return softplus, log(1 + e^x) = max(x, 0) + log1p(e^-|x|)."""
    zero = like(0.0, x)
    tail = log1p(block, exp_of_minus_size(block, x))
    return block.let(choose(x < zero, zero, x) + tail)


@by_name
def tanh_of_softplus(block: Block, x: Expr) -> Expr:
    """Return tanh(softplus(x)) = (n^2 + 2n) / (n^2 + 2n + 2) for n = e^x.

    Both sides are divided by n^2 where it is large.
    """
    e = exp_of_minus_size(block, x)
    one, two = like(1.0, x), like(2.0, x)
    below = is_negative(x)
    over = block.let(choose(below, e * (e + two), one + two * e))
    return block.let(over / (over + choose(below, two, two * e * e)))


_ERF = (
    (-1.60960333262415e-02, -2.95459980854025e-03, -7.34990630326855e-04, -5.69250639462346e-05,
     -2.10102402082508e-06, 2.77068142495902e-08, -2.72614225801306e-10),
    (-1.42647390514189e-02, -7.37332916720468e-03, -1.68282697438203e-03, -2.13374055278905e-04,
     -1.45660718464996e-05),
)  # fmt: skip


@by_name
def erf(block: Block, x: Expr) -> Expr:
    """Return the error function, x P(x^2) / Q(x^2) up to 4; float64 goes to libm."""
    if element(x) == "float64":
        return lane_by_lane(block, "erf", x)
    z = clamp(block, x, -4.0, 4.0)
    s = block.let(z * z)
    # All terms of P and Q count where s is 8 to 16: term by term the error would be larger.
    over, under = (horner_by_parity(block, s, c) for c in _ERF)
    ratio = block.let(over / under)
    return clamp(block, block.let(z * ratio), -1.0, 1.0)


_ERFC = (
    (17.37936791289106, 21.472035766182834, 12.659922775702233, 3.9569563688523943,
     0.5641959794287673),
    (17.37936782836914, 41.08256149291992, 41.63711166381836, 22.931480407714844,
     7.0139851570129395, 1.0),
)  # fmt: skip
_ERFC_ZERO = 9.38
"""From here on the power of two in e^(-x^2) is zero, and erfc less than 1.7e-38 / 2."""


@by_name
def erfc(block: Block, x: Expr) -> Expr:
    """Return 1 - erf(x), also where that is tiny; float64 goes to libm.

    P(|x|) / Q(|x|) e^(-x^2), where P and Q make up for the rounding of ln(2) in it.
    """
    if element(x) == "float64":
        return lane_by_lane(block, "erfc", x)
    size = _size_of_erfc(block, x)
    over, under = (horner(block, size, c) for c in _ERFC)
    y = block.let(_exp_of_minus_square(block, size) * block.let(over / under))
    return block.let(choose(is_negative(x), like(2.0, x) - y, y))


@by_name
def exp_of_minus_square(block: Block, x: Expr) -> Expr:
    """Return e^(-x^2), in float32 as :func:`erfc` takes it."""
    if element(x) == "float64":
        return exp(block, block.let(neg(block, block.let(x * x))))
    return _exp_of_minus_square(block, _size_of_erfc(block, x))


def _size_of_erfc(block: Block, x: Expr) -> Expr:
    size = block.let(absolute(block, x))
    return block.let(choose(size > like(_ERFC_ZERO, x), like(_ERFC_ZERO, x), size))


def _exp_of_minus_square(block: Block, size: Expr) -> Expr:
    """Return e^(-x^2) of a float32 up to ``_ERFC_ZERO``.

    x^2 is taken in two parts, of which the first is exact, as e^(x^2) would have all of its
    rounding.
    """
    vector = with_lanes("int32", size)
    high = block.let(bits(bits(size, "int32") & const(~0xFFF, vector), "float32"))
    low = block.let((high - size) * (size + high))
    minus = neg(block, block.let(high * high))
    fraction, power = falling_exp(block, minus, rounded_ln2(block), low)
    return block.let(fraction * power)


@by_name
def rsqrt(block: Block, x: Expr) -> Expr:
    """Return 1 / sqrt(x): two exact operations, and no approximation to refine."""
    return block.let(like(1.0, x) / tirx.sqrt(x))


@by_name
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
