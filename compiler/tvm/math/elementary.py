"""Elementary functions on vectors, from arithmetic alone (``T.exp`` would call libm lane by lane).

Bounds are against float64 (float32) or long double (float64) over the whole range, infinities and
NaN included, and subnormal results; but in float32 an e^x that is subnormal may be zero, which
TensorFlow's threads make of it anyway. They hold where a product and a sum are
rounded once; elsewhere erfc may be 2 ulp further off.
tests/compiler/tvm/math/test_elementary.py measures them:

========  ===========  ===========
function  float32 ulp  float64 ulp
========  ===========  ===========
exp       1.0          1.5
expm1     2.0          2.0
log       1.0          1.5
log1p     2.0          2.0
tanh      4.5          3.5
sigmoid   2.5          2.5
erf       6.0          libm
erfc      6.0          libm
e^(-x^2)  5.5          that of exp, and of x^2
pow       1.0          libm
softplus  2.5          3.0
rsqrt     1.5          1.5
sin cos   1.5          libm
tan       3.0          libm
atan      1.5          libm
atan2     2.0          libm
========  ===========  ===========

The exponentials of softmax have |x| / 2^28 of themselves more (:func:`exp_of_difference`).
Coefficients of exp, erfc and float32's tanh come from :mod:`.fit`. The logarithm is that of Sun's
fdlibm (e_log.c) and of FreeBSD's e_logf.c; erf in float32 is the rational function of Eigen, which
TensorFlow uses; :mod:`.trigonometry` has sin, cos, tan, atan.
"""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.codegen.block import Block, const
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
)

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
    """Return the natural logarithm, within 1 ulp (1.5 in float64)."""
    y = _log_finite(block, x)
    y = choose(equal(x, like(_INF, x)), x, y)
    y = choose(equal(x, like(0.0, x)), like(-_INF, x), y)
    return block.let(choose(x >= like(0.0, x), y, like(float("nan"), x)))


@by_name
def log1p(block: Block, x: Expr) -> Expr:
    """Return log(1 + x) without cancellation, within 2 ulp."""
    one = like(1.0, x)
    u = block.let(one + x)
    # What rounding took from 1 + x, divided by u, is the derivative's share of it.
    lost = choose(x > one, one - (u - x), x - (u - one))
    y = _log_finite(block, u, block.let(lost / u))
    y = choose(equal(x, like(_INF, x)), x, y)
    y = choose(equal(x, neg(block, one)), like(-_INF, x), y)
    y = choose(absolute(block, x) < like(format_of(x).smallest, x), x, y)
    return block.let(choose(x >= neg(block, one), y, like(float("nan"), x)))


_TANH = (
    (1.000000004359303, 0.13676156926744223, 0.0038620531992385122, 2.777543874991884e-05,
     2.9543781540642164e-08, -1.0918165908933435e-11),
    (1.0, 0.4700949490070343, 0.027226978912949562, 0.00039239536272361875,
     1.264971615455579e-06),
)  # fmt: skip


def _tanh_float32(block: Block, x: Expr) -> Expr:
    """Return x P(x^2) / Q(x^2), which is more than 1 at 9.2, so that ±1 is what is left of it.

    Not nearly ±1: 1 + tanh(-inf) is 0, and GELU multiplies it with infinity.
    """
    z = clamp(block, x, -9.2, 9.2)
    s = block.let(z * z)
    y = block.let(z * horner(block, s, _TANH[0])) / horner(block, s, _TANH[1])
    return clamp(block, block.let(y), -1.0, 1.0)


@by_name
def tanh(block: Block, x: Expr) -> Expr:
    """Return the hyperbolic tangent within 4.5 ulp, in float64 as expm1(2x) / (expm1(2x) + 2)."""
    if element(x) == "float32":
        return _tanh_float32(block, x)
    t = expm1(block, clamp(block, x, -20.0, 20.0) * like(2.0, x))
    y = t / (t + like(2.0, x))
    # expm1(2x) is exact in its sign of zero, and x is its own tanh below the square root of an ulp.
    return block.let(choose(absolute(block, x) < like(1e-9, x), x, y))


@by_name
def sigmoid(block: Block, x: Expr) -> Expr:
    """Return 1 / (1 + e^-x), within 2.5 ulp also where it is tiny."""
    e = exp_of_minus_size(block, x)
    one = like(1.0, x)
    return block.let(choose(is_negative(x), e, one) / (one + e))


@by_name
def softplus(block: Block, x: Expr) -> Expr:
    """Return softplus, log(1 + e^x) = max(x, 0) + log1p(e^-|x|), within 2.5 ulp (3 in float64)."""
    zero = like(0.0, x)
    tail = log1p(block, exp_of_minus_size(block, x))
    return block.let(choose(x < zero, zero, x) + tail)


@by_name
def tanh_of_softplus(block: Block, x: Expr) -> Expr:
    """Return tanh(softplus(x)) = (n^2 + 2n) / (n^2 + 2n + 2) for n = e^x, within 3.5 ulp.

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
    """Return the error function, x P(x^2) / Q(x^2) up to 4, within 6 ulp; float64 goes to libm."""
    if element(x) == "float64":
        return lane_by_lane(block, "erf", x)
    z = clamp(block, x, -4.0, 4.0)
    s = block.let(z * z)
    # All terms of P and Q count where s is 8 to 16: term by term the error would be 7.5 ulp.
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
    """Return 1 - erf(x), also where that is tiny, within 6 ulp; float64 goes to libm.

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
    """Return e^(-x^2), in float32 as :func:`erfc` takes it, within 5.5 ulp."""
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
    """Return 1 / sqrt(x), within 1.5 ulp: two exact operations, and no approximation to refine."""
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
