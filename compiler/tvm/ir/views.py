"""Views: nodes whose elements are elements of their operands at other indices.

Nothing is copied for them: an element is computed, or loaded, where it is read, by
:mod:`.view_access`. All that moves or selects data is made of the few nodes here: a pad is a
concatenation with a fill, a reversal a slice of step -1, a one-hot row a comparison with the index.
Reshapes and transposes, which every strategy knows, are in :mod:`.tensor`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.graph import reshape
from composite.compiler.tvm.ir.tensor import Constant, Node, Reshape, Tensor

MOST_PARTS = 64
"""Tensors that one concatenation may join: each is a branch wherever an element is read."""


@dataclass(frozen=True)
class Slice(Node):
    """Element ``i`` of a dimension is element ``start + step * i`` of the operand's."""

    is_strided_view: ClassVar[bool] = True
    selects: ClassVar[bool] = True

    operand: Tensor
    start: tuple[Dim, ...]
    step: tuple[int, ...]


@dataclass(frozen=True)
class DynamicSlice(Node):
    """A part of the operand as large as the result, which begins where scalars say.

    Along dimension ``axes[k]`` it begins at ``starts[k]``, along all others at 0. It lies within
    the operand: a start that is not known to is a :class:`Check`.
    """

    selects: ClassVar[bool] = True

    operand: Tensor
    starts: tuple[Tensor, ...]
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Concat(Node):
    """The operands one after the other along ``axis``."""

    operands: tuple[Tensor, ...] = field()
    axis: int

    def ends(self) -> list[Dim]:
        """Return where each operand ends."""
        total: Dim = 0
        ends = []
        for operand in self.operands:
            total = total + operand.shape[self.axis]
            ends.append(total)
        return ends


@dataclass(frozen=True)
class Gather(Node):
    """Elements of ``table`` at indices that tensors hold, one for each dimension of ``axes``.

    All of ``indices`` have one shape, and are read at the result's dimensions ``at``. The table's
    other dimensions are the result's dimensions ``kept``, in order. An index lies within the table:
    what is not known to is a :class:`Check`, unless 0 is read ``zero_elsewhere``.
    """

    selects: ClassVar[bool] = True

    table: Tensor
    indices: tuple[Tensor, ...]
    axes: tuple[int, ...]
    at: tuple[int, ...]
    kept: tuple[int, ...]
    zero_elsewhere: bool = False


@dataclass(frozen=True)
class Check(Node):
    """The operand's integers; the kernel fails where one is not in ``[0, bound)``.

    The host then runs the expansion, which raises TensorFlow's own error. On a GPU, where no kernel
    can fail, an index ``of_gather`` needs no check (:mod:`..passes.gathers_of_zeros`).
    """

    is_element_wise: ClassVar[bool] = True

    operand: Tensor
    bound: Dim
    of_gather: bool = False


@dataclass(frozen=True)
class Iota(Node):
    """Each element is its own index along ``axis``."""

    axis: int


@dataclass(frozen=True)
class RandomWords(Node):
    """The words that Philox makes of a key and a counter, in row-major order.

    All operands are uint64 scalars: the key, the lower and the upper half of the counter. Of
    ``pairs`` an element is both words of the pair that its word is one of, as a uint64: the lower
    half is the first one, the upper half the second but for its highest bit, which says whether
    the element's own word is the second.
    """

    # At any dimensions: which word an element is depends on its place in the order alone.
    is_element_wise: ClassVar[bool] = True

    key: Tensor
    low: Tensor
    high: Tensor
    pairs: bool = False


def sliced(
    tensor: Tensor, start: Sequence[Dim], size: Shape, step: Sequence[int] | None = None
) -> Tensor:
    """Return ``size`` elements of each dimension from ``start`` on, which must lie within it."""
    step = tuple(step or (1,) * tensor.rank)
    if size == tensor.shape and set(step) <= {1}:
        return tensor
    node = tensor.node
    if isinstance(node, Constant) and not any(isinstance(d, dims.Poly) for d in (*start, *size)):
        ends = [f + s * n for f, s, n in zip(start, step, size, strict=True)]
        cut = tuple(
            slice(f, e if e >= 0 else None, s)  # type: ignore[operator]
            for f, e, s in zip(start, ends, step, strict=True)
        )
        return _constant_like(tensor, node.value[cut])
    if isinstance(node, Slice):
        start = [f + s * g for f, s, g in zip(node.start, node.step, start, strict=True)]
        step = tuple(s * t for s, t in zip(node.step, step, strict=True))
        return Tensor(size, tensor.dtype, Slice(node.operand, tuple(start), step))
    return Tensor(size, tensor.dtype, Slice(tensor, tuple(start), step))


