"""Dense and batched matrix products on tensor cores, with the element-wise work behind them.

A block computes a rectangle of the result. Pieces of both factors go through shared memory, the
next ones while the current ones are multiplied; a warp adds up a part of the rectangle in
registers. At the end it passes through shared memory, so that a thread has elements side by side:
what follows the product is computed on those, and stored 16 bytes at a time where that is possible.

16-bit floats are multiplied as they are and added up in float32. float32 is multiplied as TF32 if
the target says so. Not here: products of other numbers (:mod:`.product`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from composite.compiler.tvm.codegen.device_block import DECLARED, WARP, Grid, Place
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim, product
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.fragments import Fragments, Numbers
from composite.compiler.tvm.strategy.cuda.staged_factor import (
    Team,
    copied_together,
    factors_of,
)
from composite.compiler.tvm.strategy.cuda.staged_pieces import StagedPieces, Start
from composite.compiler.tvm.strategy.cuda.staged_sums import SumsEpilogue
from composite.compiler.tvm.strategy.cuda.tiles import (
    Ladder,
    counts,
    default_tile,
    how_many,
    rungs,
)
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.tir.block import Buffer, index, quotient, remainder

_PIECE = 64
"""Bytes of the inner dimension that are in shared memory at a time, of each row or column."""
_MOST_STAGES = 4
_MOST_SHARED = 96 << 10
"""Bytes of shared memory that a block of any GPU may be given."""


class _Tile(NamedTuple):
    """The rectangle of a block, and how many warps are side by side in each direction."""

    rows: int
    columns: int
    down: int
    along: int

    @property
    def threads(self) -> int:
        return self.down * self.along * WARP


_LARGEST = "128x256"
_TILES = {
    # A warp of 64 x 64 reads least of shared memory for what it multiplies.
    _LARGEST: _Tile(128, 256, 2, 4),
    "128x128": _Tile(128, 128, 2, 2),
    "128x64": _Tile(128, 64, 2, 2),
    "64x64": _Tile(64, 64, 2, 2),
}
_SOME = ("128x128", "64x64")
"""Those among which a call decides."""
_MANY_WARPS = _Tile(128, 128, 2, 4)
_LOADED_TILES = {"128x128": _MANY_WARPS, "64x64": _TILES["64x64"]}
"""For factors that are not copied but go through the threads' registers."""
_LOOP_TILES = {"128x128": _MANY_WARPS, "32x64": _Tile(32, 64, 2, 4)}
"""For a step of a loop, which often has few rows, by as many threads as its launch has."""


class TensorProduct:
    """Any stage whose anchor is a product of numbers that tensor cores multiply."""

    name = "tensor_product"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take products of 16-bit floats, and of float32 where TF32 is allowed."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, MatMul):
            return None
        numbers = Numbers.of(anchor, context, anchor.node.a, anchor.node.b)
        if numbers is None:
            return None
        return _Writer(stage, anchor, anchor.node, numbers, context)


@dataclass(frozen=True)
class _Writer:
    stage: Stage
    anchor: Tensor
    node: MatMul
    numbers: Numbers
    context: Context

    def write(self) -> None:
        """Write a launch for each of the rectangles, or a part of the launch around it."""
        for tile, work in self._rectangles():
            _Launch(self, tile, work).write()

    def _rectangles(self) -> list[tuple[_Tile, Dim]]:
        """Return the rectangles of each launch, and how many of them it has."""
        anchor, context, threads = self.anchor, self.context, device_block(self.context).threads
        if threads is not None:
            fitting = {name: tile for name, tile in _LOOP_TILES.items() if tile.threads == threads}
            name = context.choose("tensor.tile", [*fitting], default_tile(anchor, fitting))
            return [(fitting[name], how_many(anchor, fitting[name]))]
        tiles = self._tiles()
        ladder = Ladder(tiles, _SOME, "tensor.tile")
        return [(tiles[one.name], one.work) for one in rungs(anchor, ladder, context)]

    def _tiles(self) -> Mapping[str, _Tile]:
        if not all(copied_together(one, self.context) for one in factors_of(self.node)):
            return _LOADED_TILES
        # Wide numbers gain nothing by rectangles that only one block of a multiprocessor has.
        return {n: one for n, one in _TILES.items() if self.numbers.bytes == 2 or n != _LARGEST}


