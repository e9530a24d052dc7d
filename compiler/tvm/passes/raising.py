"""Move reshapes of anchors behind the element-wise work that follows them.

A convolution, or a dense layer on a tensor of higher rank, is a matrix product that is reshaped
before its bias is added. The bias is added to the matrix instead, and the sum reshaped: the planner
then puts both into one set of loops. Not for transposes, which reorder elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composite.compiler.tvm.ir import graph
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Parameter, Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.walk import rebuilt, rewrite


def raise_reshapes(function: Function) -> Function:
    """Return the function with reshapes of anchors as late as possible."""
    anchored: set[Tensor] = set()

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor:
        again = rebuilt(tensor, made)
        if isinstance(again.node, Pointwise):
            again = _raised(again, again.node, anchored)
        if _is_anchored(again, anchored):
            anchored.add(again)
        return again

    made = rewrite(function.outputs, rule)
    origins = dict(function.origins)
    for tensor, instead in made.items():
        if tensor in origins:
            origins.setdefault(instead, origins[tensor])
            below = instead.node.operand if isinstance(instead.node, Reshape) else instead
            if not isinstance(below.node, Parameter):
                origins.setdefault(below, origins[tensor])  # what was moved below is the same work
    return replace(function, outputs=tuple(made[t] for t in function.outputs), origins=origins)


def _is_anchored(tensor: Tensor, anchored: set[Tensor]) -> bool:
    """Return whether it is an anchor, or made of one element by element."""
    if tensor.node.is_anchor:
        return True
    return isinstance(tensor.node, Pointwise) and any(
        t in anchored and t.shape == tensor.shape for t in tensor.node.operands
    )


def _raised(tensor: Tensor, node: Pointwise, anchored: set[Tensor]) -> Tensor:
    """Return the element-wise result under the shape of an anchored operand, reshaped."""
    for operand in node.operands:
        if not isinstance(operand.node, Reshape) or operand.shape != tensor.shape:
            continue
        source = operand.node.operand
        if source not in anchored:
            continue
        operands = [_moved(t, tensor.shape, source.shape) for t in node.operands]
        if None in operands:
            continue
        inner = replace(node, operands=tuple(t for t in operands if t is not None))
        below = Tensor(source.shape, tensor.dtype, inner)
        anchored.add(below)
        return replace(tensor, node=Reshape(below))
    return tensor


def _moved(tensor: Tensor, outer: Shape, inner: Shape) -> Tensor | None:
    """Return an operand of a result of shape ``outer`` as one of the same under ``inner``."""
    if tensor.shape == outer:
        return graph.reshape(tensor, inner)
    own = tensor.shape
    while own and own[0] == 1:
        own = own[1:]
    same = 0
    while same < min(len(outer), len(inner)) and outer[-1 - same] == inner[-1 - same]:
        same += 1
    return graph.reshape(tensor, own) if len(own) <= same else None
