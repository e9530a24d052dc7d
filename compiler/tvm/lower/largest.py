"""The k largest elements of each row, for a small k, and where they are."""

from __future__ import annotations

import numpy as np
from tvm import tirx

from composite.compiler.tvm.codegen.block import Block
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import views
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.lower.reduction import ANY, MAXIMUM, MINIMUM, reduce_over
from composite.compiler.tvm.lower.static import known_ints
from composite.compiler.tvm.lower.unary import FLOATS, NUMBERS
from composite.compiler.tvm.math.numeric import choose, convert, element, equal, is_nan, like
from composite.compiler.tvm.read.node import OpNode

_MOST = 8
"""Elements that are taken of a row, each in a pass over it."""


def _lower_top_k(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Take one element after the other: the largest behind the one before, the first of equal ones.

    Where a row has a NaN the kernel fails, since its place is a matter of TensorFlow's algorithm:
    the expansion then answers.
    """
    x, k = inputs
    node.require(x.dtype, *NUMBERS)
    dtype = node.dtype("index_type") if "index_type" in node.proto.attr else "int32"
    node.require(dtype, "int32", "int64")
    if not x.rank or not node.flag("sorted", default=True):
        raise NotCovered(f"{node.op}: of a scalar, or sorted=False")
    (count,) = known_ints(node, k, "k")
    if not 1 <= count <= _MOST:
        raise NotCovered(f"{node.op}: k of {count} (1 to {_MOST})")
    node.at_least(x.shape[-1], count, f"k of {count} in a row of {x.shape[-1]}")

    last = x.rank - 1
    iota = views.iota(x.shape[-1], dtype, x.rank, last)
    numbers = _all_numbers(x) if x.dtype in FLOATS else None
    values: list[Tensor] = []
    places: list[Tensor] = []
    for _ in range(count):
        before = (values[-1], places[-1]) if values else ()
        left = pointwise("Left", _left, (x, iota, *before), x.dtype, cost=4) if before else x
        value = reduce_over(MAXIMUM, left, (last,), keep=True)
        at = pointwise(node.op, _place, (x, iota, value, *before), dtype, cost=4)
        values.append(value)
        places.append(reduce_over(MINIMUM, at, (last,), keep=True))
    results = (views.concat(values, last, node.op), views.concat(places, last, node.op))
    if numbers is None:
        return list(results)
    return [pointwise(node.op, lambda _, y, _zero: y, (y, numbers), y.dtype) for y in results]


def _all_numbers(x: Tensor) -> Tensor:
    """Return 0 for each row; the kernel fails where one has a NaN."""
    nan = pointwise("IsNan", lambda _, x: convert(is_nan(x), "int32"), (x,), "int32")
    return views.checked(reduce_over(ANY, nan, (x.rank - 1,), keep=True), 1)


def _comes_behind(x: Expr, i: Expr, value: Expr, place: Expr) -> Expr:
    return tirx.Or(x < value, tirx.And(equal(x, value), i > place))


def _left(_: Block, x: Expr, i: Expr, value: Expr, place: Expr) -> Expr:
    least = MAXIMUM.identity(element(x))
    return choose(_comes_behind(x, i, value, place), x, like(least, x))


def _place(_: Block, x: Expr, i: Expr, largest: Expr, *before: Expr) -> Expr:
    found = equal(x, largest)
    if before:
        found = tirx.And(found, _comes_behind(x, i, *before))
    return choose(found, i, like(int(np.iinfo(element(i)).max), i))


LOWERINGS = {"TopKV2": _lower_top_k}