def sliced_at(tensor: Tensor, starts: Mapping[int, Tensor], size: Shape) -> Tensor:
    """Return ``size`` elements from scalars on, one for each axis of ``starts``.

    Each must be such that the part lies within the tensor (see :class:`DynamicSlice`).
    """
    if not starts:
        return tensor
    node = DynamicSlice(tensor, tuple(starts.values()), tuple(starts))
    return Tensor(size, tensor.dtype, node)


def concat(tensors: Sequence[Tensor], axis: int, what: str) -> Tensor:
    """Return the tensors, which agree in all other dimensions, one after the other."""
    first = tensors[0]
    for other in tensors:
        for i, (a, b) in enumerate(zip(first.shape, other.shape, strict=True)):
            if i != axis:
                dims.require_equal(a, b, what)
    parts = [t for t in tensors if t.shape[axis] != 0] or [first]
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(t.node, Constant) for t in parts):
        values = [t.node.value for t in parts if isinstance(t.node, Constant)]
        return _constant_like(first, np.concatenate(values, axis=axis))
    if len(parts) > MOST_PARTS:
        raise NotCovered(f"{what}: {len(parts)} tensors (at most {MOST_PARTS})")
    total: Dim = 0
    for part in parts:
        total = total + part.shape[axis]
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    return Tensor(shape, first.dtype, Concat(tuple(parts), axis))


def iota(size: Dim, dtype: str, rank: int = 1, axis: int = 0) -> Tensor:
    """Return 0, 1, 2, ... along an axis; all other dimensions are 1."""
    shape = tuple(size if i == axis else 1 for i in range(rank))
    return Tensor(shape, dtype, Iota(axis))


def checked(indices: Tensor, bound: Dim, *, of_gather: bool = False) -> Tensor:
    """Return the indices, which are in ``[0, bound)`` or fail the kernel (see :class:`Check`)."""
    return (
        indices
        if _is_within(indices, bound)
        else Tensor(indices.shape, indices.dtype, Check(indices, bound, of_gather))
    )


def _is_within(indices: Tensor, bound: Dim) -> bool:
    """Return whether it is known now that no index can be out of bounds."""
    node = indices.node
    if isinstance(node, Iota):
        return indices.shape[node.axis] == bound
    if isinstance(node, Check):
        return node.bound == bound
    if isinstance(node, Slice | Reshape):
        return _is_within(node.operand, bound)
    if not isinstance(node, Constant) or not isinstance(bound, int):
        return False
    values = node.value.reshape(-1)
    return all(not isinstance(v, dims.Poly) and 0 <= v < bound for v in values)


def gather(table: Tensor, indices: Tensor, axis: int, batch: int) -> Tensor:
    """Return the table's elements at indices along ``axis``; ``batch`` dimensions go together."""
    found = indices.rank - batch
    shape = (*table.shape[:axis], *indices.shape[batch:], *table.shape[axis + 1 :])
    places = range(len(shape))
    node = Gather(
        table,
        (checked(indices, table.shape[axis], of_gather=True),),
        (axis,),
        (*places[:batch], *places[axis : axis + found]),
        (*places[:axis], *places[axis + found :]),
    )
    return Tensor(shape, table.dtype, node)


def gather_elements(table: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """Return the table's elements, or rows, at the indices of its first dimensions."""
    bounded = zip(indices, table.shape, strict=False)
    indices = tuple(checked(t, d, of_gather=True) for t, d in bounded)
    depth, outer = len(indices), indices[0].rank
    shape = (*indices[0].shape, *table.shape[depth:])
    places = tuple(range(len(shape)))
    axes = tuple(range(depth))
    node = Gather(table, indices, axes, places[:outer], places[outer:])
    return Tensor(shape, table.dtype, node)


def select(tensor: Tensor, axis: int, place: Dim) -> Tensor:
    """Return the elements at one place of a dimension, which vanishes."""
    start: list[Dim] = [0] * tensor.rank
    start[axis] = place
    before, after = tensor.shape[:axis], tensor.shape[axis + 1 :]
    return reshape(sliced(tensor, start, (*before, 1, *after)), (*before, *after))


def _constant_like(tensor: Tensor, value: np.ndarray) -> Tensor:
    known = value.astype(object) if tensor.known is not None else None
    return Tensor(tuple(value.shape), tensor.dtype, Constant(value), known)
