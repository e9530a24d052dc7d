"""Multiply rows with packed panels, the panels or the rows in the inner loop.

What the inner loop goes through again and again should stay in a cache. Long sums are cut: the sums
of pieces of k are added up in the buffer of sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Strided
from composite.compiler.tvm.ir.dims import ceildiv
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.machine import LINE_BYTES
from composite.compiler.tvm.math.numeric import add
from composite.compiler.tvm.strategy.context import Context, Packing
from composite.compiler.tvm.strategy.cpu.product.blocking import Blocking
from composite.compiler.tvm.strategy.cpu.product.pack import Panels
from composite.compiler.tvm.strategy.cpu.product.pack_rows import PackedRows, RowPacker
from composite.compiler.tvm.strategy.cpu.product.product import Product, batch_offset
from composite.compiler.tvm.strategy.cpu.product.result_ahead import Part, ResultAhead
from composite.compiler.tvm.strategy.cpu.product.row_tiles import LEAST_HEIGHT, row_tiles
from composite.compiler.tvm.strategy.cpu.product.steps import Step, joined
from composite.compiler.tvm.strategy.cpu.product.tile import (
    UNROLL,
    Operands,
    Tile,
    added_to_nothing,
    is_long,
    multiply,
    new_sums,
    pieces,
    steps_at_once,
)
from composite.compiler.tvm.tir.block import (
    Buffer,
    index,
    minimum,
    quotient,
)

_Where = tuple[Expr, Expr, Expr]  # the panel, the first row of the sums, the row in the sums


@dataclass(frozen=True)
class Arrangement:
    """A product as vectors and rows.

    Attributes:
        product: The product and what is made of it.
        vectors: The factor that supplies vectors, and whether its matrices are ``[K, count]``.
        broadcast: The factor that supplies single steps, and the same of its matrices.
        broadcast_at: Where that factor lies in memory; None if tasks pack it.
        swapped: Whether vectors run along the rows of the result.
        tile: The register tile.
        packing: Who packs the factor that supplies vectors once; None if each task packs.
        step: What is multiplied at a step of k.
    """

    product: Product
    vectors: tuple[Tensor, bool]
    broadcast: tuple[Tensor, bool]
    broadcast_at: Strided | None
    swapped: bool
    tile: Tile
    packing: Packing | None
    step: Step

    @property
    def is_packed(self) -> bool:
        """Whether the factor that supplies vectors is packed before the tasks."""
        return self.packing is not None


@dataclass(frozen=True)
class Buffers:
    """A task's packed panels, its sums, how many panels, their first column, its packed rows."""

    packed: Panels
    sums: Buffer | None
    panels: Expr | int
    start: Expr
    rows: PackedRows | None = None


VectorEpilogue = Callable[[Expr, Expr, Expr], None]
"""Writes the epilogue of a vector of sums, given its row, its number in the group, and the sums."""


@dataclass(frozen=True)
class Piece:
    """Steps ``[k, k + depth)`` of a product.

    Attributes:
        k: The first step.
        depth: How many.
        adds: Whether they are added to what the sums hold; they are few then.
        epilogue: Takes the sums from the registers; None stores them in the buffer. With it, the
            rows must be whole tiles, and the steps not too many to be added up at once.
    """

    k: Expr | int
    depth: Expr | int
    adds: bool = False
    epilogue: VectorEpilogue | None = None


