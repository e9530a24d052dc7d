"""The elementary functions of kernels that are tested, and what they ought to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.math import division, elementary, exponential, trigonometry

INF = float("inf")
PI = 3.141592502593994  # of float32, and below pi
HALF_PI = PI / 2

Exact = Callable[..., Any]


@dataclass(frozen=True)
class Function:
    """A function of numbers.

    Attributes:
        body: What a kernel has of it: of a block and expressions, or of tensors.
        op: What it is in TensorFlow; None if that has no such function.
        exact: The function by a library of many digits: gmpy2 (MPFR) or mpmath, the first argument.
        low: The least result.
        high: The largest result.
        pieces: Where it rises (1) or falls (-1): from, to, which.
        domain: The least and largest input.
        arity: Of how many numbers it is.
        fused: Whether kernels have it only where a product and a sum are rounded once.
    """

    body: Callable[..., Any]
    op: Callable[[Any], Any] | None
    exact: Exact
    low: float = -INF
    high: float = INF
    pieces: tuple[tuple[float, float, int], ...] = ((-INF, INF, 1),)
    domain: tuple[float, float] = (-INF, INF)
    arity: int = 1
    fused: bool = False

    @property
    def name(self) -> str:
        """The name, in :mod:`composite.compiler.tvm.math.accuracy` too."""
        return self.body.__name__

    def tensor(self, *operands: Tensor) -> Tensor:
        """Return the tensor that a kernel computes."""
        if self.body is division.divide_by_one:
            return division.divide_by_one(*operands)
        return pointwise("Applied", self.body, operands, operands[0].dtype, cost=20)


def _softplus(m: Any, x: Any) -> Any:
    return x + m.log1p(m.exp(-x)) if x > 0 else m.log1p(m.exp(x))


_PI_ABOVE = 3.1415927410125732
"""Pi, rounded to float32."""
FALLS = ((-INF, INF, -1),)
_HILL = ((-INF, 0.0, 1), (0.0, INF, -1))

FUNCTIONS = {
    one.name: one
    for one in (
        Function(exponential.exp, tf.math.exp, lambda m, x: m.exp(x), 0),
        Function(
            exponential.exp_of_difference, None, lambda m, x: m.exp(x), 0, 1, domain=(-INF, 0)
        ),
        Function(exponential.exp_of_minus_size, None, lambda m, x: m.exp(-abs(x)), 0, 1, _HILL),
        Function(
            elementary.exp_of_minus_square,
            lambda x: tf.exp(-tf.square(x)),
            lambda m, x: m.exp(-x * x),
            0,
            1,
            _HILL,
        ),
        Function(exponential.expm1, tf.math.expm1, lambda m, x: m.expm1(x), -1),
        Function(elementary.log, tf.math.log, lambda m, x: m.log(x), pieces=((0.0, INF, 1),)),
        Function(
            elementary.log1p, tf.math.log1p, lambda m, x: m.log1p(x), pieces=((-1.0, INF, 1),)
        ),
        Function(elementary.tanh, tf.math.tanh, lambda m, x: m.tanh(x), -1, 1),
        Function(elementary.sigmoid, tf.sigmoid, lambda m, x: 1 / (1 + m.exp(-x)), 0, 1),
        Function(elementary.softplus, tf.nn.softplus, _softplus, 0),
        Function(
            elementary.tanh_of_softplus,
            lambda x: tf.tanh(tf.nn.softplus(x)),
            lambda m, x: m.tanh(_softplus(m, x)),
            0,
            1,
        ),
        Function(elementary.erf, tf.math.erf, lambda m, x: m.erf(x), -1, 1),
        Function(elementary.erfc, tf.math.erfc, lambda m, x: m.erfc(x), 0, 2, FALLS),
        Function(
            elementary.rsqrt, tf.math.rsqrt, lambda m, x: 1 / m.sqrt(x), pieces=((0.0, INF, -1),)
        ),
        Function(
            trigonometry.sin, tf.math.sin, lambda m, x: m.sin(x), -1, 1, ((-HALF_PI, HALF_PI, 1),)
        ),
        Function(
            trigonometry.cos,
            tf.math.cos,
            lambda m, x: m.cos(x),
            -1,
            1,
            ((-PI, 0.0, 1), (0.0, PI, -1)),
        ),
        Function(
            trigonometry.tan, tf.math.tan, lambda m, x: m.tan(x), pieces=((-HALF_PI, HALF_PI, 1),)
        ),
        Function(
            trigonometry.atan,
            tf.math.atan,
            lambda m, x: m.atan(x),
            float(-np.float32(np.pi / 2)),
            float(np.float32(np.pi / 2)),
        ),
    )
}

PAIRS = {
    one.name: one
    for one in (
        Function(elementary.power, None, lambda _, x, y: x**y, pieces=(), arity=2),
        Function(
            trigonometry.atan2,
            None,
            lambda m, y, x: m.atan2(y, x),
            -_PI_ABOVE,
            _PI_ABOVE,
            pieces=(),
            arity=2,
        ),
        Function(
            division.divide_by_one, None, lambda _, x, y: x / y, pieces=(), arity=2, fused=True
        ),
    )
}
"""Functions of two numbers, of which samples are tested."""
