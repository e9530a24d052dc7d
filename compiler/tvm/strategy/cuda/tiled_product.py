"""Products of float32, IEEE: a thread adds up 8 x 8 elements of a block's rectangle.

Pieces of both factors are copied into shared memory while those before them are multiplied. A lane
reads 16 bytes at a time there, along the dimension that is near in memory: four elements of the
inner dimension of a row, or four rows or columns. Sums are of fused multiply-adds in the order of
the inner dimension.

Not here: products of other numbers, and steps of loops (:mod:`.product`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.codegen.block import Buffer, const, index, quotient, remainder
from composite.compiler.tvm.codegen.device_block import DECLARED, WARP, Grid, Place
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim, product
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import multiply_add
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.made_of_sums import MadeOfSums
from composite.compiler.tvm.strategy.cuda.staged_factor import Corner, Factor, StagedFactor, Team
from composite.compiler.tvm.strategy.cuda.tiles import counts, rungs
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.strategy.indexing import unflatten

_DTYPE = "float32"
_PIECE = 16
"""Elements of the inner dimension that are in shared memory at a time, of each row or column."""
_OWN = 8
"""Rows, and columns, of which a thread has sums."""
_DOWN, _ALONG = 4, 8
"""Lanes of a warp along each side of its rectangle."""
_VECTOR = 4


class _Tile(NamedTuple):
    """The rectangle of a block, and how many warps are side by side in each direction."""

    rows: int
    columns: int

    @property
    def along(self) -> int:
        return self.columns // (_ALONG * _OWN)

    @property
    def threads(self) -> int:
        return self.rows // (_DOWN * _OWN) * self.along * WARP


_TILES = {f"{one.rows}x{one.columns}": one for one in (_Tile(64, 128), _Tile(64, 64))}


class TiledProduct:
    """Any stage whose anchor is a product of float32."""

    name = "tiled_product"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take products of float32."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, MatMul):
            return None
        node = anchor.node
        if {t.dtype for t in (anchor, node.a, node.b)} != {_DTYPE}:
            return None
        if device_block(context).threads is not None:
            return None
        factors = Factor(node.a, not node.transpose_a), Factor(node.b, node.transpose_b)
        return _Writer(stage, anchor, factors, context)


@dataclass(frozen=True)
class _Writer:
    stage: Stage
    anchor: Tensor
    factors: tuple[Factor, Factor]
    context: Context

    def write(self) -> None:
        """Write a launch for each of the rectangles."""
        for one in rungs(self.anchor, _TILES, [*_TILES], "tiled.tile", self.context):
            _Launch(self, _TILES[one.name], one.work).write()


@dataclass(frozen=True)
class _Side:
    """A factor as a thread reads it: of which rows or columns it has sums.

    Attributes:
        staged: Pieces of it in shared memory.
        lane: The thread's place among ``lanes`` along this side of its warp's rectangle.
        first: Where the warp's rectangle begins in the block's.
    """

    staged: StagedFactor
    lane: Expr
    lanes: int
    first: Expr

    def number(self, i: int | Expr) -> Expr:
        """Return the ``i``-th row or column, of the block's rectangle."""
        if self.staged.inner_near:
            return index(self.first + self.lane + i * self.lanes)
        group, within = quotient(i, _VECTOR), remainder(i, _VECTOR)
        return index(self.first + self.lane * _VECTOR + within + group * (_VECTOR * self.lanes))


