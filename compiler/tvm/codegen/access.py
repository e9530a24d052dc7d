"""Compute elements of tensors inside of loops.

An :class:`Access` turns "the element of this tensor at these indices" into TIR: a load if the
tensor has a buffer, its inlined computation if not, each written once within a scope. Indices are
ints, index expressions, or a :class:`Lane`, which makes the result a vector.

Not for: where a tensor lies (:mod:`.space`), elements of views (:mod:`.view_access`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import tirx

from composite.compiler.tvm.codegen.indices import (
    Index,
    Lane,
    as_expr,
    flat_index,
    lanes_at,
    matching_groups,
    moved,
)
from composite.compiler.tvm.codegen.space import Space, Storage, Strided, strided
from composite.compiler.tvm.codegen.view_access import Elements, first_that_holds, read_view
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import (
    Constant,
    Expr,
    Pointwise,
    Reshape,
    Tensor,
    Transpose,
)
from composite.compiler.tvm.math import numeric
from composite.compiler.tvm.tir.block import (
    Block,
    Buffer,
    const,
    index,
    lanes_of,
    quotient,
    remainder,
    spread,
)

__all__ = ["Access", "Index", "Lane", "Space", "Storage", "Strided", "flat_index", "strided"]


_NUMBERS = (tirx.FloatImm, tirx.IntImm)


class Access:
    """Elements of tensors within one scope of a block."""

    def __init__(self, block: Block, space: Space) -> None:
        self._block = block
        self._space = space
        self._memo: dict[Any, Expr] = {}
        self._keep: list[Any] = []  # ids are keys: what they name must live as long
        self._given: dict[Tensor, Callable[[Sequence[Index]], Expr]] = {}

    @property
    def block(self) -> Block:
        """The block that is written into."""
        return self._block

    def size(self, dim: Dim) -> Expr | int:
        """Return a size as an index expression, or the int that it is."""
        return self._space.size(dim)

    def inner(self) -> Access:
        """Return a reader for a scope within this one: what it computes stays in there."""
        inner = Access(self._block, self._space)
        inner._memo = dict(self._memo)
        inner._keep = list(self._keep)
        inner._given = self._given
        return inner

    def give(self, tensor: Tensor, element: Callable[[Sequence[Index]], Expr]) -> None:
        """Let the elements of a tensor come from a function of the indices (its compute dtype)."""
        self._given[tensor] = element

    def compute(self, tensor: Tensor, at: Sequence[Index]) -> Expr:
        """Return an element that is computed here even if the tensor has a buffer."""
        key = _key(tensor, at)
        if key not in self._memo:
            self._keep.append(tuple(at))
            self._memo[key] = self._evaluate(tensor, at)
        return self._memo[key]

    def read(self, tensor: Tensor, at: Sequence[Index]) -> Expr:
        """Return an element: loaded if it is stored, else computed."""
        key = _key(tensor, at)
        if key in self._memo:
            return self._memo[key]
        storage = self._space.storage(tensor)
        if storage is None or tensor in self._given:
            return self.compute(tensor, at)
        self._keep.append(tuple(at))
        self._memo[key] = self._load(storage, tensor.shape, at)
        return self._memo[key]

    def read_operand(self, operand: Tensor, at: Sequence[Index]) -> Expr:
        """Return the element of an operand, which may broadcast, that makes the one at ``at``."""
        own = at[len(at) - operand.rank :]
        return self.read(
            operand, [0 if d == 1 else i for d, i in zip(operand.shape, own, strict=True)]
        )

    def _evaluate(self, tensor: Tensor, at: Sequence[Index]) -> Expr:
        node = tensor.node
        if tensor in self._given:
            return self._block.let(self._given[tensor](at))
        if isinstance(node, Pointwise):
            return self._pointwise(tensor, node, at)
        if isinstance(node, Constant):
            return self._constant(node.value, tensor)
        if isinstance(node, Transpose):
            source: list[Index] = [0] * len(at)
            for i, p in enumerate(node.permutation):
                source[p] = at[i]
            return self.read(node.operand, source)
        if isinstance(node, Reshape):
            return self._reshape(node, tensor.shape, at)
        value = read_view(self, tensor, at)
        if value is None:
            raise RuntimeError(f"{type(node).__name__} must be stored before it is read")
        return value

    def _pointwise(self, tensor: Tensor, node: Pointwise, at: Sequence[Index]) -> Expr:
        """Compute an element; what it is computed from is rounded, as between ops of the author.

        On TVM's demand LLVM contracts a product with whatever addition reads it. Within an op that
        is meant. Across ops it is not: in ``x * x - y * y`` one product would be rounded and the
        other not, and the difference of equal numbers would be a rounding error, of either sign.
        And of a choice of the larger number by a choice LLVM 22 makes one choice, whichever of
        them keeps a NaN.
        """
        values = []
        for operand in node.operands:
            value = self.read_operand(operand, at)
            values.append(numeric.fence(value) if self._space.is_open(operand) else value)
        lanes = max(lanes_of(v) for v in values)
        result = node.body(self._block, *(spread(v, lanes) for v in values))
        numbers = isinstance(result, _NUMBERS) and all(isinstance(v, _NUMBERS) for v in values)
        if numbers and not any(result.same_as(v) for v in values):
            self._note_folded(result, node, values)
        is_open = isinstance(result, tirx.Mul | tirx.Select)
        if is_open and numeric.element(result).startswith("float"):
            self._space.leave_open(tensor)
        return self._block.let(result)

    def _note_folded(self, result: Expr, node: Pointwise, numbers: Sequence[Expr]) -> None:
        """Note the stand-in of numbers that TVM folded: the ring gives another result."""
        known = self._block.stand_ins
        kept = []
        for number in numbers:
            stand_in = known.of(number)
            if stand_in is None:
                is_float = isinstance(number, tirx.FloatImm)
                stand_in = numeric.fence(number) if is_float else number
            kept.append(stand_in)
        known.add(result, node.body(Block(), *kept))

    def _constant(self, value: np.ndarray, tensor: Tensor) -> Expr:
        flat = value.reshape(-1)  # one value: the planner stores tables
        return self.number(flat[0] if flat.size else 0, compute_dtype(tensor.dtype))

    def number(self, value: Any, dtype: str) -> Expr:
        """Return a known element, which may be a size, in its compute dtype."""
        if isinstance(value, dims.Poly):
            return tirx.Cast(dtype, index(self._space.size(value)))
        if dtype in ("float32", "float64"):
            return numeric.literal(float(value), dtype)
        return const(bool(value) if dtype == "bool" else int(value), dtype)

    def _load(self, storage: Storage, shape: Shape, at: Sequence[Index]) -> Expr:
        place = moved(flat_index(at, self._space.strides(shape)), storage.offset)
        return numeric.loaded(self._block, self._flat_load(storage.buffer, place), storage.dtype)

    def _flat_load(self, buffer: Buffer, place: Index) -> Expr:
        if isinstance(place, Lane):
            if isinstance(place.step, int) and place.step == -1:
                last = place.lanes - 1
                ascending = self._block.let(
                    self._block.load(buffer, place.base - last, place.lanes)
                )
                return tirx.Shuffle([ascending], list(range(last, -1, -1)))
            return self._block.load(buffer, place.base, place.lanes, place.step)
        return tirx.BufferLoad(buffer, [index(place)])

    def _reshape(self, node: Reshape, shape: Shape, at: Sequence[Index]) -> Expr:
        source = node.operand
        storage = self._space.storage(source)
        if storage is not None and source not in self._given:
            return self._load(storage, shape, at)
        groups = [
            _Group([at[i] for i in ours], _sizes(shape, ours), _sizes(source.shape, theirs))
            for ours, theirs in matching_groups(shape, source.shape)
        ]
        rows = [self._in_row(group) for group in groups]

        def anywhere(access: Elements) -> Expr:
            return access.read(source, [i for group in groups for i in self._regroup(group)])

        def in_row(access: Elements) -> Expr:
            place: list[Index] = []
            for group, row in zip(groups, rows, strict=True):
                place += self._regroup(group) if row is None else row[1]
            return access.read(source, place)

        # One index at most is a vector.
        condition = next((row[0] for row in rows if row is not None), None)
        if condition is None:
            return anywhere(self)
        cases = [(condition, in_row), (True, anywhere)]
        return first_that_holds(self, compute_dtype(source.dtype), lanes_at(at), cases)

    def _in_row(self, group: _Group) -> tuple[Expr, list[Index]] | None:
        """Return the indices of a vector that ends in the row where it begins, and whether it does.

        Then all that selects a row, such as an index that a table is read at, is read once for the
        vector. None if there is no vector, if rows are shorter, or if there is but one.
        """
        if not group.at or not group.target:
            return None
        lane, row = group.at[-1], group.target[-1]
        if not isinstance(lane, Lane) or lane.step != 1 or not isinstance(row, int):
            return None
        if row < lane.lanes or sum(d != 1 for d in group.target) == 1:
            return None
        place = flat_index(group.at, self._space.strides(group.shape))
        *outer, first = self._split(self._block.bind(index(place.base)), group.target)
        return first <= row - lane.lanes, [*outer, Lane(first, lane.lanes)]

    def _regroup(self, group: _Group) -> list[Index]:
        """Return the indices of one row-major space under another shape of the same size."""
        kept = [i for i, d in zip(group.at, group.shape, strict=True) if d != 1]
        if sum(d != 1 for d in group.target) == 1 == len(kept):
            return [0 if d == 1 else kept[0] for d in group.target]
        flat = as_expr(flat_index(group.at, self._space.strides(group.shape)))
        return self._split(flat, group.target)

    def _split(self, flat: Expr | int, shape: Shape) -> list[Index]:
        """Return the indices of an element, or of a vector of them, by its row-major number."""
        if 0 in shape:  # there is no element, and nothing that reads one runs
            return [0] * len(shape)
        result: list[Index] = []
        for stride, dim in zip(self._space.strides(shape), shape, strict=True):
            step = self._block.bind(quotient(flat, stride), "i")
            result.append(0 if dim == 1 else remainder(step, self._space.size(dim)))
        return result


@dataclass(frozen=True)
class _Group:
    """Dimensions that a reshape makes of others: the indices under one shape, and the other."""

    at: list[Index]
    shape: Shape
    target: Shape


def _sizes(shape: Shape, dimensions: Sequence[int]) -> Shape:
    return tuple(shape[i] for i in dimensions)


def _key(tensor: Tensor, at: Sequence[Index]) -> tuple[Any, ...]:
    """Return what an element is remembered by: along a dimension of 1, any index is the first."""
    return tensor, *(_mark(i, d) for i, d in zip(at, tensor.shape, strict=True))


def _mark(i: Index, dim: Dim) -> int:
    if dim == 1 and not isinstance(i, Lane):
        return 0
    return i if isinstance(i, int) else id(i)
