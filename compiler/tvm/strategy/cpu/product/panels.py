"""Who packs the panels that a task multiplies with: the task itself, or once for many tasks.

A constant factor is packed before the first call of the kernel, by a function beside it; a factor
that is the same in all trips of a loop is packed before the loop. Either way it is packed into the
panels that the tasks would have made: for each of its matrices, each group of vectors and each
piece of k. A task then only looks up where its own begin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Space, Storage
from composite.compiler.tvm.codegen.argument import declare_argument
from composite.compiler.tvm.ir.constants import Packed
from composite.compiler.tvm.ir.dims import ceildiv
from composite.compiler.tvm.ir.tensor import Expr, Parameter, Tensor
from composite.compiler.tvm.strategy.context import Context, LoopPacking, Packing
from composite.compiler.tvm.strategy.cpu.product.blocking import Blocking
from composite.compiler.tvm.strategy.cpu.product.pack import Packer, Panels, write_starts
from composite.compiler.tvm.strategy.cpu.product.steps import Step
from composite.compiler.tvm.strategy.cpu.product.tile import Tile
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import (
    Block,
    Buffer,
    ceil_quotient,
    index,
    maximum,
    minimum,
    quotient,
    remainder,
)

_ROWS = 8
"""Rows of ``[K, count]`` that a task packs: a few pages of each."""


class Supply(Protocol):
    """The panels of one task."""

    def piece(self, number: Expr | int, k: Expr | int, depth: Expr | int) -> Panels:
        """Return the panels of piece ``number``, which is steps ``[k, k + depth)``."""


@dataclass(frozen=True)
class PackedByTask:
    """Panels that the task packs, each piece over the one before.

    Attributes:
        block: What is written into.
        packer: Knows the factor.
        step: What is multiplied at a step of k.
        room: The task's workspace.
        start: First column of the task's vectors.
        vectors: How many of them, whole panels.
    """

    block: Block
    packer: Packer
    step: Step
    room: Panels
    start: Expr
    vectors: Expr | int

    def piece(self, number: Expr | int, k: Expr | int, depth: Expr | int) -> Panels:  # noqa: ARG002
        """Pack them."""
        self.packer.write(self.room, self.start, self.vectors, k, depth)
        write_starts(self.block, self.step, self.room, self.vectors, depth)
        return self.room


@dataclass(frozen=True)
class PackedOnce:
    """Panels that were packed before the task.

    Attributes:
        panels: The shape of a task's panels, in the whole of what was packed.
        piece_size: Elements of one piece.
        base: Where the task's first piece begins.
    """

    panels: Panels
    piece_size: int
    base: Expr

    def piece(self, number: Expr | int, k: Expr | int, depth: Expr | int) -> Panels:  # noqa: ARG002
        """Return where they begin."""
        return replace(self.panels, base=index(self.base + number * self.piece_size))


class Layout(Protocol):
    """How a constant, or what stays the same in a loop, is packed once."""

    @property
    def elements(self) -> int:
        """Elements of the whole packed form."""

    @property
    def dtype(self) -> str:
        """Their dtype."""

    def write_packing(self, context: Context, room: Buffer) -> None:
        """Write the packing of all of it."""


class _Steps(NamedTuple):
    """Some steps of a piece of a group of vectors: ``most`` of them from ``first`` on."""

    group: Expr
    piece: Expr
    first: Expr
    most: int


class _Layout:
    """How a factor is packed once.

    Args:
        shape: The factor's shape.
        factor: The factor, and whether its matrices are ``[K, count]``.
        dtype: The dtype that is computed in.
        lanes: Elements in a vector.
        tile: The register tile.
        blocking: How the product is cut; its depth and pieces are known.
        step: What is multiplied at a step of k.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - a factor and how it is cut
        self,
        shape: tuple[int, ...],
        factor: tuple[Tensor, bool],
        dtype: str,
        lanes: int,
        tile: Tile,
        blocking: Blocking,
        step: Step,
    ) -> None:
        self._factor, self._kind = factor, step
        self._k_first = factor[1]
        self._dtype = dtype
        self._tile = tile
        self._lanes = lanes
        depth, self._count = shape[-2:] if self._k_first else shape[:-3:-1]
        self._depth = int(step.count(depth))
        self._step, self._pieces = int(blocking.depth), int(blocking.k_blocks)
        self._width = blocking.group * lanes
        self._group = blocking.group
        self._groups = ceildiv(self._count, self._width)
        self._matrices = shape[:-2]
        self.piece_size = (self._step + 1) * self._width

    @property
    def elements(self) -> int:
        """Elements of the whole packed form."""
        return math.prod(self._matrices) * self._groups * self._pieces * self.piece_size

    @property
    def dtype(self) -> str:
        """The dtype that is computed in."""
        return self._dtype

    def panels(self, buffer: Buffer) -> Panels:
        """Return the panels of one piece of one group, at the beginning of a buffer."""
        return Panels(buffer, self._step + 1, self._tile.vectors, self._lanes)

    def first_place(self, batch: Sequence[Index], group: Expr) -> Expr:
        """Return where a group of vectors of the matrix at these batch indices begins."""
        own = batch[len(batch) - len(self._matrices) :]
        matrix: Expr | int = 0
        for dim, i in zip(self._matrices, own, strict=True):
            matrix = matrix * dim + (0 if dim == 1 else i)
        return (matrix * self._groups + group) * (self._pieces * self.piece_size)

    def write_packing(self, context: Context, room: Buffer) -> None:
        """Write the packing of all pieces.

        A task takes a group of vectors, which are rows of the factor, or of ``[K, count]`` a few
        rows: to their ends, so that the hardware fetches them ahead.
        """
        block = context.block
        matrices = math.prod(self._matrices)
        groups, steps = (self._groups, _ROWS) if self._k_first else (1, self._step)
        across, along = self._groups // groups, ceildiv(self._step, steps)

        def body(task: Expr) -> None:
            first_group = block.bind(remainder(task, across), "group")
            rest = block.bind(quotient(task, across), "rest")
            first = block.bind(remainder(rest, along) * steps, "first")
            rest = block.bind(quotient(rest, along), "rest")
            piece = block.bind(remainder(rest, self._pieces), "piece")
            matrix = block.bind(quotient(rest, self._pieces), "matrix")
            batch = unflatten(context, matrix, self._matrices) if self._matrices else []
            factor = Packer(context, *self._factor, batch, self._count, self._kind)
            with block.loop(groups, "group") as g:
                group = first_group + g
                number = (matrix * self._groups + group) * self._pieces + piece
                base = number * self.piece_size + first * (self._tile.vectors * self._lanes)
                panels = replace(self.panels(room), base=block.bind(index(base), "base"))
                self._pack(block, factor, _Steps(group, piece, first, steps), panels)

        tasks(context, matrices * self._pieces * along * across, self.elements, body)
        if self._kind.low:
            self._write_starts(context, room)

    def _write_starts(self, context: Context, room: Buffer) -> None:
        """Write what sums start with, for each piece of each group."""
        block = context.block
        pieces = math.prod(self._matrices) * self._groups * self._pieces

        def body(task: Expr) -> None:
            piece = block.bind(remainder(task, self._pieces), "piece")
            group = block.bind(remainder(quotient(task, self._pieces), self._groups), "group")
            base = block.bind(index(task * self.piece_size), "base")
            vectors = self._vectors(block, block.bind(index(group * self._width), "start"))
            left = minimum(self._step, self._depth - piece * self._step)
            panels = replace(self.panels(room), base=base)
            write_starts(block, self._kind, panels, vectors, block.bind(index(left), "depth"))

        tasks(context, pieces, self.elements, body)

    def _pack(self, block: Block, factor: Packer, steps: _Steps, panels: Panels) -> None:
        start = block.bind(index(steps.group * self._width), "start")
        vectors = self._vectors(block, start)
        k = block.bind(index(steps.piece * self._step + steps.first), "k")
        end = minimum((steps.piece + 1) * self._step, self._depth)
        depth = block.bind(index(maximum(0, minimum(steps.most, end - k))), "depth")
        factor.write(panels, start, vectors, k, depth)

    def _vectors(self, block: Block, start: Expr) -> Expr:
        """Return how many vectors the group that begins at a column has: whole panels."""
        left = ceil_quotient(self._count - start, self._lanes)
        used = ceil_quotient(minimum(self._group, left), self._tile.vectors)
        return block.bind(used * self._tile.vectors, "vectors")