class _Launch:
    def __init__(self, own: _Writer, tile: _Tile, work: Dim) -> None:
        self._anchor = own.anchor
        self._context = context = own.context
        self._block = device_block(context)
        self._tile = tile
        self._work = work
        self._staged = [
            StagedFactor(factor, side, _PIECE, context)
            for factor, side in zip(own.factors, tile, strict=True)
        ]
        self._bytes = sum(one.bytes for one in self._staged)
        most = min(4, DECLARED // self._bytes)
        self._stages = min(context.choose("tiled.stages", (2, 3, 4), most), most)
        depth = context.size(own.factors[0].depth)
        self._pieces = quotient(index(depth + (_PIECE - 1)), _PIECE)
        # Columns whose factor has the inner dimension near do not lie side by side.
        self._side_by_side = 1 if self._staged[1].inner_near else _VECTOR
        self._made = MadeOfSums(own.stage, own.anchor, context, self._side_by_side)

    def write(self) -> None:
        block, tile = self._block, self._tile
        units = counts(self._anchor, tile)
        work = product(units)
        with block.launch(self._work, 1, tile.threads) as grid:
            pool = block.shared(self._stages * self._bytes // 4, _DTYPE, "pool")
            sides = self._sides(grid)
            with block.share_out(grid.block, self._context.size(work), grid.blocks) as unit:
                *place, i, j = unflatten(self._context, unit, units)
                row = block.bind(index(i * tile.rows), "row")
                column = block.bind(index(j * tile.columns), "column")
                sums = block.registers(_OWN * _OWN, _DTYPE, "sums")
                for number in range(_OWN * _OWN):
                    block.store(sums, number, const(0, _DTYPE))
                self._add_all(grid, sides, pool, sums, [(place, row), (place, column)])
                self._store(sides, sums, [*place, row, column])
                block.barrier()

    def _sides(self, grid: Grid) -> list[_Side]:
        block = self._block
        warp, lane = quotient(grid.thread, WARP), remainder(grid.thread, WARP)
        warps = quotient(warp, self._tile.along), remainder(warp, self._tile.along)
        lanes = quotient(lane, _ALONG), remainder(lane, _ALONG)
        return [
            _Side(staged, block.bind(own, "lane"), count, block.bind(at * count * _OWN, "first"))
            for staged, own, count, at in zip(
                self._staged, lanes, (_DOWN, _ALONG), warps, strict=True
            )
        ]

    def _add_all(
        self,
        grid: Grid,
        sides: Sequence[_Side],
        pool: Buffer,
        sums: Buffer,
        starts: Sequence[tuple[Sequence[Index], Expr]],
    ) -> None:
        """Add up the products of all pieces; ``starts`` are those of the factors."""
        block, stages = self._block, self._stages
        team = Team(grid.thread, self._tile.threads)
        in_front = (0, stages * self._staged[0].elements)

        def slots(piece: Expr) -> list[Place]:
            slot = block.bind(remainder(piece, stages), "slot")
            return [
                Place(pool, block.bind(slot * one.elements + at, "at"))
                for one, at in zip(self._staged, in_front, strict=True)
            ]

        def begin(piece: Expr) -> list[Callable[[], None]]:
            inner = block.bind(piece * _PIECE, "inner")
            ends = [
                one.begin(team, to, Corner(*start, inner))
                for one, to, start in zip(self._staged, slots(piece), starts, strict=True)
            ]
            block.call("composite_commit_copies")
            return ends

        with block.loop(stages - 1, "early") as number:
            for end in begin(number):
                end()
        with block.loop(self._pieces, "piece") as piece:
            block.call(f"composite_wait_for_copies<{stages - 2}>")
            # All have what they waited for, and nobody reads what the next copies replace.
            block.barrier()
            ends = begin(block.bind(piece + (stages - 1), "coming"))
            self._add(sides, slots(piece), sums)
            for end in ends:
                end()
        block.call("composite_wait_for_copies<0>")

    def _add(self, sides: Sequence[_Side], slots: Sequence[Place], sums: Buffer) -> None:
        """Add the products of a piece."""
        block = self._block
        with block.loop(_PIECE // _VECTOR, "k") as group:
            first = block.bind(group * _VECTOR, "first")
            rows, columns = (
                self._loads(side, slot, first) for side, slot in zip(sides, slots, strict=True)
            )
            for k in range(_VECTOR):
                a, b = rows(k), columns(k)
                for i in range(_OWN * _OWN):
                    total = multiply_add(block, a[i // _OWN], b[i % _OWN], block.load(sums, i))
                    block.store(sums, i, total)

    def _loads(self, side: _Side, slot: Place, first: Expr) -> Callable[[int], list[Expr]]:
        """Return what loads the elements of one of four numbers of the inner dimension."""
        block, step = self._block, side.staged.step

        def load(i: int, k: int) -> Buffer:
            cells = block.registers(_VECTOR, _DTYPE, "cells")
            at = side.number(i) * step[0] + (first + k) * step[1]
            block.copy(cells, 0, slot.buffer, block.bind(slot.at + at, "at"), _VECTOR)
            return cells

        if side.staged.inner_near:
            held = [load(i, 0) for i in range(_OWN)]
            return lambda k: [block.load(cells, k) for cells in held]

        def now(k: int) -> list[Expr]:
            cells = [load(i, k) for i in range(0, _OWN, _VECTOR)]
            return [block.load(cells[i // _VECTOR], i % _VECTOR) for i in range(_OWN)]

        return now

    def _store(self, sides: Sequence[_Side], sums: Buffer, at: Sequence[Index]) -> None:
        """Compute and store what is made of the sums, a row at a time."""
        block, width = self._block, self._made.width
        *batch, first, left = at
        rows, columns = (index(self._context.size(d)) for d in self._anchor.shape[-2:])
        cells = block.registers(_OWN, _DTYPE, "row")
        with block.loop(_OWN, "own") as i:
            for number in range(_OWN):
                with block.when(tirx.EQ(i, index(number))):
                    for j in range(_OWN):
                        block.store(cells, j, block.load(sums, number * _OWN + j))
            row = block.bind(first + sides[0].number(i), "row")
            for j in range(0, _OWN, width):
                column = block.bind(left + sides[1].number(j), "column")
                with block.when(tirx.And(row < rows, column < columns)):
                    values = [block.load(cells, j + n) for n in range(width)]
                    self._made.store([*batch, row, column], values)
