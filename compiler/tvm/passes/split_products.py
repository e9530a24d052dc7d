"""Make a product that is only read in parts of its columns a product for each part.

The gates of a cell, split from one product, become products side by side, each of which is
computed together with the element-wise work on its gate. Not for products that are the same in all
trips, or of which a column is read twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from composite.compiler.tvm.ir import views
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.loop import Trip
from composite.compiler.tvm.ir.tensor import Pointwise, Tensor
from composite.compiler.tvm.ir.views import Slice
from composite.compiler.tvm.ir.walk import rewrite, topological, users


def split_products(trip: Trip) -> Trip:
    """Return the trip with columns of products as products with columns of a factor."""
    made, kinds = trip.outputs, trip.varies()
    order = topological(made)
    readers = users(order)
    split = {t for t in order if kinds[t] == "carried" and _is_cut(t, readers.get(t, []), made)}

    def rule(tensor: Tensor, instead: Mapping[Tensor, Tensor]) -> Tensor | None:
        node = tensor.node
        if not isinstance(node, Slice) or node.operand not in split:
            return None
        return _part(instead[node.operand], node, tensor.shape)

    instead = rewrite(made, rule)
    return replace(trip, outputs=tuple(instead[t] for t in made))


def _is_cut(tensor: Tensor, readers: Sequence[Tensor], made: Sequence[Tensor]) -> bool:
    """Return whether a tensor is read in parts of its columns alone, no column twice."""
    if tensor in made or not readers or not tensor.rank:
        return False
    total: Dim = 0
    for reader in readers:
        node = reader.node
        if not isinstance(node, Slice) or set(node.step) != {1}:
            return False
        if reader.shape[:-1] != tensor.shape[:-1]:
            return False
        total = total + reader.shape[-1]
    return total == tensor.shape[-1]


def _part(tensor: Tensor, cut: Slice, shape: Shape) -> Tensor | None:
    """Return columns of a tensor, cut as far below as can be; None if no product is there."""
    node = tensor.node
    if isinstance(node, MatMul):
        return _part_of_product(tensor, node, cut.start[-1], shape)
    if not isinstance(node, Pointwise):
        return None
    operands = []
    found = False
    for operand in node.operands:
        if operand.shape == tensor.shape:
            below = _part(operand, cut, shape)
            found = found or below is not None
            operands.append(below if below is not None else views.sliced(operand, cut.start, shape))
        elif not operand.rank or operand.shape[-1] == 1:
            operands.append(operand)
        elif operand.shape[-1] == tensor.shape[-1]:
            start = [0] * (operand.rank - 1) + [cut.start[-1]]
            operands.append(views.sliced(operand, start, (*operand.shape[:-1], shape[-1])))
        else:
            return None
    if not found:
        return None
    return replace(tensor, shape=shape, node=replace(node, operands=tuple(operands)), known=None)


def _part_of_product(tensor: Tensor, node: MatMul, start: Dim, shape: Shape) -> Tensor:
    b = node.b
    axis = b.rank - (2 if node.transpose_b else 1)
    begin: list[Dim] = [0] * b.rank
    begin[axis] = start
    size = (*b.shape[:axis], shape[-1], *b.shape[axis + 1 :])
    return replace(tensor, shape=shape, node=replace(node, b=views.sliced(b, begin, size)))
