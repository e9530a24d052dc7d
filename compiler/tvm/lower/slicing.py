"""Parts of a tensor: slices, splits, reversals. How large a part is must be known now.

Sizes that only the call knows may be cut where that says how large they are at least: a kernel of
``x[1:]`` covers the calls in which there is an element (:meth:`..node.OpNode.at_least`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.lower.computed_places import (
    Place,
    as_tensor,
    clamped,
    places,
    wrapped,
)
from composite.compiler.tvm.lower.static import (
    as_known,
    constant_values,
    known_dims,
    known_ints,
)
from composite.compiler.tvm.nodes.node import OpNode


def _lower_slice(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor = as_known(inputs[0])
    begin = places(node, inputs[1], "begin")
    size = list(known_dims(node, inputs[2], "size"))
    if len(begin) != tensor.rank or len(size) != tensor.rank:
        raise NotCovered(f"Slice: {len(begin)} begins, {len(size)} sizes of rank {tensor.rank}")
    starts: dict[int, Tensor] = {}
    for i, (first, whole) in enumerate(zip(begin, tensor.shape, strict=True)):
        if isinstance(first, Tensor):
            if size[i] == -1:
                raise NotCovered("Slice: a size that depends on a begin computed at run time")
            _size_within(node, size[i], whole)
            starts[i] = views.checked(first, whole - size[i] + 1)
            continue
        if size[i] == -1:
            size[i] = whole - first
        for amount in (first, size[i], whole - first - size[i]):
            node.at_least(amount, 0, f"size {whole} from {first} on")
    known = [0 if isinstance(first, Tensor) else first for first in begin]
    return [_part(tensor, known, starts, tuple(size))]


def _lower_dynamic_slice(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower XlaDynamicSlice, which moves a part that would begin or end outside to the edge."""
    tensor = inputs[0]
    begin = places(node, inputs[1], "start")
    size = known_dims(node, inputs[2], "size")
    if len(begin) != tensor.rank or len(size) != tensor.rank:
        raise NotCovered(f"{node.op}: {len(begin)} starts, {len(size)} sizes of {tensor.rank}")
    for part, whole in zip(size, tensor.shape, strict=True):
        _size_within(node, part, whole)
    starts = {
        i: clamped(as_tensor(first, inputs[1].dtype), whole - part)
        for i, (first, part, whole) in enumerate(zip(begin, size, tensor.shape, strict=True))
        if part != whole
    }
    return [views.sliced_at(tensor, starts, size)]


def _size_within(node: OpNode, size: Dim, whole: Dim) -> None:
    for amount in (size, whole - size):
        node.at_least(amount, 0, f"a part of {size} of size {whole}")


def _part(
    tensor: Tensor,
    begin: Sequence[Dim],
    starts: Mapping[int, Tensor],
    size: Shape,
    step: Sequence[int] | None = None,
) -> Tensor:
    """Return a part that begins at the ``starts``, in dimensions without one at ``begin``."""
    cut = tuple(tensor.shape[i] if i in starts else n for i, n in enumerate(size))
    return views.sliced_at(views.sliced(tensor, begin, cut, step), starts, size)


@dataclass
class Subscript:
    """What a subscript takes of each dimension, and the shape of what is left.

    Of dimensions in ``starts`` one element is picked, at a place that is data.
    """

    start: list[Dim] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    count: list[Dim] = field(default_factory=list)
    shape: list[Dim] = field(default_factory=list)
    starts: dict[int, Tensor] = field(default_factory=dict)

    def take(self, start: Dim, step: int, count: Dim) -> None:
        """Take elements of the next dimension, which stays."""
        self._cut(start, step, count)
        self.shape.append(count)

    def pick(self, start: Dim) -> None:
        """Take one element of the next dimension, which vanishes."""
        self._cut(start, 1, 1)

    def pick_at(self, place: Tensor) -> None:
        """Take the element at a place that is data, in the dimension, which vanishes."""
        self.starts[len(self.start)] = place
        self.pick(0)

    def _cut(self, start: Dim, step: int, count: Dim) -> None:
        self.start.append(start)
        self.step.append(step)
        self.count.append(count)

    def of(self, tensor: Tensor) -> Tensor:
        """Return the part of the tensor."""
        part = _part(tensor, self.start, self.starts, tuple(self.count), self.step)
        return graph.reshape(part, tuple(self.shape))


