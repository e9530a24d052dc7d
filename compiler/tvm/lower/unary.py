"""Element-wise functions of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from tvm import tirx

from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Body, Expr, Tensor
from composite.compiler.tvm.math import elementary as math
from composite.compiler.tvm.math import trigonometry
from composite.compiler.tvm.math.numeric import (
    absolute,
    choose,
    element,
    equal,
    like,
    mul,
    neg,
)
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

FLOATS = ("float32", "float64", "float16", "bfloat16")
NUMBERS = (*FLOATS, "int32", "int64")


def unary(
    body: Body, *, cost: int = 1, dtypes: tuple[str, ...] = FLOATS
) -> Callable[[OpNode, list[Tensor]], list[Tensor]]:
    """Return the lowering of an op that maps one tensor to one of its own dtype."""

    def lower(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
        (x,) = inputs
        node.require(x.dtype, *dtypes)
        return [pointwise(node.op, body, (x,), x.dtype, cost=cost)]

    return lower


def sign(block: Block, x: Expr) -> Expr:
    """Return -1, 0 or 1; NaN stays, and a zero of either sign gives 0, as in TF."""
    zero = like(0, x)
    neither = absolute(block, x) if element(x).startswith("float") else x
    y = choose(x < zero, like(-1, x), neither)
    return choose(x > zero, like(1, x), y)


def reciprocal(_: Block, x: Expr) -> Expr:
    """Return 1 / x."""
    return like(1.0, x) / x


def square(block: Block, x: Expr) -> Expr:
    """Return x * x; integers wrap."""
    return mul(block, x, x)


def _unless_zero(dy: Expr, product: Expr) -> Expr:
    """Return a gradient that is 0 where dy is, even where y is 0 or infinite, as in TF."""
    return choose(equal(dy, like(0.0, dy)), like(0.0, dy), product)


def _sqrt_grad(_: Block, y: Expr, dy: Expr) -> Expr:
    return _unless_zero(dy, dy * like(0.5, y) / y)


def _rsqrt_grad(_: Block, y: Expr, dy: Expr) -> Expr:
    # As TensorFlow multiplies: the cube of y is beyond the numbers of its dtype where this is not.
    return _unless_zero(dy, (dy * like(-0.5, y) * y) * (y * y))


def _reciprocal_grad(block: Block, y: Expr, dy: Expr) -> Expr:
    return _unless_zero(dy, neg(block, dy) * (y * y))


def _lower_neg(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (x,) = inputs
    (result,) = unary(neg, dtypes=NUMBERS)(node, inputs)
    return [result if x.known is None else replace(result, known=np.asarray(-1 * x.known, object))]


def gradient(body: Body, *, cost: int = 3) -> Callable[[OpNode, list[Tensor]], list[Tensor]]:
    """Return the lowering of a gradient op with two float operands of one shape."""

    def lower(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
        a, b = inputs
        node.require(a.dtype, *FLOATS)
        return [pointwise(node.op, body, (a, b), a.dtype, cost=cost)]

    return lower


def _plain(function: Callable[[Expr], Expr]) -> Body:
    """Return the body of a TVM intrinsic; integers are their own floor, ceil and round."""
    return lambda _, x: function(x) if element(x).startswith("float") else x


LOWERINGS = {
    # Of complex numbers, which no kernel takes. It is here because of what reaches it only with
    # them, a matrix product in the language's library for one.
    "Conj": unary(lambda _, x: x, dtypes=()),
    "Neg": _lower_neg,
    "Abs": unary(absolute, dtypes=NUMBERS),
    "Sign": unary(sign, cost=3, dtypes=NUMBERS),
    "Square": unary(square, dtypes=NUMBERS),
    "Sqrt": unary(_plain(tirx.sqrt), cost=6),
    "Rsqrt": unary(math.rsqrt, cost=12),
    "Reciprocal": unary(reciprocal, cost=6),
    "Inv": unary(reciprocal, cost=6),
    "Exp": unary(math.exp, cost=18),
    "Expm1": unary(math.expm1, cost=18),
    "Log": unary(math.log, cost=28),
    "Log1p": unary(math.log1p, cost=36),
    "Erf": unary(math.erf, cost=40),
    "Erfc": unary(math.erfc, cost=60),
    "Sin": unary(trigonometry.sin, cost=35),
    "Cos": unary(trigonometry.cos, cost=35),
    "Tan": unary(trigonometry.tan, cost=40),
    "Atan": unary(trigonometry.atan, cost=30),
    "Floor": unary(_plain(tirx.floor)),
    "Ceil": unary(_plain(tirx.ceil)),
    "Rint": unary(_plain(tirx.nearbyint)),
    "Round": unary(_plain(tirx.nearbyint)),
    "SqrtGrad": gradient(_sqrt_grad),
    "RsqrtGrad": gradient(_rsqrt_grad),
    "ReciprocalGrad": gradient(_reciprocal_grad),
    "InvGrad": gradient(_reciprocal_grad),
}
