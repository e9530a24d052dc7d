"""Have few rows multiply a factor along its memory, as dot products.

The keys of attention lie with the elements of each key next to each other. In a step of text
generation few rows multiply them, or they multiply one column, which is one row the other way
round. Not for more rows, whose tiles read a factor in any order, nor for a column without batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composite.compiler.tvm.ir import graph
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Tensor, Transpose
from composite.compiler.tvm.ir.walk import rebuilt
from composite.compiler.tvm.passes.rewriting import rewritten

_MOST_ROWS = 7


def turn_factors(function: Function) -> Function:
    """Return the function with second factors of few rows stored as ``[N, K]`` if they lie so."""

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor:
        again = rebuilt(tensor, made)
        if not isinstance(again.node, MatMul):
            return again
        row = _as_row(again, again.node)
        if row is None:
            return _turned(again)
        return graph.reshape(_turned(row), again.shape)

    return rewritten(function, rule)


def _as_row(product: Tensor, node: MatMul) -> Tensor | None:
    """Return a batch of products with one column as products with one row."""
    *batch, rows, columns = product.shape
    if not batch or columns != 1 or rows == 1 or len(set(node.zeros)) > 1:
        return None
    inner = node.b.shape[-1] if node.transpose_b else node.b.shape[-2]
    row = graph.reshape(node.b, (*node.b.shape[:-2], 1, inner))
    turned = replace(node, a=row, b=node.a, transpose_a=False, transpose_b=not node.transpose_a)
    return replace(product, shape=(*batch, 1, rows), node=turned)


def _turned(product: Tensor) -> Tensor:
    """Return a product of few rows with its second factor as it lies in memory."""
    node, rows = product.node, product.shape[-2]
    if not isinstance(node, MatMul) or node.transpose_b or not isinstance(node.b.node, Transpose):
        return product
    permutation = node.b.node.permutation
    if not isinstance(rows, int) or rows > _MOST_ROWS or permutation[-2] != len(permutation) - 1:
        return product
    order = (*permutation[:-2], permutation[-1], permutation[-2])
    factor = graph.transpose(node.b.node.operand, order)
    return replace(product, node=replace(node, b=factor, transpose_b=True))
