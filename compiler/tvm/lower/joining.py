"""Tensors one after the other: concatenations, stacks, and pads, which are both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import graph, views
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.lists import Among
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.lower.data import filled, filled_like
from composite.compiler.tvm.lower.scattering import updated
from composite.compiler.tvm.lower.slicing import Subscript, axis_of, subscript
from composite.compiler.tvm.lower.static import (
    as_known,
    known_dims,
    known_ints,
    known_tensor,
    known_vector,
)
from composite.compiler.tvm.lower.unary import NUMBERS
from composite.compiler.tvm.math.numeric import add
from composite.compiler.tvm.nodes.node import OpNode


def _lower_concat(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower Concat (the axis comes first) and ConcatV2 (it comes last)."""
    inputs = inputs[1:] + inputs[:1] if node.op == "Concat" else inputs
    *tensors, place = inputs
    (axis,) = known_ints(node, place, "axis")
    ranks = {t.rank for t in tensors}
    if len(ranks) != 1:
        raise NotCovered(f"{node.op}: tensors of ranks {sorted(ranks)}")
    axis = axis_of(node, axis, tensors[0].rank)
    return [views.concat([as_known(t) for t in tensors], axis, node.op)]


def _lower_pack(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    rank = inputs[0].rank
    axis = axis_of(node, node.number("axis", 0), rank + 1)
    if any(t.rank != rank for t in inputs):
        raise NotCovered("Pack: tensors of several ranks")
    apart = [graph.reshape(as_known(t), (*t.shape[:axis], 1, *t.shape[axis:])) for t in inputs]
    return [views.concat(apart, axis, node.op)]


def paddings(node: OpNode, rank: int, amounts: Tensor) -> list[tuple[Dim, Dim]]:
    """Return how much is put, or cut, before and after each of so many dimensions."""
    flat = known_dims(node, amounts, "paddings")
    if len(flat) != 2 * rank:
        raise NotCovered(f"{node.op}: {len(flat)} paddings of rank {rank}")
    for amount in flat:
        node.at_least(amount, 0, f"a padding of {amount}")
    return list(zip(flat[::2], flat[1::2], strict=True))


def padded(
    tensor: Tensor, around: Sequence[tuple[Dim, Dim]], value: Tensor | None = None
) -> Tensor:
    """Return the tensor with a value (0) before and after, dimension by dimension from the last."""
    value = value or graph.constant(np.asarray(0), tensor.dtype)
    for axis, amounts in reversed(list(enumerate(around))):
        before, after = (filled_like(value, resized(tensor, axis, n)) for n in amounts)
        tensor = views.concat([before, tensor, after], axis, "Pad")
    return tensor


def resized(tensor: Tensor, axis: int, size: Dim) -> Shape:
    """Return the shape with another size along an axis."""
    return (*tensor.shape[:axis], size, *tensor.shape[axis + 1 :])


def _lower_pad(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower Pad and PadV2, which says the value."""
    tensor = as_known(inputs[0])
    return [padded(tensor, paddings(node, tensor.rank, inputs[1]), *inputs[2:])]


def _lower_mirror_pad(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower MirrorPad: reversed ends before and after; REFLECT leaves the edge itself out."""
    tensor = as_known(inputs[0])
    edge = _edge(node)
    for axis, amounts in reversed(list(enumerate(paddings(node, tensor.rank, inputs[1])))):
        whole = tensor.shape[axis]
        for amount in amounts:
            node.at_least(whole - amount, edge, f"a padding of {amount} of size {whole}")
        before, after = amounts
        tensor = views.concat(
            [
                _mirrored(tensor, axis, before + (edge - 1), before),
                tensor,
                _mirrored(tensor, axis, whole - (1 + edge), after),
            ],
            axis,
            node.op,
        )
    return [tensor]


def _edge(node: OpNode) -> int:
    """Return how many elements lie between a mirrored end and its image: the edge, or none."""
    return 1 if node.text("mode", "REFLECT") == "REFLECT" else 0


def _mirrored(tensor: Tensor, axis: int, first: Dim, count: Dim) -> Tensor:
    """Return elements of an axis from one on backwards."""
    start: list[Dim] = [0] * tensor.rank
    step = [1] * tensor.rank
    start[axis], step[axis] = first, -1
    return views.sliced(tensor, start, resized(tensor, axis, count), step)


def _lower_mirror_pad_grad(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Add the gradients of both mirrored ends to those of the elements that they mirror."""
    dy = inputs[0]
    node.require(dy.dtype, *NUMBERS)
    edge = _edge(node)
    for axis, (before, after) in enumerate(paddings(node, dy.rank, inputs[1])):
        whole = dy.shape[axis] - before - after
        node.at_least(whole - before, edge, f"a padding of {before} of size {whole}")
        node.at_least(whole - after, edge, f"a padding of {after} of size {whole}")
        start: list[Dim] = [before if i == axis else 0 for i in range(dy.rank)]
        middle = views.sliced(dy, start, resized(dy, axis, whole))
        none = [(0, 0)] * dy.rank
        around: list[tuple[Dim, Dim]] = [*none]
        around[axis] = (edge, whole - before - edge)
        head = padded(_mirrored(dy, axis, before - 1, before), around)
        around[axis] = (whole - after - edge, edge)
        last = dy.shape[axis] - 1
        tail = padded(_mirrored(dy, axis, last, after), around)
        for end in (head, tail):
            middle = pointwise(node.op, add, (middle, end), dy.dtype)
        dy = middle
    return [dy]


def _lower_strided_slice_grad(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Put the gradients of a slice at their places among zeros."""
    node.require(inputs[4].dtype)
    shape = known_dims(node, inputs[0], "shape")
    part = subscript(node, shape, inputs[1:4])
    counted = [a for a, start in enumerate(part.start) if node.is_counted(start)]
    if len(counted) == 1 and part.count[counted[0]] == 1:
        return [_one_of_each(inputs[4], shape, part, counted[0])]
    dy = graph.reshape(inputs[4], tuple(part.count))
    around: list[tuple[Dim, Dim]] = []
    for axis, (step, count) in enumerate(zip(part.step, part.count, strict=True)):
        start = part.start[axis]
        if axis in part.starts:
            around.append((0, 0))
            continue
        if step < 0:
            start = start + (count - 1) * step
            dy = _mirrored(dy, axis, count - 1, count)
        dy = spread_out(node, dy, axis, abs(step))
        around.append((start, shape[axis] - start - dy.shape[axis]))
        if dy.shape[axis] == 0:
            around[-1] = (shape[axis], 0)
    dy = padded(dy, around)
    if not part.starts:
        return [dy]
    return [updated(node, filled(0, shape, dy.dtype), dy, part.starts)]


def _one_of_each(dy: Tensor, shape: Shape, part: Subscript, axis: int) -> Tensor:
    """Return the gradient of a loop's slice: zeros, but for one place of an axis in each trip."""
    count = (*shape[:axis], 1, *shape[axis + 1 :])
    if tuple(part.count) != count or set(part.step) != {1}:
        raise NotCovered("StridedSliceGrad: a part of a slice that follows a loop's counter")
    rest = (*shape[:axis], *shape[axis + 1 :])
    return Tensor(shape, dy.dtype, Among(graph.reshape(dy, rest), axis, part.start[axis]))


def spread_out(node: OpNode, tensor: Tensor, axis: int, step: int) -> Tensor:
    """Return the tensor with ``step - 1`` zeros between the elements of an axis."""
    count = tensor.shape[axis]
    if step == 1 or count == 0:
        return tensor
    node.at_least(count, 1, f"a slice of {count}")
    apart = graph.reshape(tensor, (*tensor.shape[: axis + 1], 1, *tensor.shape[axis + 1 :]))
    around = [(0, step - 1 if i == axis + 1 else 0) for i in range(apart.rank)]
    spread = graph.reshape(padded(apart, around), resized(tensor, axis, count * step))
    return views.sliced(spread, [0] * tensor.rank, resized(tensor, axis, count * step - (step - 1)))


def _lower_concat_offset(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Return where each of some shapes starts when they lie one after the other."""
    (axis,) = known_ints(node, inputs[0], "axis")
    results = []
    start: Dim = 0
    for tensor in inputs[1:]:
        shape = known_dims(node, tensor, "shape")
        place = axis_of(node, axis, len(shape))
        known = known_vector([start if i == place else 0 for i in range(len(shape))])
        results.append(known_tensor(known, tensor.dtype))
        start = start + shape[place]
    return results


LOWERINGS = {
    "Concat": _lower_concat,
    "ConcatV2": _lower_concat,
    "Pack": _lower_pack,
    "Pad": _lower_pad,
    "PadV2": _lower_pad,
    "MirrorPad": _lower_mirror_pad,
    "MirrorPadGrad": _lower_mirror_pad_grad,
    "StridedSliceGrad": _lower_strided_slice_grad,
    "ConcatOffset": _lower_concat_offset,
}
