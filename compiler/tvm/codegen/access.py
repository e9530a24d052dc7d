"""Compute the elements of tensors inside a loop nest.

An :class:`Access` turns "the element of this tensor at these indices" into TIR: a load for what
has a buffer, the inlined computation for what has none, each computed once within the scope it was
made for. Indices are ints, index expressions, or a :class:`Lane`, which makes the result a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import tirx

from composite.compiler.tvm.codegen.block import (
    Block,
    Buffer,
    const,
    index,
    lanes_of,
    quotient,
    remainder,
    spread,
)
from composite.compiler.tvm.codegen.place import (
    Index,
    Lane,
    as_expr,
    flat_index,
    matching_groups,
    moved,
)
from composite.compiler.tvm.codegen.view_access import read_view
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.graph import (
    Constant,
    Expr,
    Parameter,
    Pointwise,
    Reshape,
    Tensor,
    Transpose,
    compute_dtype,
    is_squeeze,
)
from composite.compiler.tvm.ir.views import Slice
from composite.compiler.tvm.math import numeric

__all__ = ["Access", "Index", "Lane", "Space", "Storage", "Strided", "flat_index", "strided"]


@dataclass(frozen=True)
class Storage:
    """Where a tensor lies: in a flat buffer of ``dtype`` from ``offset`` on, in row-major order."""

    buffer: Buffer
    dtype: str
    offset: Expr | int = 0


class Space:
    """What a kernel's loops can see: buffers of stored tensors and values of symbols."""

    def __init__(self, storages: Mapping[Tensor, Storage], symbols: Mapping[str, Expr]) -> None:
        self.storages = dict(storages)
        self.symbols = symbols
        self.parameters: dict[int, Storage] = {}
        self._products: set[Tensor] = set()

    def within(self, counter: str, value: Expr) -> Space:
        """Return what loops inside of a loop can see, whose counter is a symbol of its own."""
        inner = Space(self.storages, {**self.symbols, counter: value})
        inner.parameters = dict(self.parameters)
        inner._products = self._products
        return inner

    def add_product(self, tensor: Tensor) -> None:
        """Note that the last operation on an element of a tensor is a product."""
        self._products.add(tensor)

    def is_product(self, tensor: Tensor) -> bool:
        """Return whether an element that is read may still be the product that made it."""
        while isinstance(tensor.node, Reshape | Transpose | Slice):
            tensor = tensor.node.operand
        return tensor in self._products and self.storage(tensor) is None

    def size(self, dim: Dim) -> Expr | int:
        """Return a size as an index expression, or the int that it is."""
        if isinstance(dim, int):
            return dim
        return dims.evaluate(dims.postfix(dim), self.symbols, lambda v: const(v, "int64"))

    def storage(self, tensor: Tensor) -> Storage | None:
        """Return the tensor's buffer if it has one."""
        if isinstance(tensor.node, Parameter):
            return self.parameters[tensor.node.index]
        return self.storages.get(tensor)

    def strides(self, shape: Shape) -> list[Expr | int]:
        """Return row-major strides in elements."""
        strides: list[Expr | int] = []
        step: Dim = 1
        for dim in reversed(shape):
            strides.insert(0, self.size(step))
            step = step * dim
        return strides


@dataclass(frozen=True)
class Strided:
    """A tensor as its buffer, where it starts in it, and one stride in elements a dimension."""

    storage: Storage
    strides: tuple[Expr | int, ...]
    offset: Expr | int = 0


