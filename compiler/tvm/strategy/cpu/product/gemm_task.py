"""One task of a tiled product: pack, multiply, finish."""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cpu.elementwise.epilogue import Epilogue
from composite.compiler.tvm.strategy.cpu.product.blocking import Blocking, equal_blocks
from composite.compiler.tvm.strategy.cpu.product.pack import Packer, Panels
from composite.compiler.tvm.strategy.cpu.product.pack_rows import PackedRows
from composite.compiler.tvm.strategy.cpu.product.panel_product import (
    Arrangement,
    Buffers,
    PanelProduct,
    Piece,
)
from composite.compiler.tvm.strategy.cpu.product.panels import PackedByTask, PackedFactor, Supply
from composite.compiler.tvm.strategy.cpu.product.tile import is_long
from composite.compiler.tvm.tir.block import (
    Buffer,
    ceil_quotient,
    const,
    index,
    maximum,
    minimum,
    quotient,
)


class GemmTask:
    """Writes a task of an arrangement, at the given batch indices.

    ``packed`` is the factor that is packed once; None if the task packs its own.
    """

    def __init__(
        self,
        arrangement: Arrangement,
        blocking: Blocking,
        context: Context,
        batch: list[Index],
        packed: PackedFactor | None = None,
    ) -> None:
        product = arrangement.product
        columns = product.rows if arrangement.swapped else product.columns
        self._arrangement = arrangement
        self._blocking = blocking
        self._context = context
        self._block = context.block
        self._batch = batch
        self._packed = packed
        self._tile = arrangement.tile
        self._lanes = context.lanes(product.dtype)
        self._dtype = product.dtype
        self._width = blocking.group * self._lanes
        self._count = context.size(columns)
        self._depth = arrangement.step.count(context.size(product.depth))
        self._multiply = PanelProduct(arrangement, blocking, context, batch)
        self._epilogue = Epilogue(
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
        if self._packed is not None:
            return self._packed.of_task(self._batch, group)
        # One step more than is used, lest the panels' lines fall into the same sets of the cache.
        pitch = self._blocking.depth + 1
        room = self._block.workspace(pitch * self._width, self._dtype, "packed")
        factor, step = self._arrangement.vectors, self._arrangement.step
        packer = Packer(self._context, *factor, self._batch, self._count, step)
        panels = Panels(room, pitch, self._tile.vectors, self._lanes)
        return PackedByTask(self._block, packer, step, panels, start, vectors)

    def _sums(self, rows: int) -> Buffer:
        size = (rows + self._tile.rows) * self._width
        return self._block.workspace(size, self._dtype, "sums")

    def _rows(self, rows: Expr | int) -> PackedRows | None:
        """Return room for rows, if they are packed."""
        if self._arrangement.broadcast_at is not None:
            return None
        steps, k_first = self._blocking.depth, self._arrangement.broadcast[1]
        return PackedRows.room(self._block, self._dtype, rows, steps, k_first=k_first)

    def _write_at_once(
        self, supply: Supply, panels: Expr, start: Expr, rows_of_task: tuple[Expr, Expr]
    ) -> None:
        """With all of k, multiply and finish one block of rows after the other."""
        block, (first, count) = self._block, rows_of_task
        packed = supply.piece(0, 0, self._depth)
        fixed, most = self._blocking.fixed_rows, self._blocking.block_rows
        at_once = self._epilogue.is_short and not is_long(self._depth)
        blocks = equal_blocks(fixed, most) if fixed is not None else 0
        if fixed is not None and blocks:
            rows = fixed // blocks
            sums = None if at_once else self._sums(rows)
            room = self._rows(rows)
            with block.loop(blocks, "block") as b:
                row = block.bind(first + b * rows, "row")
                self._multiply_block(Buffers(packed, sums, panels, start, room), row, rows)
            return
        sums = self._sums(2 * most)
        room = self._rows(2 * most)
        blocks = maximum(1, quotient(count, most))
        with block.loop(blocks, "block") as b:
            at = block.bind(b * most, "at")
            last = tirx.EQ(b, index(blocks) - 1)
            left = block.bind(tirx.Select(last, count - at, index(most)), "rows")
            row = block.bind(first + at, "row")
            self._multiply_block(Buffers(packed, sums, panels, start, room), row, left)

    def _multiply_block(self, buffers: Buffers, row: Expr, rows: Expr | int) -> None:
        """Multiply rows with all of k, and finish them: from the sums, if there are any."""
        if buffers.sums is not None:
            self._multiply.write(buffers, row, rows, Piece(0, self._depth))
            self._epilogue.write(buffers.sums, buffers.start, row, rows)
            return

        def epilogue(row: Expr, vector: Expr, value: Expr) -> None:
            self._epilogue.write_vector(buffers.start, row, vector, value)

        self._multiply.write(buffers, row, rows, Piece(0, self._depth, epilogue=epilogue))

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
        room = self._rows(most)
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
            self._multiply.write(
                Buffers(packed, sums, panels, start, room), first, rows, piece_of_k
            )
        self._epilogue.write(sums, start, first, rows)
