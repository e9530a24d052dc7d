"""Running sums and products along a dimension."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir.anchors import Combine, Scan
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.lower.reduction import ADD, PRODUCT
from composite.compiler.tvm.lower.slicing import axis_of
from composite.compiler.tvm.lower.static import known_ints
from composite.compiler.tvm.lower.unary import FLOATS, NUMBERS
from composite.compiler.tvm.math import elementary as math
from composite.compiler.tvm.math.numeric import (
    choose,
    equal,
    like,
)
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block


def _log_sum_exp(block: Block, a: Expr, b: Expr) -> Expr:
    """Return log(exp(a) + exp(b)); as in TF, NaN if both are infinite.

    A NaN for ``b``, which is the next element, counts as ``a`` does, the sum so far: the larger and
    the smaller of both are Eigen's, ``a`` where a comparison fails.
    """
    most = block.let(choose(a < b, b, a))
    least = choose(b < a, b, a)
    apart = choose(equal(most, like(-numbers.inf, a)), like(0.0, a), least - most)
    apart = block.let(apart)
    return most + math.log1p(block, block.let(math.exp(block, apart)))


LOG_SUM_EXP = Combine("LogSumExp", lambda _: -numbers.inf, _log_sum_exp)


def _scan(
    combine: Combine, dtypes: tuple[str, ...]
) -> Callable[[OpNode, list[Tensor]], list[Tensor]]:
    def lower(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
        tensor, axis = inputs
        node.require(tensor.dtype, *dtypes)
        (place,) = known_ints(node, axis, "axis")
        if tensor.rank == 0:
            raise NotCovered(f"{node.op}: of a scalar")
        scan = Scan(
            tensor,
            axis_of(node, place, tensor.rank),
            combine,
            node.flag("exclusive"),
            node.flag("reverse"),
        )
        return [Tensor(tensor.shape, tensor.dtype, scan)]

    return lower


LOWERINGS = {
    "Cumsum": _scan(ADD, NUMBERS),
    "Cumprod": _scan(PRODUCT, NUMBERS),
    "CumulativeLogsumexp": _scan(LOG_SUM_EXP, FLOATS),
}
