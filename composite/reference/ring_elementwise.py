"""Element-wise ops over the ring, as TensorFlow defines them for floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from composite.compiler.tvm.algebra import ring
from composite.reference import ring_words as w
from composite.reference.ring_words import Words, before, like, minus, of, quotient, width

Op = Callable[..., Any]
"""Of a node's NodeDef and its operands, words where they are floats; its result or several."""

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def _of(function: Callable[..., Any]) -> Op:
    return lambda _, *operands: function(*operands)


def _named(name: str) -> Op:
    return _of(of(name))


def _where_not(x: Words, is_zero: Words, value: Words) -> Words:
    """`value`, but 0 where `is_zero` is."""
    return np.where(is_zero == 0, like(0.0, x), value)


def _power(x: Words, y: Words) -> Words:
    made = of("power")(x, y)
    for exponent, value in ring.powers(x, lambda name, *words: of(name)(*words)).items():
        made = np.where(y == like(exponent, y), value, made)
    return made


def _sign(x: Words) -> Words:
    zero = like(0.0, x)
    y = np.where(before(x, zero), like(-1.0, x), x)
    return np.where(before(zero, x), like(1.0, x), y)


def _clip(x: Words, low: Words, high: Words) -> Words:
    x = np.where(before(high, x), high, x)
    return np.where(before(x, low), low, x)


def _bias_add(node: Any, value: Words, bias: Words) -> Words:
    first = node.attr["data_format"].s == b"NCHW"
    return value + bias.reshape((-1,) + (1,) * (value.ndim - 2 if first else 0))


def _relu6(x: Words) -> Words:
    x = np.where(_is_negative(x), like(0.0, x), x)
    return np.where(before(like(6.0, x), x), like(6.0, x), x)


def _is_positive(x: Words) -> Words:
    return before(like(0.0, x), x)


def _leaky(node: Any, x: Words) -> Words:
    return np.where(_is_positive(x), x, x * like(node.attr["alpha"].f, x))


def _leaky_grad(node: Any, dy: Words, x: Words) -> Words:
    return np.where(_is_positive(x), dy, dy * like(node.attr["alpha"].f, dy))


def _is_negative(x: Words) -> Words:
    return before(x, like(0.0, x))


def _selu(x: Words) -> Words:
    below = like(np.float32(_SELU_SCALE_ALPHA), x) * of("expm1")(x)
    return np.where(_is_negative(x), below, like(np.float32(_SELU_SCALE), x) * x)


def _selu_grad(dy: Words, y: Words) -> Words:
    below = y + like(np.float32(_SELU_SCALE_ALPHA), y)
    return dy * np.where(_is_negative(y), below, like(np.float32(_SELU_SCALE), y))


def _softsign_grad(dy: Words, x: Words) -> Words:
    size = like(1.0, x) + w.absolute(x)
    return quotient(dy, size * size)


def _one_or_zero(condition: Words, x: Words) -> Words:
    return np.where(condition, like(1.0, x), like(0.0, x))


def _relu6_grad(dy: Words, x: Words) -> Words:
    inside = _is_positive(x) & before(x, like(6.0, x))
    return dy * _one_or_zero(inside, dy)


def _floor_mod(a: Words, b: Words) -> Words:
    rest = of("fmod")(a, b)
    moves = (rest != 0) & (_is_negative(rest) != _is_negative(b))
    return np.where(moves, rest + b, rest)


def _added(*operands: Words) -> Words:
    total = operands[0]
    for operand in operands[1:]:
        total = total + operand
    return total


def _infinite(x: Words) -> Words:
    return (x == ring.least(width(x))) | (x == ring.most(width(x)))


