"""Element-wise arithmetic of two tensors, with TF's broadcasting and integer semantics."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from tvm import tirx

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Body, Constant, Expr, Tensor
from composite.compiler.tvm.lower.integer_division import INTEGERS, integer_division
from composite.compiler.tvm.lower.unary import FLOATS, NUMBERS
from composite.compiler.tvm.math import elementary as math
from composite.compiler.tvm.math import trigonometry
from composite.compiler.tvm.math.numeric import (
    add,
    choose,
    differ,
    element,
    equal,
    lane_by_lane,
    larger,
    like,
    mul,
    smaller,
    sub,
)
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block


def _of_numbers(function: Callable[[int, int], int], what: str) -> Callable[[Any, Any], Any]:
    """Return a function of known elements that no unknown size is among."""

    def elements(a: Any, b: Any) -> int:
        if not isinstance(a, int | np.integer) or not isinstance(b, int | np.integer):
            raise NotCovered(f"{what} of an unknown size")
        return function(int(a), int(b))

    return np.frompyfunc(elements, 2, 1)


_floor = _of_numbers(operator.floordiv, "FloorDiv")


def _quotient(a: Any, b: Any) -> Any:
    """Divide two sizes of which one holds the other, or two numbers."""
    exact = dims.divide(a, b)
    return _floor(a, b) if exact is None else exact


def _larger(a: Any, b: Any) -> Any:
    found = dims.larger(a, b)
    if found is None:
        raise NotCovered("Maximum of unknown sizes")
    return found


# What is folded where both operands are known sizes, for a body's shape arithmetic.
_ON_SIZES: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "AddV2": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "FloorDiv": np.frompyfunc(_quotient, 2, 1),
    "FloorMod": _of_numbers(operator.mod, "FloorMod"),
    "Maximum": np.frompyfunc(_larger, 2, 1),
    "Minimum": _of_numbers(min, "Minimum"),
}


def _on_sizes(node: OpNode, a: Tensor, b: Tensor) -> Any:
    """Return the elements of the result if they can be told now; else None."""
    if a.known is None or b.known is None or node.op not in _ON_SIZES:
        return None
    try:
        return np.asarray(_ON_SIZES[node.op](a.known, b.known), dtype=object)
    except (NotCovered, ZeroDivisionError):
        return None  # it can be computed as data, or refused as such


def _binary(
    body: Body, *, cost: int = 1, dtypes: tuple[str, ...] = NUMBERS
) -> Callable[[OpNode, list[Tensor]], list[Tensor]]:
    def lower(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
        a, b = inputs
        node.require(a.dtype, *dtypes)
        result = pointwise(node.op, body, (a, b), a.dtype, cost=cost)
        known = _on_sizes(node, a, b)
        return [result if known is None else Tensor(result.shape, a.dtype, result.node, known)]

    return lower


_POWERS: dict[float | None, Body] = {
    1.0: lambda _, x: x,
    2.0: lambda _, x: x * x,
    3.0: lambda _, x: x * x * x,
    -1.0: lambda _, x: like(1.0, x) / x,
}
"""Exponents -> a few multiplications, within one rounding of the power of them."""


def _lower_power(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    base, exponent = inputs
    few = _POWERS.get(_only_value(exponent))
    if few is None or base.dtype not in FLOATS:
        return _binary(math.power, cost=120, dtypes=FLOATS)(node, inputs)

    def body(block: Block, x: Expr, _: Expr) -> Expr:
        return few(block, x)

    return [pointwise(node.op, body, (base, exponent), base.dtype, cost=2)]


def _only_value(tensor: Tensor) -> float | None:
    """Return the value of a constant of one element; None for all else."""
    node = tensor.node
    if not isinstance(node, Constant) or node.value.size != 1:
        return None
    return float(node.value.reshape(-1)[0])


def _divide(_: Block, a: Expr, b: Expr) -> Expr:
    return a / b


def _divide_no_nan(_: Block, a: Expr, b: Expr) -> Expr:
    return choose(equal(b, like(0.0, b)), like(0.0, a), a / b)


def _multiply_no_nan(_: Block, a: Expr, b: Expr) -> Expr:
    return choose(equal(b, like(0.0, b)), like(0.0, a), a * b)


def _lower_floor_division(node: OpNode, a: Tensor, b: Tensor) -> list[Tensor]:
    """Lower FloorDiv of floats: the floor of the quotient as TensorFlow rounds it."""
    node.require(a.dtype, *FLOATS)
    quotient = replace(pointwise("RealDiv", _divide, (a, b), a.dtype, cost=6), is_result=True)
    floor = lambda _, x: tirx.floor(x)  # noqa: E731
    return [pointwise(node.op, floor, (quotient,), a.dtype, cost=2)]


def _rest(block: Block, a: Expr, b: Expr) -> Expr:
    """Return what a division leaves whose quotient is rounded towards zero: C's fmod."""
    return lane_by_lane(block, "fmodf" if element(a) == "float32" else "fmod", a, b)