class _Launch:
    def __init__(self, own: _Writer, tile: _Tile, work: Dim) -> None:
        numbers, context = own.numbers, own.context
        self._anchor = own.anchor
        self._numbers = numbers
        self._context = context
        self._block = device_block(context)
        self._tile = tile
        self._work = work
        self._piece = _PIECE // numbers.bytes
        factors, sides = factors_of(own.node), (tile.rows, tile.columns)
        self._staged = StagedPieces(factors, sides, self._piece, context)
        self._epilogue = SumsEpilogue(own.stage, own.anchor, self._own_columns, context)
        held = self._staged.bytes
        # A launch of its own may have more than a function declares.
        room = _MOST_SHARED if self._block.threads is None else DECLARED
        most = min(_MOST_STAGES, room // held)
        default = most if numbers.bytes == 2 else 2
        self._stages = min(context.choose("tensor.stages", (2, 3, 4), default), most)
        self._room = max(self._stages * held, self._epilogue.bytes(tile.threads // WARP))

    def write(self) -> None:
        block, tile = self._block, self._tile
        units = counts(self._anchor, tile)
        work = product(units)
        with block.launch(self._work, 1, tile.threads) as grid:
            is_declared = self._room <= DECLARED
            pool = block.shared(self._room, "uint8") if is_declared else block.pool(self._room)
            held = Fragments(block, self._numbers, grid.thread)
            with block.share_out(grid.block, self._context.size(work), grid.blocks) as unit:
                *place, i, j = unflatten(self._context, unit, units)
                first = block.bind(index(i * tile.rows), "row")
                left = block.bind(index(j * tile.columns), "column")
                sums = self._sums(grid, held, pool, [(place, first), (place, left)])
                block.barrier()
                warp = (quotient(held.warp, tile.along), remainder(held.warp, tile.along))
                row = block.bind(first + warp[0] * self._own_rows, "row")
                column = block.bind(left + warp[1] * self._own_columns, "column")
                self._epilogue.write(held, pool, sums, [*place, row, column])
                block.barrier()

    @property
    def _own_rows(self) -> int:
        return self._tile.rows // self._tile.down

    @property
    def _own_columns(self) -> int:
        return self._tile.columns // self._tile.along

    def _sums(
        self,
        grid: Grid,
        held: Fragments,
        pool: Buffer,
        starts: Sequence[Start],
    ) -> Buffer:
        """Add up the products of all pieces; ``starts`` are those of the factors."""
        block, tile, staged = self._block, self._tile, self._staged
        sums = held.sums(self._own_rows // 16 * self._own_columns // 8)
        warp = (
            quotient(held.warp, tile.along) * self._own_rows,
            remainder(held.warp, tile.along) * self._own_columns,
        )
        lanes = [
            block.bind(held.lane_place(one, is_first=number == 0) + own * one.step[0], "lane")
            for number, (one, own) in enumerate(zip(staged.factors, warp, strict=True))
        ]

        def multiply(places: Sequence[Place]) -> None:
            own = [
                Place(view, block.bind(at + lane, "at"))
                for (view, at), lane in zip(places, lanes, strict=True)
            ]
            self._multiply(held, own, sums)

        staged.go_through(Team(grid.thread, tile.threads), pool, self._stages, starts, multiply)
        return sums

    def _multiply(self, held: Fragments, pieces: Sequence[Place], sums: Buffer) -> None:
        """Add the products of a piece of each factor."""
        down, along, depth = self._own_rows // 16, self._own_columns // 8, self._numbers.depth
        a, b = held.registers(down, "a"), held.registers(along // 2, "b")
        first, second = self._staged.factors
        loaded = ((first, pieces[0], a, down), (second, pieces[1], b, along // 2))
        for k in range(0, self._piece, depth):
            for staged, (view, start), to, count in loaded:
                for i in range(count):
                    at = start + (i * 16 * staged.step[0] + k * staged.step[1])
                    held.load(staged, Place(view, at), Place(to, i), is_first=staged is first)
            for i in range(down):
                for j in range(along):
                    held.multiply(Place(sums, i * along + j), Place(a, i), Place(b, j))
