"""Products of float32, IEEE: a thread adds up 8 x 8, or 4 x 4, elements of a block's rectangle.

Pieces of both factors are copied into shared memory while those before them are multiplied. A lane
reads 16 bytes at a time there, along the dimension that is near in memory: four elements of the
inner dimension of a row, or four rows or columns. Sums are of fused multiply-adds in the order of
the inner dimension. Of small rectangles, which small results and those of few rows have, each warp
adds up a slice of each piece; the sums of the slices are then added up in their order.

Not here: products of other numbers, and steps of loops (:mod:`.product`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.codegen.device_block import DECLARED, WARP, Grid, Place
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim, product
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import multiply_add
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.made_of_sums import MadeOfSums
from composite.compiler.tvm.strategy.cuda.staged_factor import StagedFactor, Team, factors_of
from composite.compiler.tvm.strategy.cuda.staged_pieces import StagedPieces
from composite.compiler.tvm.strategy.cuda.tiles import Ladder, counts, rungs
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.tir.block import Buffer, const, index, quotient, remainder

_DTYPE = "float32"
_SLICE = 16
"""Elements of the inner dimension that a warp multiplies of each piece, of each row or column."""
_DOWN, _ALONG = 4, 8
"""Lanes of a warp along each side of its rectangle."""
_VECTOR = 4


class _Tile(NamedTuple):
    """The rectangle of a block.

    A thread has ``own`` rows and columns of it, of one of so many ``slices``.
    """

    rows: int
    columns: int
    own: int = 8
    slices: int = 1

    @property
    def along(self) -> int:
        return self.columns // (_ALONG * self.own)

    @property
    def warps(self) -> int:
        """Of a slice."""
        return self.rows // (_DOWN * self.own) * self.along

    @property
    def threads(self) -> int:
        return self.warps * self.slices * WARP

    @property
    def piece(self) -> int:
        """Elements of the inner dimension that are in shared memory at a time."""
        return self.slices * _SLICE

    @property
    def row(self) -> int:
        """Elements from a row of a slice's sums in shared memory to the next one."""
        return self.columns + _VECTOR


_TILES = {
    f"{one.rows}x{one.columns}": one
    for one in (_Tile(64, 128), _Tile(64, 64), _Tile(16, 32, own=4, slices=4))
}


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
        return _Writer(stage, anchor, node, context)


@dataclass(frozen=True)
class _Writer:
    stage: Stage
    anchor: Tensor
    node: MatMul
    context: Context

    def write(self) -> None:
        """Write a launch for each of the rectangles."""
        ladder = Ladder(_TILES, [*_TILES], "tiled.tile")
        for one in rungs(self.anchor, ladder, self.context):
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


class _Thread(NamedTuple):
    """A thread of the grid: its slice of the pieces, and its rows and columns."""

    grid: Grid
    slice: Expr
    sides: list[_Side]


