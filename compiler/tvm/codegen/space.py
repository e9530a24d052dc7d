"""Where the tensors that a kernel's loops see lie: buffers, sizes, and strides of views.

Not for: reading an element (access.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.graph import is_squeeze
from composite.compiler.tvm.ir.tensor import Expr, Parameter, Reshape, Tensor, Transpose
from composite.compiler.tvm.ir.views import Slice
from composite.compiler.tvm.tir.block import Buffer, const


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
        self._open: set[Tensor] = set()

    def within(self, counter: str, value: Expr) -> Space:
        """Return what loops inside of a loop can see, whose counter is a symbol of its own."""
        return self._under({**self.symbols, counter: value})

    def _under(self, symbols: Mapping[str, Expr]) -> Space:
        """Return the same buffers under other symbols."""
        inner = Space(self.storages, symbols)
        inner.parameters = dict(self.parameters)
        inner._open = self._open
        return inner

    def without(self, tensors: Iterable[Tensor]) -> Space:
        """Return what is seen where some tensors are computed, wherever they are stored as well."""
        inner = self._under(self.symbols)
        for tensor in tensors:
            inner.storages.pop(tensor, None)
        return inner

    def leave_open(self, tensor: Tensor) -> None:
        """Note that LLVM may combine what makes an element of a tensor with what reads it."""
        self._open.add(tensor)

    def is_open(self, tensor: Tensor) -> bool:
        """Return whether what made an element may still be combined with what reads it."""
        while isinstance(tensor.node, Reshape | Transpose | Slice):
            tensor = tensor.node.operand
        return tensor in self._open and self.storage(tensor) is None

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
