"""One task of a tiled product: pack, multiply, finish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from ..access import Index
from ..block import INDEX, Buffer, ceil_quotient, const, index, maximum, minimum, quotient
from ..graph import ITEM_SIZE, Expr, Tensor
from .base import Context
from .blocking import Blocking
from .finish import Finisher
from .pack import Packer, Panels
from .panels import Fresh, Keeper, Supply
from .product import Product, batch_offset, in_place
from .tile import UNROLL, Operands, Tile, multiply

_NEAR_BYTES = 24 * 1024
"""Bytes of a panel that stay in an L1 cache, beside what is multiplied with it."""

_LEAST_HEIGHT = 4
_HEIGHTS = 2
"""Heights, and the steps between them, of the tile for what whole tiles leave: fewer rows take as
long, and each height is code that takes a tenth of a second to compile."""


@dataclass(frozen=True)
class Arrangement:
    """A product as vectors and rows.

    Attributes:
        product: The product and what is made of it.
        vectors: The factor that supplies vectors, and whether its matrices are ``[K, count]``.
        rows: The factor whose elements are broadcast, and whether its matrices are ``[K, count]``.
        swapped: Whether vectors run along the rows of the result.
        tile: The register tile.
        kept: Whether the factor that supplies vectors is constant, and packed once.
    """

    product: Product
    vectors: tuple[Tensor, bool]
    rows: tuple[Tensor, bool]
    swapped: bool
    tile: Tile
    kept: bool = False


@dataclass(frozen=True)
class Buffers:
    """Where a task keeps its packed panels, how many there are, and its sums."""

    packed: Panels
    sums: Buffer
    panels: Expr | int


@dataclass(frozen=True)
class Piece:
    """Steps ``[k, k + depth)``; ``adds`` if they are added to what the sums hold."""

    k: Expr | int
    depth: Expr | int
    adds: bool = False


class TaskWriter:
    """Writes a task of an arrangement, at the given batch indices.

    ``keeper`` has the panels of a constant factor; None if the task is to pack.
    """

    def __init__(
        self,
        arrangement: Arrangement,
        blocking: Blocking,
        context: Context,
        batch: list[Index],
        keeper: Keeper | None = None,
    ) -> None:
        product = arrangement.product
        columns, rows = product.columns, product.rows
        if arrangement.swapped:
            columns, rows = rows, columns
        self._arrangement = arrangement
        self._blocking = blocking
        self._context = context
        self._block = context.block
        self._batch = batch
        self._keeper = keeper
        self._tile = arrangement.tile
        self._lanes = context.lanes(product.dtype)
        self._dtype = product.dtype
        self._width = blocking.group * self._lanes
        self._count = context.size(columns)
        self._rows = context.size(rows)
        self._depth = context.size(product.depth)
        self._unroll = context.choose("gemm.unroll", (1, 2, 4, 8), UNROLL)
        self._finisher = Finisher(
            context, product, batch, blocking.group, self._count, swapped=arrangement.swapped
        )

    def write(self, group: Expr | int, first: Expr, count: Expr) -> None:
        """Write rows ``[first, first + count)`` of the vectors of one group."""
        block = self._block
        start = block.bind(index(group * self._width), "column")
        left = ceil_quotient(self._count - start, self._lanes)
        vectors = block.bind(minimum(self._blocking.group, left), "vectors")
        panels = block.bind(ceil_quotient(vectors, self._tile.vectors), "panels")
        supply = self._supply(group, start, panels * self._tile.vectors)
        if self._blocking.adds_up:
            self._write_in_pieces(supply, panels, start, (first, count))
        else:
            self._write_at_once(supply, panels, start, (first, count))

    def _supply(self, group: Expr | int, start: Expr, vectors: Expr | int) -> Supply:
        """Return who has the panels of a group."""
        if self._keeper is not None:
            return self._keeper.of_task(self._batch, group)
        # One step more than is used, lest the panels' lines fall into the same sets of the cache.
        pitch = self._blocking.depth + 1
        room = self._block.workspace(pitch * self._width, self._dtype, "packed")
        tensor, k_first = self._arrangement.vectors
        packer = Packer(self._context, tensor, k_first, self._batch, self._count)
        return Fresh(packer, Panels(room, pitch, self._tile.vectors, self._lanes), start, vectors)

    def _sums(self, rows: int) -> Buffer:
        size = (rows + self._tile.rows) * self._width
        return self._block.workspace(size, self._dtype, "sums")

    def _write_at_once(
        self, supply: Supply, panels: Expr, start: Expr, rows_of_task: tuple[Expr, Expr]
    ) -> None:
        """With all of k, multiply and finish one block of rows after the other."""
        block, (first, count) = self._block, rows_of_task
        packed = supply.piece(0, 0, self._depth)
        fixed, most = self._blocking.fixed_rows, self._blocking.block_rows
        if fixed is not None and fixed < 2 * most:
            sums = self._sums(fixed)
            self._multiply(Buffers(packed, sums, panels), first, fixed, Piece(0, self._depth))
            self._finisher.write(sums, start, first, fixed)
            return
        sums = self._sums(2 * most)
        blocks = maximum(1, quotient(count, most))
        with block.loop(blocks, "block") as b:
            at = block.bind(b * most, "at")
            last = tirx.EQ(b, index(blocks) - 1)
            rows = block.bind(tirx.Select(last, count - at, index(most)), "rows")
            row = block.bind(first + at, "row")
            self._multiply(Buffers(packed, sums, panels), row, rows, Piece(0, self._depth))
            self._finisher.write(sums, start, row, rows)

    def _write_in_pieces(
        self, supply: Supply, panels: Expr, start: Expr, rows_of_task: tuple[Expr, Expr]
    ) -> None:
        """Add the products of one piece of k to the sums, until k is done; then finish."""
        block, blocking = self._block, self._blocking
        first, count = rows_of_task
        fixed = blocking.fixed_rows
        rows = count if fixed is None else fixed
        most = fixed if fixed is not None else blocking.rows
        sums = self._block.workspace((most + self._tile.rows) * self._width, self._dtype, "sums")
        zero = const(0, f"{self._dtype}x{self._lanes}")
        with block.loop((rows + self._tile.rows) * blocking.group, "z") as z:
            block.store(sums, z * self._lanes, zero)
        exact = isinstance(self._depth, int) and self._depth % int(blocking.depth) == 0
        with block.loop(blocking.k_blocks, "piece") as piece:
            k = block.bind(piece * blocking.depth, "k")
            depth = (
                blocking.depth
                if exact
                else block.bind(minimum(blocking.depth, self._depth - k), "depth")
            )
            packed = supply.piece(piece, k, depth)
            piece_of_k = Piece(k, depth, adds=True)
            self._multiply(Buffers(packed, sums, panels), first, rows, piece_of_k)
        self._finisher.write(sums, start, first, rows)

    def _multiply(self, buffers: Buffers, first: Expr, rows: Expr | int, piece: Piece) -> None:
        """Multiply rows ``[first, first + rows)`` with every panel, into the sums."""
        block = self._block
        for start, tile, repeat in row_tiles(rows, self._tile):
            if piece.adds or self._is_near(piece):  # it stays in the L1 cache: all rows for each
                with block.loop(buffers.panels, "panel") as p, block.loop(repeat, "tile") as t:
                    at = block.bind(start + t * tile.rows, "at")
                    self._one_tile(buffers, (p, first, at), tile, piece)
            else:  # a tile's rows stay there: all panels for each tile
                with block.loop(repeat, "tile") as t:
                    at = block.bind(start + t * tile.rows, "at")
                    with block.loop(buffers.panels, "panel") as p:
                        self._one_tile(buffers, (p, first, at), tile, piece)

    def _is_near(self, piece: Piece) -> bool:
        """Return whether a panel stays in the L1 cache while all rows go by."""
        if not isinstance(piece.depth, int):
            return False
        width = self._tile.vectors * self._lanes * ITEM_SIZE[self._dtype]
        return piece.depth * width <= _NEAR_BYTES

    def _one_tile(
        self, buffers: Buffers, where: tuple[Expr, Expr, Expr], tile: Tile, piece: Piece
    ) -> None:
        """Multiply one tile; ``where`` is (panel, first row of the sums, row in the sums)."""
        block, lanes = self._block, self._lanes
        p, first, at = where
        packed, sums = buffers.packed, buffers.sums
        step = tile.vectors * lanes
        base = block.bind(index(packed.panel_at(p)), "base")

        def place(i: int, j: int) -> Expr:
            return (at + i) * self._width + p * step + j * lanes

        def vector(j: int, k: Expr | int) -> Expr:
            return block.load(packed.buffer, base + k * step + j * lanes, lanes)

        def carried(i: int, j: int) -> Expr:
            return block.load(sums, place(i, j), lanes)

        row = self._row_reader(block.bind(first + at), tile, piece.k)
        operands = Operands(self._dtype, lanes, row, vector, carried if piece.adds else None)
        total = multiply(block, tile, piece.depth, operands, self._unroll)
        for i in range(tile.rows):
            for j in range(tile.vectors):
                value = tirx.BufferLoad(total, [index(i * tile.vectors + j)])
                block.store(sums, place(i, j), value)

    def _row_reader(
        self, first: Expr, tile: Tile, k: Expr | int
    ) -> Callable[[int, Expr | int], Expr]:
        """Return how to read step k of row i; rows past the end repeat the last."""
        tensor, k_first = self._arrangement.rows
        where = in_place(tensor, self._dtype, self._context)
        if where is None:
            raise TypeError("the broadcast side must lie in memory")
        k_axis, row_axis = (-2, -1) if k_first else (-1, -2)
        base = batch_offset(tensor, where, self._batch) + k * where.strides[k_axis]
        bases = [
            self._block.bind(
                index(base + minimum(first + i, self._rows - 1) * where.strides[row_axis]), "row"
            )
            for i in range(tile.rows)
        ]

        def read(i: int, step: Expr | int) -> Expr:
            place = bases[i] + step * where.strides[k_axis]
            return tirx.BufferLoad(where.storage.buffer, [index(place)])

        return read


def row_tiles(rows: Expr | int, tile: Tile) -> list[tuple[Expr | int, Tile, Expr | int]]:
    """Return (first row, tile, repetitions): balanced tiles where the number of rows is known.

    33 rows are 3 tiles of 11. Otherwise whole tiles, and for what is left tiles of several heights,
    of which one is there: a batch of 8 is not multiplied as one of 12.
    """
    if not isinstance(rows, int):
        whole = quotient(rows, tile.rows)
        left = rows - whole * tile.rows
        parts = [(0, tile, whole)]
        lower = 0
        for height in (*range(_LEAST_HEIGHT, tile.rows, _HEIGHTS), tile.rows):
            fits = tirx.And(left > lower, left <= height)
            part = Tile(height, tile.vectors)
            parts.append((whole * tile.rows, part, tirx.Cast(INDEX, fits)))
            lower = height
        return parts
    count = -(-rows // tile.rows)
    small, larger = divmod(rows, count)
    parts = []
    if larger:
        parts.append((0, Tile(small + 1, tile.vectors), larger))
    if count > larger:
        parts.append((larger * (small + 1), Tile(small, tile.vectors), count - larger))
    return parts