class _Launch:
    def __init__(self, own: _Writer, tile: _Tile, work: Dim) -> None:
        self._anchor = own.anchor
        self._context = context = own.context
        self._block = device_block(context)
        self._tile = tile
        self._work = work
        self._staged = StagedPieces(factors_of(own.node), tile[:2], tile.piece, context)
        most = min(4, DECLARED // self._staged.bytes)
        self._stages = min(context.choose("tiled.stages", (2, 3, 4), most), most)
        # A thread's columns of a factor whose inner dimension is near do not lie side by side.
        apart = tile.slices == 1 and self._staged.factors[1].inner_near
        self._made = MadeOfSums(own.stage, own.anchor, context, 1 if apart else _VECTOR)
        left = tile.slices * tile.rows * tile.row if tile.slices > 1 else 0
        self._room = max(self._stages * self._staged.bytes // 4, left)

    def write(self) -> None:
        block, tile = self._block, self._tile
        units = counts(self._anchor, tile)
        work = product(units)
        with block.launch(self._work, 1, tile.threads) as grid:
            pool = block.shared(self._room, _DTYPE, "pool")
            warp = block.bind(quotient(grid.thread, WARP), "warp")
            part = block.bind(quotient(warp, tile.warps), "slice")
            thread = _Thread(grid, part, self._sides(grid, remainder(warp, tile.warps)))
            with block.share_out(grid.block, self._context.size(work), grid.blocks) as unit:
                *place, i, j = unflatten(self._context, unit, units)
                row = block.bind(index(i * tile.rows), "row")
                column = block.bind(index(j * tile.columns), "column")
                sums = block.registers(tile.own**2, _DTYPE, "sums")
                for number in range(tile.own**2):
                    block.store(sums, number, const(0, _DTYPE))
                self._staged.go_through(
                    Team(grid.thread, tile.threads),
                    pool,
                    self._stages,
                    [(place, row), (place, column)],
                    partial(self._add, thread, sums),
                )
                if tile.slices == 1:
                    self._store(thread.sides, sums, [*place, row, column])
                else:
                    block.barrier()
                    self._leave(thread, sums, pool)
                    block.barrier()
                    self._take(grid, pool, [*place, row, column])
                block.barrier()

    def _sides(self, grid: Grid, warp: Expr) -> list[_Side]:
        block, lane = self._block, remainder(grid.thread, WARP)
        warps = quotient(warp, self._tile.along), remainder(warp, self._tile.along)
        lanes = quotient(lane, _ALONG), remainder(lane, _ALONG)
        return [
            _Side(
                staged,
                block.bind(index(own), "lane"),
                count,
                block.bind(index(at * (count * self._tile.own)), "first"),
            )
            for staged, own, count, at in zip(
                self._staged.factors, lanes, (_DOWN, _ALONG), warps, strict=True
            )
        ]

    def _add(self, thread: _Thread, sums: Buffer, slots: Sequence[Place]) -> None:
        """Add the products of a slice of a piece."""
        block, own = self._block, self._tile.own
        with block.loop(_SLICE // _VECTOR, "k") as group:
            first = block.bind(thread.slice * _SLICE + group * _VECTOR, "first")
            rows, columns = (
                self._loads(side, slot, first)
                for side, slot in zip(thread.sides, slots, strict=True)
            )
            for k in range(_VECTOR):
                a, b = rows(k), columns(k)
                for i in range(own**2):
                    total = multiply_add(block, a[i // own], b[i % own], block.load(sums, i))
                    block.store(sums, i, total)

    def _loads(self, side: _Side, slot: Place, first: Expr) -> Callable[[int], list[Expr]]:
        """Return what loads the elements of one of four numbers of the inner dimension."""
        block, step, own = self._block, side.staged.step, self._tile.own

        def load(i: int, k: int) -> Buffer:
            cells = block.registers(_VECTOR, _DTYPE, "cells")
            at = side.number(i) * step[0] + (first + k) * step[1]
            block.copy(cells, 0, slot.buffer, block.bind(slot.at + at, "at"), _VECTOR)
            return cells

        if side.staged.inner_near:
            held = [load(i, 0) for i in range(own)]
            return lambda k: [block.load(cells, k) for cells in held]

        def now(k: int) -> list[Expr]:
            cells = [load(i, k) for i in range(0, own, _VECTOR)]
            return [block.load(cells[i // _VECTOR], i % _VECTOR) for i in range(own)]

        return now

    def _store(self, sides: Sequence[_Side], sums: Buffer, at: Sequence[Index]) -> None:
        """Compute and store what is made of the sums, a row at a time."""
        block, own, width = self._block, self._tile.own, self._made.width
        *batch, first, left = at
        cells = block.registers(own, _DTYPE, "row")
        with block.loop(own, "own") as i:
            for number in range(own):
                with block.when(tirx.EQ(i, index(number))):
                    for j in range(own):
                        block.store(cells, j, block.load(sums, number * own + j))
            row = block.bind(first + sides[0].number(i), "row")
            for j in range(0, own, width):
                column = block.bind(left + sides[1].number(j), "column")
                self._make([*batch, row, column], [block.load(cells, j + n) for n in range(width)])

    def _leave(self, thread: _Thread, sums: Buffer, pool: Buffer) -> None:
        """Store a thread's sums of its slice where others take them."""
        block, tile = self._block, self._tile
        rows, columns = thread.sides
        for i in range(tile.own):
            row = thread.slice * tile.rows + rows.number(i)
            start = block.bind(row * tile.row, "start")
            for j in range(tile.own):
                place = start + columns.number(j)
                block.store(pool, place, block.load(sums, i * tile.own + j))

    def _take(self, grid: Grid, pool: Buffer, at: Sequence[Index]) -> None:
        """Add up the sums of the slices, and store what is made of them."""
        block, tile, width = self._block, self._tile, self._made.width
        *batch, first, left = at
        along = tile.columns // width
        with block.share_out(grid.thread, tile.rows * along, index(tile.threads)) as number:
            y = block.bind(quotient(number, along), "y")
            x = block.bind(remainder(number, along) * width, "x")
            own = block.bind(y * tile.row + x, "own")
            totals = [block.let(block.load(pool, own + n)) for n in range(width)]
            for part in range(1, tile.slices):
                start = own + part * tile.rows * tile.row
                totals = [
                    block.let(total + block.load(pool, start + n)) for n, total in enumerate(totals)
                ]
            self._make(
                [*batch, block.bind(first + y, "row"), block.bind(left + x, "column")], totals
            )

    def _make(self, at: list[Index], sums: Sequence[Expr]) -> None:
        """Compute and store what is made of elements side by side, if they are there."""
        rows, columns = (index(self._context.size(d)) for d in self._anchor.shape[-2:])
        with self._block.when(tirx.And(at[-2] < rows, at[-1] < columns)):
            self._made.store(at, sums)
