"""Multiply rows that share a factor at once, where the factor is repeated for each of them.

Attention whose heads share keys and values in groups repeats these for each head. With one row a
head, as in a step of text generation, the rows of a group are those of one product: the factor is
read once, and never written again. Not for several rows a head, which would have to be moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composite.compiler.tvm.ir import graph
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Pointwise, Reshape, Tensor, Transpose
from composite.compiler.tvm.ir.walk import rebuilt
from composite.compiler.tvm.passes.rewriting import rewritten

_REPEATS = {"Tile", "BroadcastTo"}


def share_factors(function: Function) -> Function:
    """Return the function with one product of all rows for which a factor is repeated."""

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor:
        again = rebuilt(tensor, made)
        return _shared(again) or again

    return rewritten(function, rule)


def _shared(product: Tensor) -> Tensor | None:
    """Return a product without the repetition of its second factor in the last batch dimension."""
    node = product.node
    if not isinstance(node, MatMul) or product.rank < 3 or product.shape[-2] != 1:
        return None
    batch = product.rank - 3
    found = _once(node.b, batch) if node.b.rank == product.rank else None
    if found is None or node.a.shape[:-2] != node.b.shape[:-2]:
        return None
    once, times = found
    outer = once.shape[: batch + 1]
    inner = node.a.shape[-2] if node.transpose_a else node.a.shape[-1]
    rows = graph.reshape(node.a, (*outer, times, inner))
    shape = (*outer, times, product.shape[-1])
    own = Tensor(shape, product.dtype, replace(node, a=rows, b=once, transpose_a=False))
    return graph.reshape(replace(own, is_result=product.is_result), product.shape)


def _once(factor: Tensor, axis: int) -> tuple[Tensor, int] | None:
    """Return what a factor repeats along an axis, element by element, and how often."""
    node = factor.node
    if isinstance(node, Transpose):
        found = _once(node.operand, node.permutation[axis])
        return found and (graph.transpose(found[0], node.permutation), found[1])
    many = node.operand if isinstance(node, Reshape) else factor
    repetition = many.node
    if not isinstance(repetition, Pointwise) or repetition.op not in _REPEATS:
        return None
    if many.rank != factor.rank + 1:
        return None
    (source,) = repetition.operands
    times = many.shape[axis + 1]
    together = (*many.shape[:axis], many.shape[axis] * times, *many.shape[axis + 2 :])
    apart = (*many.shape[: axis + 1], 1, *many.shape[axis + 2 :])
    if not isinstance(times, int) or factor.shape != together or source.shape != apart:
        return None
    return graph.reshape(source, (*many.shape[: axis + 1], *many.shape[axis + 2 :])), times
