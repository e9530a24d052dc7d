"""Factors of a product in shared memory, piece by piece along the inner dimension.

A piece lies there as in memory, rows a little apart from each other, so that what a warp reads at a
time lies in different banks. Where strides say that 4, 8 or 16 bytes lie side by side at multiples
of them, they are copied behind the threads (``cp.async``); other elements are loaded, many at once,
and stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Strided, strided
from composite.compiler.tvm.codegen.device_block import Place
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim, ceildiv
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import bits, choose, storage_dtype, to_storage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.vectors import device_block, is_multiple
from composite.compiler.tvm.tir.block import Buffer, const, index, quotient, remainder

_COPIED = (16, 8, 4)
"""Bytes that a thread may copy at a time."""
_MOST_LOADED = 32
"""Elements that a thread has in registers on their way to shared memory."""


@dataclass(frozen=True)
class Factor:
    """One of the factors: its tensor, and which of its last two dimensions is the inner one."""

    tensor: Tensor
    inner_last: bool

    @property
    def size(self) -> Dim:
        """The dimension that is not the inner one."""
        return self.tensor.shape[-2 if self.inner_last else -1]

    @property
    def depth(self) -> Dim:
        """The inner dimension."""
        return self.tensor.shape[-1 if self.inner_last else -2]

    def place(self, batch: Sequence[Index], other: Index, inner: Index) -> list[Index]:
        """Return the indices of an element; batch dimensions broadcast."""
        shape = self.tensor.shape
        own = batch[len(batch) - (len(shape) - 2) :]
        first = [0 if d == 1 else i for d, i in zip(shape, own, strict=False)]
        return [*first, *([other, inner] if self.inner_last else [inner, other])]


def factors_of(node: MatMul) -> tuple[Factor, Factor]:
    """Return the factors of a product."""
    return Factor(node.a, not node.transpose_a), Factor(node.b, node.transpose_b)


class Team(NamedTuple):
    """The threads of a block that work together, and the number of this one."""

    thread: Expr
    threads: int


class Corner(NamedTuple):
    """Where a piece of a factor begins: in the batch, along the other and the inner dimension."""

    batch: Sequence[Index]
    start: Expr
    inner: Expr


def near_axis(where: Strided | None) -> int:
    """Return which of the last two dimensions has its elements side by side: -1 if none has."""
    if where is None or _is_one(where.strides[-1]):
        return -1
    return -2 if _is_one(where.strides[-2]) else -1


def is_inner_near(factor: Factor, context: Context) -> bool:
    """Return whether elements of the inner dimension lie side by side."""
    return (near_axis(strided(factor.tensor, context.space)) == -1) == factor.inner_last


def _is_one(stride: Index) -> bool:
    return is_multiple(index(stride) - 1, 1 << 30)


def copied_together(factor: Factor, context: Context) -> int:
    """Return how many elements that lie side by side are copied at a time; 0 if none can be."""
    where = strided(factor.tensor, context.space)
    if where is None or where.storage.dtype != factor.tensor.dtype:
        return 0
    axis, shape = near_axis(where), factor.tensor.shape
    sizes = [*zip(where.strides, shape, strict=True)]
    near, near_size = sizes.pop(axis)
    apart = [stride for stride, size in sizes if size != 1]
    if not _is_one(near):
        return 0
    # The near dimension may end within what is copied together: it must be a multiple, too.
    last = context.size(near_size)
    for size in _COPIED:
        width = size // ITEM_SIZE[factor.tensor.dtype]
        if width and all(is_multiple(s, width) for s in (*apart, where.offset, last)):
            return width
    return 0


class _Element(NamedTuple):
    """What a thread brings at a time: its number, from where to where, and whether it is there."""

    number: Expr
    to: Place
    source: list[Index]
    inside: Expr


class _Loaded(NamedTuple):
    """An element that is in a register."""

    element: _Element
    register: Place


class StagedFactor:
    """A factor of which shared memory holds pieces of ``side`` by ``piece`` elements.

    If it is ``paired``, a lane of a warp reads two neighbours of the inner dimension.

    Attributes:
        inner_near: Whether elements of the inner dimension lie side by side.
        bytes: Of a piece in shared memory.
        step: Elements between neighbours along the other dimension, and along the inner one.
    """

    def __init__(
        self, factor: Factor, side: int, piece: int, context: Context, *, paired: bool = False
    ) -> None:
        self._factor = factor
        self._context = context
        self._block = device_block(context)
        self._item = ITEM_SIZE[factor.tensor.dtype]
        self._raw = "float32" if self._item == 4 else "uint16"
        self._where = strided(factor.tensor, context.space)
        self.inner_near = is_inner_near(factor, context)
        self._shape = (side, piece) if self.inner_near else (piece, side)
        # Rows of 16 bytes, and columns of 4, are then in different banks.
        apart = 16 // self._item * (2 if self._item == 4 and self.inner_near == paired else 1)
        row = self._shape[1] + apart
        self.step = (row, 1) if self.inner_near else (1, row)
        self.elements = self._shape[0] * row
        self.bytes = self.elements * self._item
        self._width = copied_together(factor, context)

    def view(self, pool: Buffer) -> Buffer:
        """Return shared memory as an array of the factor's elements."""
        return self._block.view(pool, self._raw)

    def bring(self, team: Team, to: Place, corner: Corner) -> None:
        """Have the threads of a block bring a piece: begin to copy it, or load and store it."""
        if self._width:
            self._copy(team, to, corner)
            return
        each = self._each(team)
        for first in range(0, each, _MOST_LOADED):
            numbers = range(first, min(first + _MOST_LOADED, each))
            self._store(self._load(team, to, corner, numbers), team)

    def begin(self, team: Team, to: Place, corner: Corner) -> Callable[[], None]:
        """Have the threads of a block begin to bring a piece, and return what ends it.

        Elements that are not copied are in registers meanwhile, so that the threads need not wait
        for them before they multiply.
        """
        each = self._each(team)
        if self._width or each > _MOST_LOADED:
            self.bring(team, to, corner)
            return lambda: None
        return partial(self._store, self._load(team, to, corner, range(each)), team)

    def _each(self, team: Team) -> int:
        """Return how often a thread takes elements of a piece, of those that are not copied."""
        return ceildiv(self._shape[0] * self._shape[1], team.threads)

    def _copy(self, team: Team, to: Place, corner: Corner) -> None:
        block, width = self._block, self._width
        count = self._shape[0] * self._shape[1] // width
        if count % team.threads == 0:
            # All that a thread copies is under way at once.
            with block.loop(count // team.threads, "vector") as i:
                number = block.bind(team.thread + i * team.threads, "number")
                self._begin_copy(self._element(number, width, to, corner))
        else:
            with block.share_out(team.thread, count, index(team.threads)) as number:
                self._begin_copy(self._element(number, width, to, corner))

    def _element(self, number: Expr, width: int, to: Place, corner: Corner) -> _Element:
        """Return what a thread brings at a time, of all that a piece has."""
        block = self._block
        along = self._shape[1] // width
        row = block.bind(quotient(number, along), "row")
        column = block.bind(remainder(number, along) * width, "column")
        place = block.bind(to.at + row * max(self.step) + column, "to")
        other, deep = (row, column) if self.inner_near else (column, row)
        other = block.bind(corner.start + other, "other")
        deep = block.bind(corner.inner + deep, "deep")
        size, depth = (self._context.size(d) for d in (self._factor.size, self._factor.depth))
        inside = block.let(tirx.And(other < index(size), deep < index(depth)))
        source = self._factor.place(corner.batch, other, deep)
        return _Element(number, Place(to.buffer, place), source, inside)

    def _begin_copy(self, element: _Element) -> None:
        where = self._where
        if where is None:
            raise ValueError("a factor that strides do not describe is not copied")
        place = zip(element.source, where.strides, strict=True)
        flat = sum((i * s for i, s in place), where.offset)
        # What is not there is not read, but no address outside of the array is made of it either.
        flat = choose(element.inside, index(flat), const(0, "int64"))
        source = Place(where.storage.buffer, self._block.bind(flat, "from"))
        self._block.begin_copy(element.to, source, self._width, element.inside)

    def _load(self, team: Team, to: Place, corner: Corner, numbers: range) -> list[_Loaded]:
        """Load elements, all of which are under way at once."""
        block, tensor = self._block, self._factor.tensor
        cells = block.registers(len(numbers), self._raw, "loaded")
        found = []
        for i, number in enumerate(numbers):
            at = block.bind(team.thread + number * team.threads, "number")
            element = self._element(at, 1, to, corner)
            block.store(cells, i, const(0, self._raw))
            with block.when(element.inside):
                value = self._context.access().read(tensor, element.source)
                stored = to_storage(block, value, tensor.dtype)
                same = storage_dtype(tensor.dtype) == self._raw
                block.store(cells, i, stored if same else bits(block.let(stored), self._raw))
            found.append(_Loaded(element, Place(cells, i)))
        return found

    def _store(self, loaded: Sequence[_Loaded], team: Team) -> None:
        """Store what was loaded where it belongs."""
        block, count = self._block, self._shape[0] * self._shape[1]
        for element, (cells, i) in loaded:
            is_there = count % team.threads == 0 or element.number < index(count)
            with block.when(is_there):
                block.store(*element.to, block.load(cells, i))