def subscript(node: OpNode, shape: Shape, bounds: list[Tensor]) -> Subscript:
    """Return what the begins, ends and strides of a StridedSlice op, and its masks, say."""
    begin, end = (places(node, x, n) for x, n in zip(bounds, ("begin", "end"), strict=False))
    steps = known_ints(node, bounds[2], "strides")

    def marked(name: str) -> list[bool]:
        mask = node.number(f"{name}_mask", 0)
        return [bool(mask >> i & 1) for i in range(len(steps))]

    dots, fresh = marked("ellipsis"), marked("new_axis")
    free = [marked("begin"), marked("end")]
    used = sum(not a and not b for a, b in zip(dots, fresh, strict=True))
    if sum(dots) > 1 or used > len(shape):
        raise NotCovered(f"{node.op}: {used} indices, {sum(dots)} ellipses for rank {len(shape)}")
    result = Subscript()
    for i, step in enumerate(steps):
        done = len(result.start)
        if dots[i]:
            for dim in shape[done : done + len(shape) - used]:
                result.take(0, 1, dim)
        elif fresh[i]:
            result.shape.append(1)
        elif marked("shrink_axis")[i]:
            index = begin[i]
            if isinstance(index, Tensor):
                result.pick_at(views.checked(wrapped(index, shape[done]), shape[done]))
            else:
                result.pick(_place(node, index, shape[done]))
        else:
            first = None if free[0][i] else _known(node, begin[i], "begin")
            last = None if free[1][i] else _known(node, end[i], "end")
            result.take(*_range(node, shape[done], first, last, step))
    for dim in shape[len(result.start) :]:
        result.take(0, 1, dim)
    return result


def _known(node: OpNode, place: Place, what: str) -> Dim:
    if isinstance(place, Tensor):
        raise NotCovered(f"{node.op}: its {what} is computed at run time")
    return place


def _place(node: OpNode, i: Dim, dim: Dim) -> Dim:
    """Return an index, counted from the end if it is negative; it must be within."""
    place = dim + i if isinstance(i, int) and i < 0 else i
    node.within(place, dim, f"size {dim} at {i}")
    return place


def _range(
    node: OpNode, dim: Dim, first: Dim | None, last: Dim | None, step: int
) -> tuple[Dim, int, Dim]:
    """Return start, step and count of a slice of a dimension, clamped as Python's are."""
    if step == 0:
        raise NotCovered(f"{node.op}: a stride of 0")
    lowest = 0 if step > 0 else -1
    highest = dim + lowest
    ends: tuple[Dim, Dim] = (lowest, highest) if step > 0 else (highest, lowest)
    start = ends[0] if first is None else _clamped(node, first, dim, lowest)
    stop = ends[1] if last is None else _clamped(node, last, dim, lowest)
    span = stop - start if step > 0 else start - stop
    if isinstance(span, int):
        span = max(span, 0)
    else:
        node.at_least(span, 0, f"size {dim} from {first} to {last}")
    return start, step, dims.floordiv(span + (abs(step) - 1), abs(step))


def _clamped(node: OpNode, i: Dim, dim: Dim, lowest: int) -> Dim:
    place = dim + i if isinstance(i, int) and i < 0 else i
    if isinstance(place, int) and isinstance(dim, int):
        return min(max(place, lowest), dim + lowest)
    node.at_least(place - lowest, 0, f"size {dim} from or to {i}")
    node.at_least(dim + lowest - place, 0, f"size {dim} from or to {i}")
    return place


