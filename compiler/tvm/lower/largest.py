"""The k largest elements of each row, for a small k, and where they are."""

from __future__ import annotations

import numpy as np
from tvm import tirx

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import views
from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.lower.data import converted
from composite.compiler.tvm.lower.reduction import ANY, MAXIMUM, MINIMUM, reduce_over
from composite.compiler.tvm.lower.static import known_ints
from composite.compiler.tvm.lower.unary import FLOATS, NUMBERS
from composite.compiler.tvm.math.numeric import bits, choose, convert, element, equal, is_nan, like
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

_MOST = 8
"""Elements that are taken of a row, each in a pass over it."""
_MOST_PLACES = 1 << 30
"""In a row, of which a place and a sign fit into an int32."""


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
    coded = _code_dtype(x.shape[-1], dtype)
    iota = views.iota(x.shape[-1], coded, x.rank, last)
    numbers = _all_numbers(x) if x.dtype in FLOATS else None
    values: list[Tensor] = []
    places: list[Tensor] = []
    for _ in range(count):
        before = (values[-1], places[-1]) if values else ()
        left = pointwise("Left", _left, (x, iota, *before), x.dtype, cost=4) if before else x
        value = reduce_over(MAXIMUM, left, (last,), keep=True)
        at = pointwise(node.op, _code, (x, iota, value, *before), coded, cost=6)
        code = reduce_over(MINIMUM, at, (last,), keep=True)
        place = pointwise("Place", lambda _, c: c >> like(1, c), (code,), coded)
        # Which of the zeros of both signs the largest is, its place alone tells.
        values.append(pointwise("Signed", _signed, (value, code), x.dtype, cost=3))
        places.append(place)
    found = [converted(place, coded, dtype) for place in places]
    results = (views.concat(values, last, node.op), views.concat(found, last, node.op))
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


def _code(block: Block, x: Expr, i: Expr, largest: Expr, *before: Expr) -> Expr:
    """Return twice the place of what equals the largest, plus 1 if its sign bit is set."""
    found = equal(x, largest)
    if before:
        found = tirx.And(found, _comes_behind(x, i, *before))
    code = (i << like(1, i)) | convert(_sign(block, x), element(i))
    return choose(found, code, like(int(np.iinfo(element(i)).max), i))


def _sign(block: Block, x: Expr) -> Expr:
    if not element(x).startswith("float"):
        return like(0, x)
    raw = block.let(bits(x, element(x).replace("float", "uint")))
    return raw >> like(int(element(x).removeprefix("float")) - 1, raw)


def _signed(_: Block, value: Expr, code: Expr) -> Expr:
    if not element(value).startswith("float"):
        return value
    zero = like(0.0, value)
    has_sign = equal(code & like(1, code), like(1, code))
    return choose(equal(value, zero), choose(has_sign, like(-0.0, value), zero), value)


def _code_dtype(size: Dim, dtype: str) -> str:
    """Return the dtype of codes: twice a place fits into it."""
    return dtype if isinstance(size, int) and size < _MOST_PLACES else "int64"


LOWERINGS = {"TopKV2": _lower_top_k}
