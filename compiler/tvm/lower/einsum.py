"""Einsum of one or two tensors: sums, transposes, and a matrix product where labels are contracted.

Not for diagonals, which a label that one operand has twice asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.lower.contraction import factor
from composite.compiler.tvm.lower.reduction import ADD, reduce_over
from composite.compiler.tvm.lower.unary import NUMBERS
from composite.compiler.tvm.math.numeric import mul
from composite.compiler.tvm.nodes.node import OpNode


@dataclass(frozen=True)
class _Labelled:
    """A tensor with a label for each dimension; those of an ellipsis are ``"...0"``, last first."""

    tensor: Tensor
    labels: tuple[str, ...]

    def size(self, label: str) -> Dim:
        return self.tensor.shape[self.labels.index(label)]

    def ordered(self, *groups: Sequence[str]) -> Tensor:
        """Return the tensor with its dimensions in the order of some labels, which are all."""
        return graph.transpose(self.tensor, tuple(self.labels.index(i) for g in groups for i in g))

    def sizes(self, labels: Sequence[str]) -> tuple[Dim, ...]:
        return tuple(self.size(label) for label in labels)


def _lower_einsum(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    node.require(inputs[0].dtype, *NUMBERS)
    left, _, right = node.text("equation", "").replace(" ", "").partition("->")
    terms = left.split(",")
    operands = [_labelled(node, x, term) for x, term in zip(inputs, terms, strict=True)]
    extra = max(sum(map(_is_of_ellipsis, o.labels)) for o in operands)
    wanted = _spelled(node, right, extra)
    if extra and "..." not in right:
        raise NotCovered(f"Einsum: {right!r} leaves out the ellipsis of {left!r}")
    summed = [_without_sums(o, wanted, operands) for o in operands]
    result = summed[0] if len(summed) == 1 else _product(summed[0], summed[1], wanted)
    if set(result.labels) != set(wanted):
        raise NotCovered(f"Einsum: labels of {right!r} that no operand has, in {left!r}")
    if result is not operands[0]:
        result = replace(result, tensor=replace(result.tensor, is_result=True))
    return [result.ordered(wanted)]


def _spelled(node: OpNode, term: str, extra: int) -> tuple[str, ...]:
    """Return the labels of a term, ``extra`` of them for its ellipsis."""
    before, dots, after = term.partition("...")
    inner = [f"...{i}" for i in reversed(range(extra))] if dots else []
    labels = (*before, *inner, *after)
    if len(set(labels)) < len(labels):
        raise NotCovered(f"{node.op}: a label twice in {term!r}")
    return labels


def _labelled(node: OpNode, tensor: Tensor, term: str) -> _Labelled:
    labels = _spelled(node, term, tensor.rank - len(term.replace("...", "")))
    if len(labels) != tensor.rank:
        raise NotCovered(f"{node.op}: {term!r} for a tensor of rank {tensor.rank}")
    return _Labelled(tensor, labels)


def _is_of_ellipsis(label: str) -> bool:
    return label.startswith("...")


def _without_sums(
    operand: _Labelled, wanted: Sequence[str], operands: Sequence[_Labelled]
) -> _Labelled:
    """Return an operand summed up over the labels that it alone has."""
    others = {label for o in operands if o is not operand for label in o.labels}
    axes = tuple(i for i, a in enumerate(operand.labels) if a not in wanted and a not in others)
    if not axes:
        return operand
    kept = tuple(a for i, a in enumerate(operand.labels) if i not in axes)
    return _Labelled(reduce_over(ADD, operand.tensor, axes, keep=False), kept)


def _product(a: _Labelled, b: _Labelled, wanted: tuple[str, ...]) -> _Labelled:
    """Return the product of two operands that share all labels which are not wanted."""
    shared = [label for label in a.labels if label in b.labels]
    for label in shared:
        if not _is_of_ellipsis(label):
            dims.require_equal(a.size(label), b.size(label), f"Einsum: {label}")
    own = [[i for i in o.labels if i not in shared] for o in (a, b)]
    batch = [label for label in wanted if label in shared]
    inner = [label for label in shared if label not in wanted]
    rest = [label for label in wanted if label not in batch]
    if own[1] and rest and rest[0] in own[1]:  # the product of what is transposed
        a, b, own = b, a, own[::-1]
    labels = (*batch, *own[0], *own[1])
    if own[0] and own[1] and inner:
        return _Labelled(_matrices(a, b, batch, own, inner), labels)
    # Without rows or columns: what is multiplied element by element, and then summed up.
    left = graph.reshape(
        a.ordered(batch, own[0], inner),
        (*a.sizes(batch), *a.sizes(own[0]), *(1,) * len(own[1]), *a.sizes(inner)),
    )
    right = graph.reshape(
        b.ordered(batch, own[1], inner),
        (*b.sizes(batch), *(1,) * len(own[0]), *b.sizes(own[1]), *b.sizes(inner)),
    )
    product = pointwise("Mul", mul, (left, right), left.dtype)
    axes = tuple(range(len(labels), product.rank))
    return _Labelled(reduce_over(ADD, product, axes, keep=False), labels)


def _matrices(
    a: _Labelled, b: _Labelled, batch: list[str], own: list[list[str]], inner: list[str]
) -> Tensor:
    """Return the product of an operand's rows and another's columns, in their own dimensions."""
    rows, columns = a.sizes(own[0]), b.sizes(own[1])
    terms = dims.product(a.sizes(inner))
    left = graph.reshape(
        a.ordered(batch, own[0], inner), (*a.sizes(batch), dims.product(rows), terms)
    )
    right = graph.reshape(
        b.ordered(batch, inner, own[1]), (*b.sizes(batch), terms, dims.product(columns))
    )
    (left, ta), (right, tb) = factor(left, False), factor(right, False)
    outer = dims.broadcast_shapes((a.sizes(batch), b.sizes(batch)), "Einsum")
    shape = (*outer, dims.product(rows), dims.product(columns))
    product = Tensor(shape, left.dtype, MatMul(left, right, ta, tb))
    return graph.reshape(product, (*outer, *rows, *columns))


LOWERINGS = {"Einsum": _lower_einsum}
