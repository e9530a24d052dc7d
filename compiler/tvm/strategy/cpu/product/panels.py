"""Who packs the panels that a task multiplies with: the task itself, or once for all calls.

The factor of a product that never changes is packed by a function beside the kernel, into the very
panels that a task would have made for itself: for each of its matrices, each group of vectors and
each piece of k. Tasks then only look up where theirs begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Space, Storage
from composite.compiler.tvm.codegen.argument import declare_argument
from composite.compiler.tvm.codegen.block import (
    Block,
    ceil_quotient,
    index,
    maximum,
    minimum,
    quotient,
    remainder,
)
from composite.compiler.tvm.ir.constants import Packed
from composite.compiler.tvm.ir.dims import Shape, product
from composite.compiler.tvm.ir.graph import Expr, Parameter, Tensor
from composite.compiler.tvm.strategy.base import Context, tasks, unflatten
from composite.compiler.tvm.strategy.cpu.product.blocking import Blocking, covers
from composite.compiler.tvm.strategy.cpu.product.pack import Packer, Panels
from composite.compiler.tvm.strategy.cpu.product.tile import Tile

_ROWS = 8
"""Rows of ``[K, count]`` that a task packs: a few pages of each."""


class Supply(Protocol):
    """The panels of one task."""

    def piece(self, number: Expr | int, k: Expr | int, depth: Expr | int) -> Panels:
        """Return the panels of piece ``number``, which is steps ``[k, k + depth)``."""


@dataclass(frozen=True)
class Fresh:
    """Packed by the task, one piece over the other.

    Attributes:
        packer: Knows the factor.
        room: The task's workspace.
        start: First column of the task's vectors.
        vectors: How many of them, whole panels.
    """

    packer: Packer
    room: Panels
    start: Expr
    vectors: Expr | int

    def piece(self, number: Expr | int, k: Expr | int, depth: Expr | int) -> Panels:  # noqa: ARG002
        """Pack them."""
        self.packer.write(self.room, self.start, self.vectors, k, depth)
        return self.room


@dataclass(frozen=True)
class Kept:
    """Packed before the first call.

    Attributes:
        panels: The shape of a task's panels, in the whole of what was packed.
        piece_size: Elements of one piece.
        base: Where the task's first piece begins.
    """

    panels: Panels
    piece_size: int
    base: Expr

    def piece(self, number: Expr | int, k: Expr | int, depth: Expr | int) -> Panels:  # noqa: ARG002
        """Tell where they begin."""
        return replace(self.panels, base=index(self.base + number * self.piece_size))


class _Steps(NamedTuple):
    """Some steps of a piece of a group of vectors: ``most`` of them from ``first`` on."""

    group: Expr
    piece: Expr
    first: Expr
    most: int


class Keeper:
    """The packed form of a constant factor, as an argument of the kernel.

    Args:
        context: The kernel.
        factor: The factor of known shape, and whether its matrices are ``[K, count]``.
        dtype: The dtype that is computed in.
        tile: The register tile.
        blocking: How the product is cut; its depth and pieces are known.
    """

    def __init__(
        self,
        context: Context,
        factor: tuple[Tensor, bool],
        dtype: str,
        tile: Tile,
        blocking: Blocking,
    ) -> None:
        self._context = context
        self._tensor, self._k_first = factor
        self._dtype = dtype
        self._tile = tile
        self._lanes = context.lanes(dtype)
        depth, count = self._tensor.shape[-2:] if self._k_first else self._tensor.shape[:-3:-1]
        self._depth, self._count = _known(depth), _known(count)
        self._step, self._pieces = _known(blocking.depth), _known(blocking.k_blocks)
        self._width = blocking.group * self._lanes
        self._group = blocking.group
        self._groups = covers(self._count, self._width)
        self._matrices: Shape = self._tensor.shape[:-2]
        self._piece_size = (self._step + 1) * self._width
        self._buffer = self._declare()

    def of_task(self, batch: Sequence[Index], group: Expr) -> Kept:
        """Return the panels of a group of vectors of the matrix at these batch indices."""
        own = batch[len(batch) - len(self._matrices) :]
        matrix: Expr | int = 0
        for dim, i in zip(self._matrices, own, strict=True):
            matrix = matrix * _known(dim) + (0 if dim == 1 else i)
        number = (matrix * self._groups + group) * (self._pieces * self._piece_size)
        base = self._context.block.bind(index(number), "kept")
        return Kept(self._panels(self._buffer), self._piece_size, base)

    def _panels(self, buffer: Any) -> Panels:
        return Panels(buffer, self._step + 1, self._tile.vectors, self._lanes)

    @property
    def _elements(self) -> int:
        matrices = _known(product(self._matrices))
        return matrices * self._groups * self._pieces * self._piece_size

    def _declare(self) -> Any:
        """Declare the argument, and how it is made."""
        context = self._context
        source = context.constants.source(self._tensor)
        if source is None:
            raise TypeError("only what is made of one constant can be packed once")
        packed = Packed(source, self._elements, self._dtype)
        number = len(context.constants.packed)
        parameter, flat = declare_argument(
            context.block, context.space, _vector(packed), f"packed{number}"
        )
        context.constants.add(packed, parameter, lambda: self._function(packed))
        return flat

    def _function(self, packed: Packed) -> Any:
        """Return the TIR function that packs the constant."""
        plan, block, space = self._context.plan, Block(), Space({}, {})
        constant = plan.function.parameters[packed.source]
        given, flat = declare_argument(block, space, constant, "constant")
        space.parameters[packed.source] = Storage(flat, constant.dtype)
        result, room = declare_argument(block, space, _vector(packed), "packed")
        self._pack_all(Context(block, space, plan, self._context.target), room)
        return tirx.PrimFunc([given, result], block.finish())

    def _pack_all(self, context: Context, room: Any) -> None:
        """Write the packing of all pieces.

        A task takes a group of vectors, which are rows of the factor, or of ``[K, count]`` a few
        rows: to their ends, so that the hardware fetches them ahead.
        """
        block = context.block
        matrices = _known(product(self._matrices))
        groups, steps = (self._groups, _ROWS) if self._k_first else (1, self._step)
        across, along = self._groups // groups, covers(self._step, steps)

        def body(task: Expr) -> None:
            first_group = block.bind(remainder(task, across), "group")
            rest = block.bind(quotient(task, across), "rest")
            first = block.bind(remainder(rest, along) * steps, "first")
            rest = block.bind(quotient(rest, along), "rest")
            piece = block.bind(remainder(rest, self._pieces), "piece")
            matrix = block.bind(quotient(rest, self._pieces), "matrix")
            batch = unflatten(context, matrix, self._matrices) if self._matrices else []
            factor = Packer(context, self._tensor, self._k_first, batch, self._count)
            with block.loop(groups, "group") as g:
                group = first_group + g
                number = (matrix * self._groups + group) * self._pieces + piece
                base = number * self._piece_size + first * (self._tile.vectors * self._lanes)
                panels = replace(self._panels(room), base=block.bind(index(base), "base"))
                self._pack(block, factor, _Steps(group, piece, first, steps), panels)

        tasks(context, matrices * self._pieces * along * across, self._elements, body)

    def _pack(self, block: Block, factor: Packer, steps: _Steps, panels: Panels) -> None:
        start = block.bind(index(steps.group * self._width), "start")
        left = ceil_quotient(self._count - start, self._lanes)
        used = ceil_quotient(minimum(self._group, left), self._tile.vectors)
        vectors = block.bind(used * self._tile.vectors, "vectors")
        k = block.bind(index(steps.piece * self._step + steps.first), "k")
        end = minimum((steps.piece + 1) * self._step, self._depth)
        depth = block.bind(index(maximum(0, minimum(steps.most, end - k))), "depth")
        factor.write(panels, start, vectors, k, depth)


class KeptInCall(Keeper):
    """The packed form of a factor that is the same in all trips of a loop, made before the loop."""

    def _declare(self) -> Any:
        trips = self._context.trips
        if trips is None:
            raise TypeError("packed before the loop, and there is none")
        with trips.ahead() as context:
            room = context.block.workspace(self._elements, self._dtype, "packed")
            self._pack_all(context, room)
        return room


def keep(
    context: Context,
    factor: tuple[Tensor, bool],
    dtype: str,
    tile: Tile,
    blocking: Blocking,
) -> Keeper:
    """Return who has the packed form of a factor that stays: see :class:`Keeper`."""
    is_constant = context.constants.source(factor[0]) is not None
    return (Keeper if is_constant else KeptInCall)(context, factor, dtype, tile, blocking)


def _vector(packed: Packed) -> Tensor:
    return Tensor((packed.elements,), packed.dtype, Parameter(-1))


def _known(size: object) -> int:
    if not isinstance(size, int):
        raise TypeError("a constant's shape is known")
    return size