class PanelProduct:
    """Multiplies rows of an arrangement, at the given batch indices, with a task's panels.

    ``blocking`` says how many rows come at a time.
    """

    def __init__(
        self, arrangement: Arrangement, blocking: Blocking, context: Context, batch: list[Index]
    ) -> None:
        product = arrangement.product
        self._arrangement = arrangement
        self._blocking = blocking
        self._context = context
        self._block = context.block
        self._batch = batch
        self._tile = arrangement.tile
        self._lanes = context.lanes(product.dtype)
        self._dtype = product.dtype
        self._width = blocking.group * self._lanes
        self._rows = context.size(product.columns if arrangement.swapped else product.rows)
        is_thin = self._tile.rows < LEAST_HEIGHT  # then the steps may be far apart
        usual = UNROLL if is_thin else steps_at_once(self._tile)
        self._unroll = context.choose("gemm.unroll", (1, 2, 4, 8), usual)
        stage = None if arrangement.swapped or blocking.adds_up else product.stage
        self._result = ResultAhead(stage, context, batch, self._unroll)

    def write(self, buffers: Buffers, first: Expr, rows: Expr | int, piece: Piece) -> None:
        """Multiply rows ``[first, first + rows)`` with every panel, into the sums."""
        block = self._block
        if buffers.rows is not None:
            room, arrangement = replace(buffers.rows, count=rows), self._arrangement
            factor, step = arrangement.broadcast, arrangement.step
            packer = RowPacker(self._context, factor, self._batch, step, self._lanes)
            packer.write(room, first, piece.k, piece.depth)
            buffers = replace(buffers, rows=room)
        parts = [
            (block.bind(start, "first"), tile, block.bind(repeat, "tiles"))
            for start, tile, repeat in row_tiles(rows, self._tile)
        ]
        total = sum((repeat for _, _, repeat in parts), 0)
        is_single = isinstance(total, int) and total == 1
        if piece.adds or is_single or self._is_near(piece):  # a panel stays near: all rows for each
            with block.loop(buffers.panels, "panel") as p:
                done: Expr | int = 0
                for start, tile, repeat in parts:
                    with block.loop(repeat, "tile") as t:
                        where = (p, first, self._row_of_sums(buffers, start, t, tile))
                        self._one_tile(buffers, where, tile, piece, (done + t, total))
                    done = done + repeat
            return
        for start, tile, repeat in parts:  # a tile's rows stay near: all panels for each
            with block.loop(repeat, "tile") as t:
                at = self._row_of_sums(buffers, start, t, tile)
                with block.loop(buffers.panels, "panel") as p:
                    self._one_tile(buffers, (p, first, at), tile, piece)

    def _row_of_sums(
        self, buffers: Buffers, start: Expr | int, number: Expr, tile: Tile
    ) -> Expr | int:
        """Return the first row of a tile in the sums.

        All tiles end inside of the sums. Of rows whose number only the call knows, that is more
        than is proven, so the bound is written down.
        """
        at = start + number * tile.rows
        size = None if buffers.sums is None else buffers.sums.shape[0]
        if isinstance(size, tirx.IntImm) and not isinstance(start, int):
            at = minimum(at, int(size) // self._width - tile.rows)
        return self._block.bind(at, "at")

    def _is_near(self, piece: Piece) -> bool:
        """Return whether a panel stays in a cache while all rows go by: in L1, or beside them."""
        if not isinstance(piece.depth, int):
            return False
        line = piece.depth * ITEM_SIZE[self._dtype]
        width = self._tile.vectors * self._lanes
        if line * width <= self._context.machine.panel:
            return True
        rows = self._blocking.fixed_rows or self._blocking.block_rows
        return self._arrangement.is_packed and line * (width + rows) <= self._context.machine.held

    def _one_tile(
        self,
        buffers: Buffers,
        where: _Where,
        tile: Tile,
        piece: Piece,
        turn: tuple[Expr | int, Expr | int] | None = None,
    ) -> None:
        """Multiply one tile.

        ``turn`` tells which of how many tiles of this panel it is, if they follow each other.
        """
        block = self._block
        operands = self._operands(buffers, where, tile, piece, turn)

        if piece.adds or not is_long(piece.depth):
            total = multiply(block, tile, piece.depth, operands, self._unroll)
            self._leave(total, buffers.sums, where, tile, piece)
            return
        first = new_sums(block, tile, operands)
        self._leave(first, buffers.sums, where, tile, piece)  # which adds to nothing
        steps, count = pieces(piece.depth, invariant=self._context.invariant)
        with block.loop(count, "piece") as number:
            k = block.bind(number * steps, "k")
            exact = isinstance(piece.depth, int) and piece.depth % steps == 0
            depth = steps if exact else block.bind(minimum(steps, piece.depth - k), "depth")
            total = multiply(block, tile, depth, operands.behind(k), self._unroll)
            self._leave(total, buffers.sums, where, tile, replace(piece, adds=True))

    def _operands(
        self,
        buffers: Buffers,
        where: _Where,
        tile: Tile,
        piece: Piece,
        turn: tuple[Expr | int, Expr | int] | None,
    ) -> Operands:
        """Return what one tile reads, and what is fetched ahead meanwhile."""
        block, lanes, packed = self._block, self._lanes, buffers.packed
        p, first, at = where
        step = tile.vectors * lanes
        base = block.bind(index(packed.panel_at(p)), "base")

        def vector(j: int, k: Expr | int) -> Expr:
            return block.load(packed.buffer, base + k * step + j * lanes, lanes)

        kind = self._arrangement.step
        return Operands(
            self._dtype,
            lanes,
            self._row_reader(buffers.rows, first, at, tile, piece.k),
            vector,
            kind.dot(lanes),
            (lambda j: vector(j, packed.depth - 1)) if kind.low else None,
            ahead=self._rows_ahead(first + at, tile, piece)
            or self._ahead(packed, p, tile, piece, turn)
            or self._result.asks(
                Part(first + at, buffers.start + p * step, tile.rows, step), piece.depth
            ),
            far=self._is_far(tile),
        )

    def _leave(self, total: Buffer, sums: Buffer, where: _Where, tile: Tile, piece: Piece) -> None:
        """Give the sums of one tile to the epilogue, or store them, added to those there."""
        block, lanes = self._block, self._lanes
        p, first, at = where
        for i in range(tile.rows):
            for j in range(tile.vectors):
                value = tirx.BufferLoad(total, [index(i * tile.vectors + j)])
                if self._context.invariant and not piece.adds:
                    value = block.let(added_to_nothing(value))
                if piece.epilogue is not None:
                    row = block.bind(first + at + i, "row")
                    piece.epilogue(row, p * tile.vectors + j, value)
                    continue
                place = (at + i) * self._width + p * (tile.vectors * lanes) + j * lanes
                if piece.adds:
                    value = add(block, block.load(sums, place, lanes), value)
                block.store(sums, place, value)

    def _is_far(self, tile: Tile) -> bool:
        """Return whether the steps that are unrolled are far apart, without a prefetch.

        So that the hardware fetches several streams: few rows of what an L2 cache may hold, or of
        what a loop reads in each trip, where a prefetch would take the place of a load.
        """
        packing = self._arrangement.packing
        if packing is None or tile.rows >= LEAST_HEIGHT or self._context.invariant:
            return False
        steps = math.prod(packing.shape) // self._arrangement.step.size
        held = steps * ITEM_SIZE[self._dtype]
        return self._context.trips is not None or held <= self._context.machine.near

    def _ahead(
        self,
        packed: Panels,
        p: Expr,
        tile: Tile,
        piece: Piece,
        turn: tuple[Expr | int, Expr | int] | None,
    ) -> Callable[[Expr | int], None] | None:
        """Return what prefetches panels while this one is multiplied; None if nothing.

        Panels that were packed before the tasks are read once, from memory beyond the L2 cache. The
        first tile of a panel would wait for all of it, so each tile of the panel before prefetches
        a share. A single tile prefetches what it reads a little later: panels follow each other.
        """
        if not self._arrangement.is_packed or turn is None or self._is_far(tile):
            return None
        if not isinstance(piece.depth, int):
            return None
        number, count = turn
        size = ITEM_SIZE[self._dtype]
        line = LINE_BYTES // size
        steps = piece.depth // self._unroll
        lines = ceildiv(tile.vectors * self._lanes * self._unroll, line)
        each = ceildiv(lines, count) if isinstance(count, int) else 1
        if isinstance(count, int) and count == 1:
            start = packed.panel_at(p) + self._context.machine.prefetch // size
            return self._prefetch(packed.buffer, start, each, each * line, level=1)
        start = packed.panel_at(p + 1) + number * (steps * each * line)
        pitch: Expr | int = each * line
        if not isinstance(count, int) or count > lines:  # tiles behind those ask for nothing new
            pitch = self._block.bind(tirx.Select(number < lines, index(line), index(0)), "pitch")
        return self._prefetch(packed.buffer, start, each, pitch, level=2)

    def _prefetch(
        self, buffer: Buffer, start: Expr | int, each: int, pitch: Expr | int, *, level: int
    ) -> Callable[[Expr | int], None]:
        """Return what prefetches ``each`` lines at steps that are unrolled together."""
        block, line = self._block, LINE_BYTES // ITEM_SIZE[self._dtype]
        first = block.bind(index(start), "next")

        def ask(k: Expr | int) -> None:
            at = block.bind(first + quotient(k, self._unroll) * pitch, "line")
            for i in range(each):
                block.prefetch(buffer, at + i * line, level=level)

        return ask

    def _rows_ahead(
        self, first: Expr, tile: Tile, piece: Piece
    ) -> Callable[[Expr | int], None] | None:
        """Return what prefetches the rows of the next tile; None if nothing.

        Of a matrix that no L2 cache holds, each tile reads rows at once, more streams than the
        hardware follows. Panels stay near beside them.
        """
        arrangement, where = self._arrangement, self._arrangement.broadcast_at
        if arrangement.packing is None or where is None or arrangement.step.is_group:
            return None
        depth, rows, size = piece.depth, self._rows, ITEM_SIZE[self._dtype]
        if not isinstance(depth, int) or not isinstance(rows, int) or arrangement.broadcast[1]:
            return None
        near = self._context.machine.held
        are_small = math.prod(arrangement.packing.shape) * size <= near // 2
        if where.strides[-2:] != (depth, 1) or not are_small or rows * depth * size <= near:
            return None
        lines = ceildiv(tile.rows * depth, LINE_BYTES // size)
        each = ceildiv(lines, max(1, depth // self._unroll))
        base = batch_offset(arrangement.broadcast[0], where, self._batch)
        start = base + (first + tile.rows) * depth
        pitch = each * (LINE_BYTES // size)
        return self._prefetch(where.storage.buffer, start, each, pitch, level=2)

    def _row_reader(
        self, rows: PackedRows | None, first: Expr, at: Expr, tile: Tile, k: Expr | int
    ) -> Callable[[int, Expr | int], Expr]:
        """Return how to read step k of row i; rows past the end repeat the last."""
        (tensor, k_first), where = self._arrangement.broadcast, self._arrangement.broadcast_at
        if where is None:
            if rows is None:
                raise RuntimeError("rows that are not read in place need room")
            return self._packed_row_reader(rows, at, tile)
        first = self._block.bind(first + at)
        k_axis, row_axis = (-2, -1) if k_first else (-1, -2)
        size = self._arrangement.step.size
        pitch = where.strides[k_axis] * size
        base = batch_offset(tensor, where, self._batch) + k * pitch
        bases = [
            self._block.bind(
                index(base + minimum(first + i, self._rows - 1) * where.strides[row_axis]), "row"
            )
            for i in range(tile.rows)
        ]

        def read(i: int, step: Expr | int) -> Expr:
            place = bases[i] + step * pitch
            if size > 1:
                return joined(self._block.load(where.storage.buffer, place, size), size)
            return tirx.BufferLoad(where.storage.buffer, [index(place)])

        return read

    def _packed_row_reader(
        self, rows: PackedRows, at: Expr, tile: Tile
    ) -> Callable[[int, Expr | int], Expr]:
        """Return how to read a step of row i from where rows were packed."""
        bases = [
            self._block.bind(index(rows.place(minimum(at + i, rows.count - 1), 0)), "row")
            for i in range(tile.rows)
        ]

        def read(i: int, step: Expr | int) -> Expr:
            return tirx.BufferLoad(rows.buffer, [index(bases[i] + step * rows.step_stride)])

        return read