class PackedFactor:
    """A factor in a buffer, packed once."""

    def __init__(self, layout: _Layout, buffer: Buffer, context: Context) -> None:
        self._layout = layout
        self._buffer = buffer
        self._context = context

    def of_task(self, batch: Sequence[Index], group: Expr) -> PackedOnce:
        """Return the panels of a group of vectors of the matrix at these batch indices."""
        place = index(self._layout.first_place(batch, group))
        base = self._context.block.bind(place, "kept")
        return PackedOnce(self._layout.panels(self._buffer), self._layout.piece_size, base)


def pack_once(  # noqa: PLR0913, PLR0917 - a factor and how it is cut
    context: Context,
    packing: Packing,
    factor: tuple[Tensor, bool],
    dtype: str,
    tile: Tile,
    blocking: Blocking,
    step: Step,
) -> PackedFactor:
    """Return the packed form of a factor, and have it packed in time."""
    lanes = context.lanes(dtype)
    layout = _Layout(packing.shape, factor, dtype, lanes, tile, blocking, step)
    return PackedFactor(layout, packed_room(context, layout, packing), context)


def packed_room(context: Context, layout: Layout, packing: Packing) -> Buffer:
    """Return the buffer that something is packed into in time: before the loop, or any call."""
    if isinstance(packing, LoopPacking):
        with packing.trips.ahead() as around:
            room = around.block.workspace(layout.elements, layout.dtype, "packed")
            layout.write_packing(around, room)
        return room
    packed = Packed(packing.source, layout.elements, layout.dtype)
    number = len(context.constants.packed)
    parameter, flat = declare_argument(
        context.block, context.space, _vector(packed), f"packed{number}"
    )
    function = lambda: _pack_function(layout, packed, context)  # noqa: E731
    context.constants.add(packed, parameter, function)
    return flat


def _pack_function(layout: Layout, packed: Packed, context: Context) -> Any:
    """Return the TIR function that packs a constant."""
    plan, space = context.plan, Space({}, {})
    block = Block(context.block.stand_ins)
    constant = plan.function.parameters[packed.source]
    given, flat = declare_argument(block, space, constant, "constant")
    space.parameters[packed.source] = Storage(flat, constant.dtype)
    result, room = declare_argument(block, space, _vector(packed), "packed")
    own = Context(block, space, plan, context.target, context.strategies)
    layout.write_packing(own, room)
    return tirx.PrimFunc([given, result], block.finish())


def _vector(packed: Packed) -> Tensor:
    return Tensor((packed.elements,), packed.dtype, Parameter(-1))
