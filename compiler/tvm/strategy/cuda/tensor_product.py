"""Dense and batched matrix products on tensor cores, with the element-wise work behind them.

A block computes a rectangle of the result. Pieces of both factors go through shared memory, the
next ones while the current ones are multiplied; a warp adds up a part of the rectangle in
registers. At the end it passes through shared memory, so that a thread has elements side by side:
what follows the product is computed on those, and stored 16 bytes at a time where that is possible.

16-bit floats are multiplied as they are and added up in float32. float32 is multiplied as TF32 if
the target says so. Not here: products of other numbers (:mod:`.product`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from composite.compiler.tvm.codegen.access import Index, strided
from composite.compiler.tvm.codegen.block import Buffer, index, quotient, remainder
from composite.compiler.tvm.codegen.device_block import DECLARED, WARP, Grid, Place
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim, product
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.fragments import Fragments, Numbers
from composite.compiler.tvm.strategy.cuda.staged_factor import (
    Corner,
    Factor,
    StagedFactor,
    Team,
    copied_together,
)
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
        space = self.context.space
        if not all(
            copied_together(one, strided(one.tensor, space), self.context) for one in self.factors
        ):
            return _LOADED_TILES
        # Wide numbers gain nothing by rectangles that only one block of a multiprocessor has.
        return {n: one for n, one in _TILES.items() if self.numbers.bytes == 2 or n != _LARGEST}

    @property
    def factors(self) -> tuple[Factor, Factor]:
        """The product's factors."""
        node = self.node
        return Factor(node.a, not node.transpose_a), Factor(node.b, node.transpose_b)


class _Launch:
    def __init__(self, own: _Writer, tile: _Tile, work: Dim) -> None:
        numbers, context, factors = own.numbers, own.context, own.factors
        self._anchor = own.anchor
        self._numbers = numbers
        self._context = context
        self._block = device_block(context)
        self._tile = tile
        self._work = work
        self._piece = _PIECE // numbers.bytes
        self._a, self._b = (
            StagedFactor(factor, side, self._piece, context)
            for factor, side in zip(factors, (tile.rows, tile.columns), strict=True)
        )
        self._pieces = quotient(context.size(factors[0].depth) + (self._piece - 1), self._piece)
        self._epilogue = SumsEpilogue(own.stage, own.anchor, self._own_columns, context)
        held = self._a.bytes + self._b.bytes
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
        starts: Sequence[tuple[Sequence[Index], Expr]],
    ) -> Buffer:
        """Add up the products of all pieces; ``starts`` are those of the factors."""
        block, stages, tile = self._block, self._stages, self._tile
        factors = (self._a, self._b)
        first = (0, stages * self._a.elements)  # the first factor's pieces lie in front
        views = [one.view(pool) for one in factors]
        sums = held.sums(self._own_rows // 16 * self._own_columns // 8)
        warp = (
            quotient(held.warp, tile.along) * self._own_rows,
            remainder(held.warp, tile.along) * self._own_columns,
        )
        places = [
            block.bind(held.lane_place(one, is_first=one is self._a) + at + own * one.step[0], "at")
            for one, own, at in zip(factors, warp, first, strict=True)
        ]

        def begin(slot: Expr, piece: Expr) -> list[Callable[[], None]]:
            inner, ends = block.bind(piece * self._piece, "inner"), []
            for one, view, at, (batch, start) in zip(factors, views, first, starts, strict=True):
                to = Place(view, block.bind(slot * one.elements + at, "to"))
                team, corner = Team(grid.thread, tile.threads), Corner(batch, start, inner)
                ends.append(one.begin(team, to, corner))
            block.call("composite_commit_copies")
            return ends

        with block.loop(stages - 1, "early") as number:
            for end in begin(number, number):
                end()
        with block.loop(self._pieces, "piece") as piece:
            block.call(f"composite_wait_for_copies<{stages - 2}>")
            # All have what they waited for, and nobody reads what the next copies replace.
            block.barrier()
            coming = block.bind(piece + (stages - 1), "coming")
            ends = begin(block.bind(remainder(coming, stages), "slot"), coming)
            slot = block.bind(remainder(piece, stages), "slot")
            self._multiply(
                held,
                [
                    Place(view, block.bind(place + slot * one.elements, "at"))
                    for one, view, place in zip(factors, views, places, strict=True)
                ],
                sums,
            )
            for end in ends:
                end()
        block.call("composite_wait_for_copies<0>")
        return sums

    def _multiply(self, held: Fragments, pieces: Sequence[Place], sums: Buffer) -> None:
        """Add the products of a piece of each factor."""
        down, along, depth = self._own_rows // 16, self._own_columns // 8, self._numbers.depth
        a, b = held.registers(down, "a"), held.registers(along // 2, "b")
        loaded = ((self._a, pieces[0], a, down), (self._b, pieces[1], b, along // 2))
        for k in range(0, self._piece, depth):
            for staged, (view, start), to, count in loaded:
                for i in range(count):
                    at = start + (i * 16 * staged.step[0] + k * staged.step[1])
                    held.load(staged, Place(view, at), Place(to, i), is_first=staged is self._a)
            for i in range(down):
                for j in range(along):
                    held.multiply(Place(sums, i * along + j), Place(a, i), Place(b, j))
