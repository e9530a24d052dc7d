"""What ops compute, in forms: those that move elements, and products of matrices."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from composite.recognition.algebra import Form
from composite.recognition.contraction import contracted
from composite.recognition.moving import Range, reshaped, sliced, transposed
from composite.recognition.reading import Reader, Rule


def _reshape(reader: Reader, op: Any) -> Form:
    x = op.inputs[0]
    shapes = reader.shape(x), reader.shape(op.outputs[0])
    return reshaped(reader.algebra, reader.form(x), *shapes)


def _transpose(reader: Reader, op: Any) -> Form:
    x, order = op.inputs
    order = [int(k) for k in reader.known(order)]
    return transposed(reader.algebra, reader.form(x), reader.shape(x), order)


def _broadcast(reader: Reader, op: Any) -> Form:
    reader.known(op.inputs[1])
    return reader.form(op.inputs[0])


def _tile(reader: Reader, op: Any) -> Form | None:
    counts = reader.known(op.inputs[1])
    sizes = reader.shape(op.inputs[0])
    if any(n != 1 and count != 1 for n, count in zip(sizes, counts, strict=True)):
        return None
    return reader.form(op.inputs[0])


def _sliced(reader: Reader, x: Any, ranges: Sequence[Range]) -> Form:
    return sliced(reader.algebra, reader.form(x), reader.shape(x), ranges)


def _slice(reader: Reader, op: Any) -> Form:
    x, begin = op.inputs[0], reader.known(op.inputs[1])
    counts = reader.shape(op.outputs[0])
    return _sliced(reader, x, [(int(k), n, 1) for k, n in zip(begin, counts, strict=True)])


def _strided_slice(reader: Reader, op: Any) -> Form | None:
    x = op.inputs[0]
    begin, end, step = (reader.known(one) for one in op.inputs[1:])
    masks = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    begins, ends, new, shrunk, ellipsis = (op.get_attr(name) for name in masks)
    sizes = list(reader.shape(x))
    added = sum(bool(new >> k & 1) for k in range(len(begin)))
    left = len(sizes) - (len(begin) - added - (1 if ellipsis else 0))
    ranges: list[Range] = []
    for k, stride in enumerate(int(one) for one in step):
        if ellipsis >> k & 1:
            ranges += [(0, sizes[len(ranges) + i], 1) for i in range(left)]
        elif not new >> k & 1:
            size = sizes[len(ranges)]
            first = None if begins >> k & 1 else int(begin[k])
            last = None if ends >> k & 1 else int(end[k])
            if shrunk >> k & 1:
                first = int(begin[k])
                last = first + 1 or None
            taken = range(size)[first:last:stride]
            ranges.append((taken.start, len(taken), taken.step))
    ranges += [(0, n, 1) for n in sizes[len(ranges) :]]
    part = tuple(count for _, count, _ in ranges)
    return reshaped(reader.algebra, _sliced(reader, x, ranges), part, reader.shape(op.outputs[0]))


def _parts(reader: Reader, op: Any, x: Any, axis: int) -> list[Form]:
    """The outputs of a split: parts of an axis, one behind the other."""
    sizes = reader.shape(x)
    axis %= len(sizes)
    found, start = [], 0
    for one in op.outputs:
        count = reader.shape(one)[axis]
        ranges = [(0, n, 1) for n in sizes]
        ranges[axis] = (start, count, 1)
        found.append(_sliced(reader, x, ranges))
        start += count
    return found


def _split(reader: Reader, op: Any) -> list[Form]:
    return _parts(reader, op, op.inputs[1], int(reader.known(op.inputs[0])))


def _split_v(reader: Reader, op: Any) -> list[Form]:
    return _parts(reader, op, op.inputs[0], int(reader.known(op.inputs[2])))


def _unpack(reader: Reader, op: Any) -> list[Form]:
    x = op.inputs[0]
    sizes = reader.shape(x)
    axis = op.get_attr("axis") % len(sizes)
    found = []
    for k in range(sizes[axis]):
        ranges = [(0, n, 1) for n in sizes]
        ranges[axis] = (k, 1, 1)
        part = (*sizes[:axis], 1, *sizes[axis + 1 :])
        one = _sliced(reader, x, ranges)
        found.append(reshaped(reader.algebra, one, part, reader.shape(op.outputs[k])))
    return found


def _joined(reader: Reader, op: Any, given: Sequence[Any], axis: int, *, is_new: bool) -> Form:
    """Operands one behind the other along an axis."""
    shape = reader.shape(op.outputs[0])
    axis = axis % len(shape) - len(shape)
    forms = []
    for one in given:
        own = reader.shape(one)
        sizes = (*own[: len(shape) + axis], 1, *own[len(shape) + axis :])
        form = reader.form(one)
        forms.append(reshaped(reader.algebra, form, own, sizes) if is_new else form)
    counts = tuple(1 if is_new else reader.shape(one)[axis] for one in given)
    return reader.algebra.atom("concat", (axis, counts), tuple(forms), shape)


def _concat(reader: Reader, op: Any) -> Form:
    *given, axis = op.inputs
    return _joined(reader, op, given, int(reader.known(axis)), is_new=False)


def _pack(reader: Reader, op: Any) -> Form:
    return _joined(reader, op, op.inputs, op.get_attr("axis"), is_new=True)


def _einsum(reader: Reader, op: Any) -> Form | None:
    equation = op.get_attr("equation").decode()
    if len(op.inputs) != 2 or "." in equation:
        return None
    given, out = equation.replace(" ", "").split("->")
    labels = given.split(",")
    if any(len(set(one)) != len(one) for one in (*labels, out)):
        return None
    return _product(reader, op, labels[0], labels[1], out)


def _mat_mul(reader: Reader, op: Any) -> Form:
    names = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
    turned = [op.get_attr(name) for name in names]
    ranks = [len(one.shape) for one in op.inputs]
    batch = string.ascii_uppercase[: max(ranks) - 2]
    x = batch[len(batch) - ranks[0] + 2 :] + ("ki" if turned[0] else "ik")
    y = batch[len(batch) - ranks[1] + 2 :] + ("jk" if turned[1] else "kj")
    return _product(reader, op, x, y, f"{batch}ij")


def _product(reader: Reader, op: Any, x: str, y: str, out: str) -> Form:
    """An einsum; axes of size 1 that are broadcast have labels of their own."""
    sizes: dict[str, int] = {}
    shapes = [reader.shape(one) for one in op.inputs]
    for labels, shape in zip((x, y), shapes, strict=True):
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = max(sizes.get(label, 1), size)
    operands = []
    for labels, shape, one in zip((x, y), shapes, op.inputs, strict=True):
        own = [(a, n) for a, n in zip(labels, shape, strict=True) if n == sizes[a]]
        form = reshaped(reader.algebra, reader.form(one), shape, tuple(n for _, n in own))
        operands.append((form, tuple(a for a, _ in own)))
    return contracted(reader.algebra, operands, tuple(out), sizes)


LAYOUTS: dict[str, Rule] = {
    **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze"), _reshape),
    "Transpose": _transpose,
    "BroadcastTo": _broadcast,
    "Tile": _tile,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "Split": _split,
    "SplitV": _split_v,
    "Unpack": _unpack,
    "ConcatV2": _concat,
    "Pack": _pack,
    "Einsum": _einsum,
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _mat_mul),
}
