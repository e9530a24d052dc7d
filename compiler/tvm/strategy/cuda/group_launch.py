"""A launch whose blocks have a rectangle of a product each, which teams of four warps multiply.

What the factors are and how they are multiplied is the launch's own; the sums lie as those of
:mod:`.tensor_product`, and what follows the product is done like there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from composite.compiler.tvm.codegen.device_block import WARP, Grid
from composite.compiler.tvm.ir.dims import Dim, product
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.fragments import Fragments, Numbers
from composite.compiler.tvm.strategy.cuda.staged_factor import Factor
from composite.compiler.tvm.strategy.cuda.staged_pieces import Start
from composite.compiler.tvm.strategy.cuda.staged_sums import SumsEpilogue
from composite.compiler.tvm.strategy.cuda.swizzled_factor import GROUP_ROWS
from composite.compiler.tvm.strategy.cuda.tiles import Ladder, counts, rungs
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.tir.block import Buffer, index, quotient

_GROUP = 4 * WARP
"""Threads that multiply together."""
_MOST_SHARED = 192 << 10
"""Bytes of shared memory that pieces of the factors take, at most."""


class GroupTile(NamedTuple):
    """The rectangle of a block: ``first`` by ``second`` elements of what its teams multiply.

    It is of the result, or, if it is ``turned``, of the result's transpose.
    """

    first: int
    second: int
    turned: bool = False

    @property
    def rows(self) -> int:
        """Of the result."""
        return self.second if self.turned else self.first

    @property
    def columns(self) -> int:
        """Of the result."""
        return self.first if self.turned else self.second

    @property
    def threads(self) -> int:
        """Of a block: four warps for each 64 of the first side."""
        return self.first // GROUP_ROWS * _GROUP


_TILES = {f"{one.first}x{one.second}": one for one in (
    GroupTile(128, 256), GroupTile(128, 128), GroupTile(128, 64), GroupTile(64, 128),
    GroupTile(64, 64),
)}  # fmt: skip
_SOME = ("128x256", "128x128", "64x64")
"""Those among which a call decides."""
_ENOUGH = 72
"""More than half of a large GPU's multiprocessors: half the rectangle would take two turns."""


@dataclass(frozen=True)
class GroupProduct:
    """A product: the stage that it anchors, its factors, and the numbers that are multiplied."""

    stage: Stage
    anchor: Tensor
    factors: tuple[Factor, Factor]
    numbers: Numbers
    context: Context


@dataclass(frozen=True)
class Rectangles:
    """What a launch has: the rectangles and how many of them, and pieces in shared memory.

    Attributes:
        tile: The rectangle.
        work: How many of them there are.
        stages: Pieces of each factor.
        bytes: Of all of these.
    """

    tile: GroupTile
    work: Dim
    stages: int
    bytes: int


def rectangles(
    own: GroupProduct, held: Callable[[GroupTile], int], *, turned: bool = False
) -> list[Rectangles]:
    """Return those of a product's launches; ``held`` tells the bytes of a piece of both factors."""
    tiles = {name: tile._replace(turned=turned) for name, tile in _TILES.items()}
    found = []
    ladder = Ladder(tiles, _SOME, "warps.tile", _ENOUGH)
    for name, work in rungs(own.anchor, ladder, own.context):
        tile = tiles[name]
        size = held(tile)
        # Where there are few blocks, each has a multiprocessor of its own.
        is_last = name == _SOME[-1] and not isinstance(work, int)
        stages = 8 if is_last and 8 * size <= _MOST_SHARED else 4
        found.append(Rectangles(tile, work, stages, stages * size))
    return found


class GroupLaunch(ABC):
    """A launch under construction."""

    def __init__(self, own: GroupProduct, given: Rectangles) -> None:
        self.context = own.context
        self.block = device_block(own.context)
        self.tile = tile = given.tile
        self.stages = given.stages
        self._own = own
        self._work = given.work
        self._epilogue = SumsEpilogue(
            own.stage, own.anchor, tile.second, own.context, turned=tile.turned
        )
        self._room = max(given.bytes, self._epilogue.bytes(tile.threads // WARP))

    @abstractmethod
    def _open(self, grid: Grid, held: Fragments, pool: Buffer) -> None:
        """Write what comes before all rectangles of a block."""

    @abstractmethod
    def _sums(self, held: Fragments, starts: Sequence[Start]) -> Buffer:
        """Add up the products of all pieces; ``starts`` are those of the factors."""

    def write(self) -> None:
        """Write it."""
        block, tile = self.block, self.tile
        units = counts(self._own.anchor, tile)
        work = product(units)
        with block.launch(self._work, 1, tile.threads) as grid:
            pool = block.pool(self._room)
            held = Fragments(block, self._own.numbers, grid.thread)
            self._open(grid, held, pool)
            with block.share_out(grid.block, self.context.size(work), grid.blocks) as unit:
                *place, i, j = unflatten(self.context, unit, units)
                row = block.bind(index(i * tile.rows), "row")
                column = block.bind(index(j * tile.columns), "column")
                sums = self._sums(held, [(place, row), (place, column)])
                block.barrier()
                at = [row, column]
                own = 1 if tile.turned else 0  # the dimension of which a warp has 16
                at[own] = block.bind(at[own] + held.warp * 16, "own")
                self._epilogue.write(held, pool, sums, [*place, *at])
                block.barrier()

    def pieces(self, elements: int) -> Expr:
        """Return how many pieces of so many elements the inner dimension has."""
        depth = self.context.size(self._own.factors[0].depth)
        return quotient(index(depth + (elements - 1)), elements)
