"""Round 16-bit floats to their dtype where what follows tells neighbouring numbers apart.

Within a kernel they are float32, so that rounding does not add up from op to op. A comparison, a
floor or the place of an extreme may then differ from TensorFlow's, whose ops round their results:
``x // 0.1`` by one, ``x * 0.1 == y`` altogether. So may a root or a logarithm of what cancels out:
it is a NaN where TensorFlow's operand is zero and a kernel's a little less. What such an op is
computed from is rounded after each op of the author's. That may be inside of a loop: what a trip
makes may be told apart by a later trip, behind the loop, or by another loop.

So is a sum that absorbs an operand where that shows, and a product with a constant that overflows
float16 where float32 has room (:mod:`.magnitudes`). Nothing else is.

Whether a number is finite is told apart by its own rounding alone, where float32 has the range of
the dtype and no op on the way makes infinities of small numbers. So the largest of the exponents of
a softmax or a ``reduce_logsumexp`` stays the largest of those that the kernel has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from composite.compiler import op_traits
from composite.compiler.tvm.ir.anchors import PoolGradient, Reduce
from composite.compiler.tvm.ir.dtypes import NARROW_FLOATS
from composite.compiler.tvm.ir.graph import Function, pointwise
from composite.compiler.tvm.ir.loop import Leaf, Loop, LoopResult
from composite.compiler.tvm.ir.tensor import Constant, Expr, Pointwise, Tensor
from composite.compiler.tvm.ir.walk import reachable, rebuilt, topological, unreshaped
from composite.compiler.tvm.passes.magnitudes import absorbing_sums, overflowing
from composite.compiler.tvm.passes.rewriting import in_trips, rewritten
from composite.compiler.tvm.passes.signs import never_negative

if TYPE_CHECKING:
    from composite.compiler.tvm.tir.block import Block

_ROUNDED = "Rounded"
_RANGE_TESTS = frozenset({"IsFinite", "IsInf", "IsNan"})
# fmt: off
_OF_ANY_NUMBER = frozenset({
    "Abs", "Add", "AddN", "AddV2", "Maximum", "Minimum", "Mul", "Neg", "Square",
    "SquaredDifference", "Sub",
})
# fmt: on


def round_operands(function: Function) -> Function:
    """Return the function with what discontinuous ops read rounded."""
    tensors = topological(function.outputs, _in_and_around)
    compared = [t for made in tensors for t in _compared(made)]
    loops = [t.node for t in tensors if isinstance(t.node, Loop)]
    captured = {
        leaf: t for loop in loops for leaf, t in zip(loop.leaves, loop.captured, strict=True)
    }
    compared += _may_be_negative([made for made in tensors if _ends_at_zero(made)], captured)

    sources = {leaf: (t,) for leaf, t in captured.items()} | _carried(loops)
    told_apart = set(reachable(compared, lambda t: sources.get(t) or _made_of(t)))
    read = {t for made in tensors for t in made.node.operands}  # a result alone is rounded anyway
    told_apart |= read & (absorbing_sums(tensors) | overflowing(tensors))
    rounded = {t.node.operands[0] for t in tensors if _is_rounding(t)}  # in the whole function
    wanted = {t for t in told_apart - rounded if _is_wider_than_its_dtype(t) and t not in sources}
    tested = {made for made in tensors if _is_range_test(made) and _is_of_wider(made)}
    tested = {made for made in tested if not _is_rounding(made.node.operands[0])}
    if not wanted and not tested:
        return function

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor | None:
        if tensor in tested:
            (operand,) = tensor.node.operands
            return rebuilt(tensor, {operand: _rounded(made[operand])})
        return _rounded(rebuilt(tensor, made)) if tensor in wanted else None

    return rewritten(function, in_trips(rule))


def _in_and_around(tensor: Tensor) -> Sequence[Tensor]:
    """Return what a tensor is made of, and what a loop's trips make."""
    node = tensor.node
    return (*node.operands, *node.following) if isinstance(node, Loop) else node.operands


def _carried(loops: Iterable[Loop]) -> dict[Tensor, tuple[Tensor, ...]]:
    """Map each leaf of what loops carry to what it may stand for."""
    return {
        leaf: tuple(t for t in ends if t is not None)
        for loop in loops
        for leaf, *ends in zip(loop.carried, loop.initial, loop.following, strict=True)
    }