# fmt: off
OPS: dict[str, Op] = {
    "Add": _of(np.add), "AddV2": _of(np.add), "Sub": _of(np.subtract), "Mul": _of(np.multiply),
    "RealDiv": _of(quotient), "Div": _of(quotient),
    "DivNoNan": _of(lambda a, b: _where_not(a, b, quotient(a, b))),
    "MulNoNan": _of(lambda a, b: _where_not(a, b, a * b)),
    "Xdivy": _of(lambda a, b: _where_not(a, a, quotient(a, b))),
    "Xlogy": _of(lambda a, b: _where_not(a, a, a * of("log")(b))),
    "Xlog1py": _of(lambda a, b: _where_not(a, a, a * of("log1p")(b))),
    "FloorDiv": _of(lambda a, b: of("floor")(quotient(a, b))),
    "FloorMod": _of(_floor_mod), "Mod": _named("fmod"), "TruncateMod": _named("fmod"),
    "Maximum": _of(w.larger), "Minimum": _of(w.smaller),
    "Pow": _of(_power), "Atan2": _named("atan2"),
    "SquaredDifference": _of(lambda a, b: (a - b) * (a - b)),
    "AddN": _of(_added), "BiasAdd": _bias_add, "BiasAddV1": _bias_add, "ClipByValue": _of(_clip),
    "Neg": _of(minus), "Abs": _of(w.absolute), "Sign": _of(_sign),
    "Square": _of(lambda x: x * x), "OnesLike": _of(lambda x: np.full_like(x, like(1.0, x))),
    "Reciprocal": _named("inverse"), "Inv": _named("inverse"),
    "Floor": _named("floor"), "Ceil": _named("ceil"),
    "Rint": _named("nearbyint"), "Round": _named("nearbyint"),
    **{op: _named(op.lower()) for op in (
        "Sqrt", "Rsqrt", "Exp", "Expm1", "Log", "Log1p", "Erf", "Erfc", "Sin", "Cos", "Tan",
        "Atan", "Sigmoid", "Tanh", "Softplus",
    )},
    "SqrtGrad": _of(lambda y, dy: _where_not(dy, dy, quotient(dy * like(0.5, y), y))),
    "RsqrtGrad": _of(lambda y, dy: (dy * like(-0.5, y) * y) * (y * y)),
    "ReciprocalGrad": _of(lambda y, dy: minus(dy) * (y * y)),
    "InvGrad": _of(lambda y, dy: minus(dy) * (y * y)),
    "Relu": _of(lambda x: np.where(_is_negative(x), like(0.0, x), x)), "Relu6": _of(_relu6),
    "LeakyRelu": _leaky, "LeakyReluGrad": _leaky_grad,
    "Elu": _of(lambda x: np.where(_is_negative(x), of("expm1")(x), x)), "Selu": _of(_selu),
    "Softsign": _of(lambda x: quotient(x, w.absolute(x) + like(1.0, x))),
    "ReluGrad": _of(lambda dy, x: dy * _one_or_zero(_is_positive(x), dy)),
    "Relu6Grad": _of(_relu6_grad),
    "EluGrad": _of(lambda dy, y: np.where(_is_negative(y), (y + like(1.0, y)) * dy, dy)),
    "SeluGrad": _of(_selu_grad),
    "SoftplusGrad": _of(lambda dy, x: quotient(dy, of("exp")(minus(x)) + like(1.0, x))),
    "SoftsignGrad": _of(_softsign_grad),
    "TanhGrad": _of(lambda y, dy: dy * (like(1.0, y) - y * y)),
    "SigmoidGrad": _of(lambda y, dy: dy * y * (like(1.0, y) - y)),
    "Equal": _of(np.equal), "NotEqual": _of(np.not_equal),
    "Less": _of(before), "Greater": _of(lambda a, b: before(b, a)),
    "LessEqual": _of(lambda a, b: ~before(b, a)), "GreaterEqual": _of(lambda a, b: ~before(a, b)),
    "IsNan": _of(lambda x: np.zeros(x.shape, bool)), "IsInf": _of(_infinite),
    "IsFinite": _of(lambda x: ~_infinite(x)),
}
# fmt: on