def strided(tensor: Tensor, space: Space) -> Strided | None:
    """Return how a stored tensor, or a view of one, lies in memory; None if strides cannot say."""
    storage = space.storage(tensor)
    node = tensor.node
    if storage is not None:
        return Strided(storage, tuple(space.strides(tensor.shape)), storage.offset)
    if isinstance(node, Transpose):
        inner = strided(node.operand, space)
        if inner is None:
            return None
        strides = tuple(inner.strides[p] for p in node.permutation)
        return Strided(inner.storage, strides, inner.offset)
    if isinstance(node, Slice):
        inner = strided(node.operand, space)
        if inner is None:
            return None
        offset = inner.offset
        for start, stride in zip(node.start, inner.strides, strict=True):
            offset = offset + space.size(start) * stride
        strides = tuple(s * t for s, t in zip(inner.strides, node.step, strict=True))
        return Strided(inner.storage, strides, offset)
    if not isinstance(node, Reshape):
        return None
    if is_squeeze(tensor.shape, node.operand.shape):
        return _squeezed(tensor.shape, node.operand, space)
    source = tensor
    while isinstance(source.node, Reshape):
        source = source.node.operand
        storage = space.storage(source)
        if storage is not None:
            return Strided(storage, tuple(space.strides(tensor.shape)), storage.offset)
    return None


def _squeezed(shape: Shape, operand: Tensor, space: Space) -> Strided | None:
    """Return the strides of a view under a shape that differs in dimensions of 1 alone."""
    inner = strided(operand, space)
    if inner is None:
        return None
    kept = iter(s for s, d in zip(inner.strides, operand.shape, strict=True) if d != 1)
    strides = tuple(1 if d == 1 else next(kept) for d in shape)
    return Strided(inner.storage, strides, inner.offset)


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

    @property
    def space(self) -> Space:
        """What can be seen."""
        return self._space

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
        key = (tensor, *(_key(i) for i in at))
        if key not in self._memo:
            self._keep.append(tuple(at))
            self._memo[key] = self._evaluate(tensor, at)
        return self._memo[key]

    def read(self, tensor: Tensor, at: Sequence[Index]) -> Expr:
        """Return an element: loaded if it is stored, else computed."""
        key = (tensor, *(_key(i) for i in at))
        if key in self._memo:
            return self._memo[key]
        storage = self._space.storage(tensor)
        if storage is None or tensor in self._given:
            return self.compute(tensor, at)
        self._keep.append(tuple(at))
        self._memo[key] = self._load(storage, tensor.shape, at)
        return self._memo[key]

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
        """
        values = []
        for operand in node.operands:
            own = at[len(at) - operand.rank :]
            place = [0 if d == 1 else i for d, i in zip(operand.shape, own, strict=True)]
            value = self.read(operand, place)
            values.append(numeric.fence(value) if self._space.is_product(operand) else value)
        lanes = max(lanes_of(v) for v in values)
        result = node.body(self._block, *(spread(v, lanes) for v in values))
        if isinstance(result, tirx.Mul) and numeric.element(result).startswith("float"):
            self._space.add_product(tensor)
        return self._block.let(result)

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
        raw = self._flat_load(storage.buffer, place)
        raw = self._block.let(raw, "x")
        return self._block.let(numeric.from_storage(raw, storage.dtype))

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
        place: list[Index] = []
        for ours, theirs in matching_groups(shape, source.shape):
            inside = [at[i] for i in ours]
            outside = [source.shape[i] for i in theirs]
            place += self._regroup(inside, tuple(shape[i] for i in ours), outside)
        return self.read(source, place)

    def _regroup(self, at: list[Index], shape: Shape, target: Sequence[Dim]) -> list[Index]:
        """Return the indices of one row-major space under another shape of the same size."""
        kept = [i for i, d in zip(at, shape, strict=True) if d != 1]
        if sum(d != 1 for d in target) == 1 == len(kept):
            return [0 if d == 1 else kept[0] for d in target]
        flat = as_expr(flat_index(at, self._space.strides(shape)))
        result: list[Index] = []
        for stride, dim in zip(self._space.strides(tuple(target)), target, strict=True):
            step = self._block.bind(quotient(flat, stride), "i")
            result.append(0 if dim == 1 else remainder(step, self._space.size(dim)))
        return result


def _key(i: Index) -> Any:
    return i if isinstance(i, int) else id(i)