def _lower_strided_slice(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor = as_known(inputs[0])
    return [subscript(node, tensor.shape, inputs[1:]).of(tensor)]


def _lower_reverse(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower Reverse (a bool for each dimension) and ReverseV2 (the axes)."""
    tensor = as_known(inputs[0])
    if node.op == "Reverse":
        flags = constant_values(node, inputs[1], "dims")
        axes = {i for i, flag in enumerate(flags) if flag}
    else:
        axes = {axis_of(node, a, tensor.rank) for a in known_ints(node, inputs[1], "axis")}
    ends = [d - 1 if i in axes else 0 for i, d in enumerate(tensor.shape)]
    steps = [-1 if i in axes else 1 for i in range(tensor.rank)]
    return [views.sliced(tensor, ends, tensor.shape, steps)]


def _lower_roll(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower Roll: along each axis, the last elements come in front of the others."""
    tensor = as_known(inputs[0])
    shifts, axes = known_ints(node, inputs[1], "shift"), known_ints(node, inputs[2], "axis")
    if len(shifts) != len(axes):
        raise NotCovered(f"Roll: {len(shifts)} shifts of {len(axes)} axes")
    for shift, given in zip(shifts, axes, strict=True):
        axis = axis_of(node, given, tensor.rank)
        size = tensor.shape[axis]
        if isinstance(size, int):
            shift %= max(size, 1)  # noqa: PLW2901 - the same shift
        node.at_least(size, abs(shift), f"a shift of {shift} in size {size}")
        last = shift if shift >= 0 else size + shift
        parts = cut(tensor, axis, (size - last, last))
        tensor = views.concat(parts[::-1], axis, node.op)
    return [tensor]


def axis_of(node: OpNode, axis: int, rank: int) -> int:
    """Return an axis that is not negative."""
    if not -rank <= axis < rank:
        raise NotCovered(f"{node.op}: axis {axis} of a tensor of rank {rank}")
    return axis % rank


def cut(tensor: Tensor, axis: int, sizes: Sequence[Dim]) -> list[Tensor]:
    """Return the parts of those sizes along an axis."""
    parts = []
    first: Dim = 0
    for size in sizes:
        start: list[Dim] = [0] * tensor.rank
        start[axis] = first
        shape = (*tensor.shape[:axis], size, *tensor.shape[axis + 1 :])
        parts.append(views.sliced(tensor, start, shape))
        first = first + size
    return parts


def _lower_split(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor = as_known(inputs[1])
    (axis,) = known_ints(node, inputs[0], "axis")
    axis = axis_of(node, axis, tensor.rank)
    count = node.number("num_split", 1)
    size = dims.divide(tensor.shape[axis], count)
    if size is None:
        raise NotCovered(f"Split: whether {count} divides size {tensor.shape[axis]} is not known")
    return cut(tensor, axis, [size] * count)


def _lower_split_v(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor = as_known(inputs[0])
    sizes = list(known_dims(node, inputs[1], "sizes"))
    (axis,) = known_ints(node, inputs[2], "axis")
    axis = axis_of(node, axis, tensor.rank)
    whole = tensor.shape[axis]
    rest: Dim = whole
    for size in sizes:
        rest = rest - (0 if size == -1 else size)
    if sizes.count(-1) == 1:
        node.at_least(rest, 0, f"size {whole} into {sizes}")
        sizes[sizes.index(-1)] = rest
    elif rest != 0:
        raise NotCovered(f"SplitV: whether sizes {sizes} make up {whole} is not known")
    return cut(tensor, axis, sizes)


def _lower_unpack(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor = as_known(inputs[0])
    axis = axis_of(node, node.number("axis", 0), tensor.rank)
    count = node.number("num", 0)
    dims.require_equal(tensor.shape[axis], count, "Unpack")
    return [views.select(tensor, axis, i) for i in range(count)]


LOWERINGS = {
    "Slice": _lower_slice,
    "XlaDynamicSlice": _lower_dynamic_slice,
    "StridedSlice": _lower_strided_slice,
    "Roll": _lower_roll,
    "Reverse": _lower_reverse,
    "ReverseV2": _lower_reverse,
    "Split": _lower_split,
    "SplitV": _lower_split_v,
    "Unpack": _lower_unpack,
}
