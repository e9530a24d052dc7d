"""Leave out transposes whose result is transposed back: what is between takes the other order.

A softmax along another dimension than the last one is transposed, reduced and transposed back. Its
rows would be read across memory, and its result written twice. Not for what also reads a tensor of
its own order, which would be transposed instead, unless that is small and repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composite.compiler.tvm.ir import graph
from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Constant, Pointwise, Reshape, Tensor, Transpose
from composite.compiler.tvm.ir.walk import rebuilt, topological
from composite.compiler.tvm.passes.rewriting import rewritten

_Permutation = tuple[int, ...]


def cancel_transposes(function: Function) -> Function:
    """Return the function without transposes of reductions, and of work around them, and back."""
    known: dict[_Permutation, dict[Tensor, Tensor | None]] = {}

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor:
        again = rebuilt(tensor, made)
        if not isinstance(again.node, Transpose):
            return again
        permutation = again.node.permutation
        of_order = known.setdefault(permutation, {})
        found = _transposed(again.node.operand, permutation, of_order)
        return again if found is None else found

    return rewritten(function, rule)


def _transposed(
    root: Tensor, permutation: _Permutation, known: dict[Tensor, Tensor | None]
) -> Tensor | None:
    """Return a tensor in another order, made of tensors that are transposed to theirs; or None."""

    def below(tensor: Tensor) -> tuple[Tensor, ...]:
        return () if tensor in known else _parts(tensor)

    for tensor in topological([root], below):
        if tensor not in known:
            known[tensor] = _in_order(tensor, permutation, known)
    return known[root]


def _parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return what should be in the same order as a tensor."""
    if isinstance(tensor.node, Pointwise):
        return tuple(t for t in tensor.node.operands if t.rank == tensor.rank)
    reduced = _reduced(tensor)
    return () if reduced is None else (reduced.operand,)


def _reduced(tensor: Tensor) -> Reduce | None:
    """Return the reduction that a tensor is, with dimensions of 1 for those that it is over."""
    node = tensor.node.operand.node if isinstance(tensor.node, Reshape) else None
    if not isinstance(node, Reduce) or node.operand.rank != tensor.rank:
        return None
    kept = tuple(1 if i in node.axes else d for i, d in enumerate(node.operand.shape))
    return node if tensor.shape == kept else None


def _in_order(
    tensor: Tensor, permutation: _Permutation, known: Mapping[Tensor, Tensor | None]
) -> Tensor | None:
    node = tensor.node
    if isinstance(node, Transpose):
        found = graph.transpose(tensor, permutation)
        return None if isinstance(found.node, Transpose) else found
    if isinstance(node, Constant):
        return graph.transpose(tensor, permutation)
    shape = tuple(tensor.shape[p] for p in permutation)
    if isinstance(node, Pointwise):
        operands = [_operand(t, tensor, permutation, known) for t in node.operands]
        if not _parts(tensor) or None in operands:
            return None
        made = tuple(t for t in operands if t is not None)
        numbers = tensor.known.transpose(permutation) if tensor.known is not None else None
        return replace(tensor, shape=shape, node=replace(node, operands=made), known=numbers)
    reduced = _reduced(tensor)
    source = known[reduced.operand] if reduced is not None else None
    if reduced is None or source is None:
        return None
    axes = tuple(i for i, p in enumerate(permutation) if p in reduced.axes)
    kept = tuple(d for i, d in enumerate(shape) if i not in axes)
    again = Tensor(kept, tensor.dtype, replace(reduced, operand=source, axes=axes))
    return graph.reshape(again, shape)


def _operand(
    operand: Tensor,
    reader: Tensor,
    permutation: _Permutation,
    known: Mapping[Tensor, Tensor | None],
) -> Tensor | None:
    """Return an operand for a reader in another order; what is repeated may be read in any."""
    found = known.get(operand) if operand.rank == reader.rank else None
    if found is not None or not operand.rank:
        return found or operand
    if operand.shape == reader.shape:
        return None
    padded = (1,) * (reader.rank - operand.rank) + operand.shape
    return graph.transpose(graph.reshape(operand, padded), permutation)