def _floor_mod(block: Block, a: Expr, b: Expr) -> Expr:
    """Return a - floor(a / b) * b exactly: C's fmod, moved to the sign of b, as TF does."""
    rest = _rest(block, a, b)
    zero = like(0.0, b)
    moves = tirx.And(differ(rest, zero), differ(rest < zero, b < zero))
    return choose(moves, rest + b, rest)


def _squared_difference(block: Block, a: Expr, b: Expr) -> Expr:
    d = block.let(sub(block, a, b))
    return mul(block, d, d)


def _clip(_: Block, x: Expr, least: Expr, most: Expr) -> Expr:
    """Return x within bounds, the lower one first if they cross; a bound of NaN is none."""
    x = choose(most < x, most, x)
    return choose(x < least, least, x)


def _lower_clip(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower ClipByValue, whose bounds are scalars or of the tensor's shape."""
    x, *bounds = inputs
    node.require(x.dtype, *NUMBERS)
    if any(b.rank and b.shape != x.shape for b in bounds):
        raise NotCovered(f"{node.op}: bounds of shapes {[b.shape for b in bounds]}")
    return [pointwise(node.op, _clip, tuple(inputs), x.dtype, cost=2)]


def _xlogy(block: Block, x: Expr, y: Expr) -> Expr:
    return choose(equal(x, like(0.0, x)), like(0.0, x), x * math.log(block, y))


def _xlog1py(block: Block, x: Expr, y: Expr) -> Expr:
    return choose(equal(x, like(0.0, x)), like(0.0, x), x * math.log1p(block, y))


def _xdivy(_: Block, x: Expr, y: Expr) -> Expr:
    return choose(equal(x, like(0.0, x)), like(0.0, x), x / y)


def plus(a: Tensor, b: Tensor) -> Tensor:
    """Return the sum of two tensors of one shape and dtype."""
    return pointwise("AddV2", add, (a, b), a.dtype)


def _lower_add_n(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Add tensors of one shape; nothing broadcasts."""
    total = inputs[0]
    for other in inputs[1:]:
        if other.shape != total.shape:
            raise NotCovered(f"{node.op}: shapes {total.shape} and {other.shape} differ")
        node.require(total.dtype, *NUMBERS)
        total = pointwise(node.op, add, (total, other), total.dtype)
    return [total]


def _lower_bias_add(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Add a vector along the last dimension, or along dimension 1 for NCHW."""
    value, bias = inputs
    node.require(value.dtype, *NUMBERS)
    if value.rank < 2 or bias.rank != 1:
        raise NotCovered(f"{node.op}: ranks {value.rank} and {bias.rank}")
    channel = 1 if node.text("data_format", "NHWC") == "NCHW" else value.rank - 1
    if value.shape[channel] != bias.shape[0]:
        raise NotCovered(f"{node.op}: {bias.shape[0]} biases for {value.shape[channel]} channels")
    shape = (bias.shape[0],) + (1,) * (value.rank - 1 - channel)
    return [pointwise(node.op, add, (value, graph.reshape(bias, shape)), value.dtype)]


def _lower_division(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower the divisions that TF has for floats and integers: FloorDiv, Div, and their rests."""
    if inputs[0].dtype in INTEGERS:
        return integer_division(node, inputs, _on_sizes(node, *inputs))
    if node.op == "FloorDiv":
        return _lower_floor_division(node, *inputs)
    if node.op == "FloorMod":
        return _binary(_floor_mod, cost=100, dtypes=FLOATS)(node, inputs)
    if node.op in ("Mod", "TruncateMod"):
        return _binary(_rest, cost=100, dtypes=FLOATS)(node, inputs)
    return _binary(_divide, cost=6, dtypes=FLOATS)(node, inputs)


def _lower_integer_division(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    node.require(inputs[0].dtype, *INTEGERS)
    return integer_division(node, inputs, None)


LOWERINGS = {
    "Add": _binary(add),
    "AddV2": _binary(add),
    "Sub": _binary(sub),
    "Mul": _binary(mul),
    "RealDiv": _binary(_divide, cost=6, dtypes=FLOATS),
    "Div": _lower_division,
    "DivNoNan": _binary(_divide_no_nan, cost=8, dtypes=FLOATS),
    "MulNoNan": _binary(_multiply_no_nan, cost=3, dtypes=FLOATS),
    "FloorDiv": _lower_division,
    "FloorMod": _lower_division,
    "Mod": _lower_division,
    "TruncateDiv": _lower_integer_division,
    "TruncateMod": _lower_division,
    "Maximum": _binary(larger, cost=2),
    "Minimum": _binary(smaller, cost=2),
    "Pow": _lower_power,
    "Atan2": _binary(trigonometry.atan2, cost=40, dtypes=FLOATS),
    "SquaredDifference": _binary(_squared_difference, cost=2),
    "Xlogy": _binary(_xlogy, cost=30, dtypes=FLOATS),
    "Xlog1py": _binary(_xlog1py, cost=38, dtypes=FLOATS),
    "Xdivy": _binary(_xdivy, cost=8, dtypes=FLOATS),
    "ClipByValue": _lower_clip,
    "AddN": _lower_add_n,
    "BiasAdd": _lower_bias_add,
    "BiasAddV1": _lower_bias_add,
}
