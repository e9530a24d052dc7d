"""Places in tensors that are data: read from vectors of places, checked or clamped as TensorFlow's.

Not for the ops that take them, nor for places that are known when a kernel is compiled.
"""

from __future__ import annotations

from typing import TypeAlias

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Reshape, Tensor
from composite.compiler.tvm.ir.views import Concat
from composite.compiler.tvm.lower.static import known_tensor
from composite.compiler.tvm.math.numeric import choose, convert, like
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

Place: TypeAlias = Dim | Tensor
"""An index that is known when the kernel is compiled, or a scalar that holds it."""


def places(node: OpNode, tensor: Tensor, what: str) -> list[Place]:
    """Return the elements of a vector of places, those that are known as such.

    Raises:
        NotCovered: If it is no vector of as many elements as are known now.
    """
    node.require(tensor.dtype, "int32", "int64")
    count = tensor.shape[0] if tensor.rank == 1 else None
    if not isinstance(count, int):
        raise NotCovered(f"{node.op}: a {what} of shape {tensor.shape}")
    return [_element(tensor, i) for i in range(count)]


def _element(tensor: Tensor, i: int) -> Place:
    if tensor.known is not None:
        value = tensor.known[i]
        return value if isinstance(value, dims.Poly) else int(value)
    node = tensor.node
    if isinstance(node, Reshape) and not node.operand.shape:
        return node.operand
    if isinstance(node, Concat):
        for part in node.operands:
            size = part.shape[0]
            if not isinstance(size, int):
                break
            if i < size:
                return _element(part, i)
            i -= size
    return graph.reshape(views.sliced(tensor, [i], (1,)), ())


def wrapped(place: Tensor, size: Dim) -> Tensor:
    """Return a place, as int64, that is counted from the end where it is negative."""

    def body(_: Block, i: Expr, size: Expr) -> Expr:
        wide = convert(i, "int64")
        return choose(wide < like(0, wide), wide + size, wide)

    return pointwise("Wrapped", body, (place, known_tensor(size, "int64")), "int64")


def clamped(place: Tensor, most: Dim) -> Tensor:
    """Return the nearest place of 0 to ``most``."""
    if most == 0:
        return known_tensor(0, place.dtype)

    def body(_: Block, i: Expr, most: Expr) -> Expr:
        return choose(i < like(0, i), like(0, i), choose(i > most, most, i))

    return pointwise("Clamped", body, (place, known_tensor(most, place.dtype)), place.dtype, cost=2)


def as_tensor(place: Place, dtype: str) -> Tensor:
    """Return a place as the scalar that it is."""
    return place if isinstance(place, Tensor) else known_tensor(place, dtype)