def _made_of(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return what a tensor is made of; a result of a loop of that alone which it carries."""
    node = tensor.node
    if not isinstance(node, LoopResult):
        return _below(tensor)
    loop = node.loop.node
    assert isinstance(loop, Loop)
    start = loop.initial[node.index]
    return (loop.following[node.index], *(() if start is None else (start,)))


def _compared(tensor: Tensor) -> Sequence[Tensor]:
    """Return the operands of whose elements small differences may make large ones."""
    node = tensor.node
    if isinstance(node, PoolGradient):
        return () if node.image is None else (node.image,)
    if _is_range_test(tensor):
        below = reachable(node.operands, lambda t: _below(t) if _keeps_range(t) else ())
        return [t for made in below if not _keeps_range(made) for t in _below(made)]
    jumps = isinstance(node, Pointwise) and (node.jumps or not _is_floating(tensor))
    return node.operands if jumps else ()


def _is_range_test(tensor: Tensor) -> bool:
    """Return whether elements are told apart by whether they are infinite or NaN alone.

    A float16 overflows where float32 does not.
    """
    node = tensor.node
    is_test = isinstance(node, Pointwise) and node.op in _RANGE_TESTS
    return is_test and node.operands[0].dtype == "bfloat16"


def _keeps_range(tensor: Tensor) -> bool:
    """Return whether finite elements become infinite or NaN by their magnitude alone."""
    node = tensor.node
    if tensor.dtype != "bfloat16":
        return False
    if isinstance(node, Pointwise):
        return node.op in _OF_ANY_NUMBER or node.op == _ROUNDED
    return isinstance(node, Reduce) or node.is_strided_view or node.is_given


def _ends_at_zero(tensor: Tensor) -> bool:
    """Return whether the sign of the first operand decides whether there is a result."""
    node = tensor.node
    if not isinstance(node, Pointwise) or not op_traits.of(node.op).ends_at_zero:
        return False
    return tensor.dtype in NARROW_FLOATS and not (
        node.op == "Pow" and _is_integer(node.operands[1])
    )


def _is_integer(tensor: Tensor) -> bool:
    node = tensor.node
    return isinstance(node, Constant) and not np.any(node.value % 1)


def _may_be_negative(made: Iterable[Tensor], captured: Mapping[Tensor, Tensor]) -> list[Tensor]:
    """Return the first operands that are not proven to be zero or more."""
    firsts = [tensor.node.operands[0] for tensor in made]
    positive = never_negative(firsts, captured)
    return [tensor for tensor in firsts if tensor not in positive]


def _is_floating(tensor: Tensor) -> bool:
    return "float" in tensor.dtype


def _below(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return what a tensor is made of; a loop's trips are functions of their own."""
    return () if isinstance(tensor.node, Loop | LoopResult) else tensor.node.operands


def _is_wider_than_its_dtype(tensor: Tensor) -> bool:
    """Return whether TensorFlow has the tensor in 16 bits, but a kernel in more."""
    if tensor.dtype not in NARROW_FLOATS or _is_extreme(tensor):
        return False
    return tensor.is_result or isinstance(tensor.node, Leaf | LoopResult)


def _is_extreme(tensor: Tensor) -> bool:
    """Return whether each element is one of the operand's, which is rounded where that is."""
    node = unreshaped(tensor).node
    return isinstance(node, Reduce) and node.combine.name in ("Max", "Min")


def _is_rounding(tensor: Tensor) -> bool:
    return isinstance(tensor.node, Pointwise) and tensor.node.op == _ROUNDED


def _is_of_wider(tensor: Tensor) -> bool:
    """Return whether a tensor is made of any that a kernel has in more than its dtype."""
    return any(map(_is_wider_than_its_dtype, reachable(tensor.node.operands, _below)))


def _rounded(tensor: Tensor) -> Tensor:
    def body(block: Block, x: Expr) -> Expr:
        from composite.compiler.tvm.math.numeric import round_to

        return round_to(block, x, tensor.dtype)

    return pointwise(_ROUNDED, body, (tensor,), tensor.dtype, cost=4)
