"""Elements of a thread that lie side by side: loaded and stored together, computed one by one.

An access of 16 bytes a thread is what a GPU's memory is fastest with. It is used where the tensor
is contiguous and the number of elements in front of it is proven to be a multiple; that the
tensor's address is a multiple of 16 is stated in the launch plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tvm import tirx
from tvm.sym import Analyzer

from composite.compiler.tvm.codegen.access import Access, Index, Storage, flat_index
from composite.compiler.tvm.codegen.device_block import DeviceBlock
from composite.compiler.tvm.ir.dims import Dim, Shape, divide
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Expr, Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.walk import reachable
from composite.compiler.tvm.math.numeric import from_storage, storage_dtype, to_storage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.tir.block import index

_BYTES = 16


def vector_width(tensors: Sequence[Tensor], inner: Dim, context: Context) -> int:
    """Return how many elements side by side a thread takes of rows of ``inner`` elements.

    1 where a row is not known to be a multiple of them, or where a tensor begins in its buffer.
    """
    smallest = min((ITEM_SIZE[t.dtype] for t in tensors), default=4)
    width = min(8, _BYTES // min(4, smallest))
    places = [found.offset for t in tensors if (found := contiguous(t, context)) is not None]
    while width > 1 and not (
        divide(inner, width) is not None and all(is_multiple(at, width) for at in places)
    ):
        width //= 2
    return width if width * smallest >= 4 else 1


def contiguous(tensor: Tensor, context: Context) -> Storage | None:
    """Return where a tensor's elements lie in row-major order, side by side."""
    while context.space.storage(tensor) is None and isinstance(tensor.node, Reshape):
        tensor = tensor.node.operand
    return context.space.storage(tensor)


def read_in_place(
    roots: Sequence[Tensor], shape: Shape, made: set[Tensor], context: Context
) -> list[Tensor]:
    """Return what is read element for element to make the roots, and lies in memory like them."""

    def is_source(tensor: Tensor) -> bool:
        return tensor not in made and contiguous(tensor, context) is not None

    def below(tensor: Tensor) -> Sequence[Tensor]:
        if is_source(tensor) or not isinstance(tensor.node, Pointwise):
            return ()
        return [t for t in tensor.node.operands if t.shape == shape]

    found = reachable([t for t in roots if t.shape == shape], below)
    return [t for t in found if t.shape == shape and is_source(t)]


class Lanes:
    """Elements of one thread, side by side along the last dimension."""

    def __init__(self, context: Context, at: Sequence[Index], width: int) -> None:
        self._context = context
        self._block = device_block(context)
        self._width = width
        self._first = list(at)
        last = at[-1]
        self.places: list[list[Index]] = [
            [*at[:-1], last if i == 0 else self._block.bind(index(last + i))] for i in range(width)
        ]

    def load(self, storage: Storage, shape: Shape) -> list[Expr]:
        """Load the elements that a contiguous buffer has here; return them as it stores them."""
        cells = self._block.registers(self._width, storage_dtype(storage.dtype), "lanes")
        self._block.copy(cells, 0, storage.buffer, self._flat(shape, storage), self._width)
        return [tirx.BufferLoad(cells, [index(i)]) for i in range(self._width)]

    def store(self, tensor: Tensor, values: Sequence[Expr]) -> None:
        """Store the elements of a tensor."""
        if self._width == 1:
            self._context.store(tensor, self.places[0], values[0])
            return
        storage = self._context.space.storages[tensor]
        cells = self._block.registers(self._width, storage_dtype(storage.dtype), "results")
        for i, value in enumerate(values):
            self._block.store(cells, i, to_storage(self._block, value, storage.dtype))
        place = self._flat(tensor.shape, storage)
        self._block.copy(storage.buffer, place, cells, 0, self._width)

    def _flat(self, shape: Shape, storage: Storage) -> Expr:
        return index(storage.offset + flat_index(self._first, self._context.space.strides(shape)))


class Loads:
    """What of some tensors was loaded side by side; what was not is read as ever."""

    def __init__(self, context: Context, access: Access, tensors: Sequence[Tensor]) -> None:
        self._context = context
        self._plain = context.access()
        self._found: dict[Tensor, dict[_Key, Expr]] = {t: {} for t in tensors}
        self._keep: list[Lanes] = []  # ids are keys: what they name must live as long
        for tensor in tensors:
            access.give(tensor, partial(self._read, tensor))

    def load(self, lanes: Lanes) -> None:
        """Load elements of all the tensors, if there are several side by side."""
        if len(lanes.places) == 1:
            return
        self._keep.append(lanes)
        for tensor, found in self._found.items():
            storage = contiguous(tensor, self._context)
            if storage is None:
                raise ValueError("a tensor without a buffer has no elements to load together")
            for place, raw in zip(lanes.places, lanes.load(storage, tensor.shape), strict=True):
                found[_key(place)] = from_storage(raw, storage.dtype)

    def _read(self, tensor: Tensor, at: Sequence[Index]) -> Expr:
        loaded = self._found[tensor].get(_key(at))
        return self._plain.read(tensor, at) if loaded is None else loaded


_Key = tuple[int, ...]


def _key(at: Sequence[Index]) -> _Key:
    return tuple(i if isinstance(i, int) else id(i) for i in at)


def is_multiple(value: Expr | int, of: int) -> bool:
    """Return whether a size is known to be a multiple."""
    if isinstance(value, int):
        return value % of == 0
    known = Analyzer().modular_set(value)
    return int(known.coeff) % of == 0 and int(known.base) % of == 0


def threads_of_block(name: str, candidates: Sequence[int], default: int, context: Context) -> int:
    """Return how many threads a block has: by choice, or as the launch around it has."""
    return device_block(context).threads or context.choose(name, candidates, default)


def device_block(context: Context) -> DeviceBlock:
    """Return the block of a kernel for a GPU."""
    if not isinstance(context.block, DeviceBlock):
        raise TypeError("strategies for GPUs write into a DeviceBlock")
    return context.block
