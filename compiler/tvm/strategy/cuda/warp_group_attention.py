"""Attention as one launch whose products four warps compute together (``wgmma``).

A block has 128 rows of queries in shared memory, four warps 64 of them. Keys and values come in
pieces, the next ones while the current ones are used. What goes on between the products is that of
:mod:`.attention`, on registers that lie alike.

On GPUs of level 9.0, of 16-bit floats that can be copied 16 bytes at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.codegen.device_block import WARP, Grid, Place
from composite.compiler.tvm.ir.dims import floordiv, product
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.plan.running_softmax import RunningSoftmax
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.attention_shapes import AttentionWriter, Shapes
from composite.compiler.tvm.strategy.cuda.fragments import Fragments, factor_of_sums
from composite.compiler.tvm.strategy.cuda.group_products import begin_products, end_products
from composite.compiler.tvm.strategy.cuda.running_rows import RunningRows, place_of
from composite.compiler.tvm.strategy.cuda.staged_factor import Team
from composite.compiler.tvm.strategy.cuda.staged_sums import SumsEpilogue
from composite.compiler.tvm.strategy.cuda.swizzled_factor import (
    DEPTH,
    GROUP_ROWS,
    PIECE,
    SwizzledFactor,
    is_swizzled,
)
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.target import CudaTarget
from composite.compiler.tvm.tir.block import Buffer, index, quotient, remainder

_ROWS = 128
"""Rows of queries of a block."""
_WARPS = 8
_COLUMNS = PIECE
"""Keys of a piece: with 128, the registers are those of one block a multiprocessor, not of two."""
_SLOTS = 2
"""Pieces of keys and values that are there at a time."""


class WarpGroupAttention:
    """Stages that are an attention of 16-bit floats, where the GPU has the instructions."""

    name = "warp_group_attention"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take what was joined as one."""
        target = context.target
        if not (isinstance(target, CudaTarget) and target.has_warp_groups and stage.parts):
            return None
        shapes = Shapes.of(stage, context)
        if shapes is None or shapes.first.bytes != 2 or shapes.second.bytes != 2:
            return None
        factors = (shapes.queries, shapes.keys, shapes.values)
        if not all(is_swizzled(factor, context) for factor in factors):
            return None
        return AttentionWriter(_Launch, stage, shapes, context)


class _Launch:
    def __init__(self, last: Stage, shapes: Shapes, context: Context) -> None:
        self._shapes = shapes
        self._found = shapes.found
        self._context = context
        self._block = device_block(context)
        # Squares of 64 elements, where there are fewer with zeros.
        self._depth = -(-shapes.depth // PIECE)
        self._width = -(-shapes.width // PIECE) * PIECE
        self._epilogue = SumsEpilogue(last, shapes.found.result, self._width, context)
        held = _ROWS * self._depth + _SLOTS * _COLUMNS * self._depth
        held = (held * PIECE + _SLOTS * _COLUMNS * self._width) * 2
        self._room = max(held, self._epilogue.bytes(_WARPS))
        self._batch = self._found.result.shape[:-2]
        self._count = context.size(self._found.scores.shape[-1])

    def write(self) -> None:
        block = self._block
        down = floordiv(self._found.result.shape[-2] + (_ROWS - 1), _ROWS)
        work = product(self._batch) * down
        # Wide values leave no registers for two blocks.
        beside = 2 if self._width == PIECE else 1
        with block.launch(work, 1, _WARPS * WARP, beside) as grid:
            pool = block.pool(self._room)
            held = Fragments(block, self._shapes.first, grid.thread)
            pieces = self._pieces(grid, pool)
            with block.share_out(grid.block, self._context.size(work), grid.blocks) as unit:
                matrix = block.bind(quotient(unit, self._context.size(down)), "matrix")
                first = block.bind((unit - matrix * self._context.size(down)) * _ROWS, "first")
                own = block.bind(first + held.warp * 16, "own")
                rows = RunningRows(self._found, matrix, own + held.row, self._context)
                sums = held.sums(self._width // 8)
                pieces.begin(matrix, first)
                self._go_through(held, pieces, rows, sums)
                rows.divide(sums)
                block.barrier()
                at = [*place_of(matrix, self._batch, self._context), own, index(0)]
                self._epilogue.write(held, pool, sums, at)
                block.barrier()

    def _pieces(self, grid: Grid, pool: Buffer) -> _Pieces:
        shapes, team = self._shapes, Team(grid.thread, _WARPS * WARP)
        factors = (
            SwizzledFactor(factor, side, team, self._context)
            for factor, side in (
                (shapes.queries, _ROWS), (shapes.keys, _COLUMNS), (shapes.values, self._width)
            )
        )  # fmt: skip
        return _Pieces(self._found, self._depth, pool, self._context, *factors)

    def _go_through(
        self, held: Fragments, pieces: _Pieces, rows: RunningRows, sums: Buffer
    ) -> None:
        """Take all keys and values, piece by piece."""
        block = self._block
        count = quotient(self._count + (_COLUMNS - 1), _COLUMNS)
        with block.loop(count, "piece") as piece:
            block.call("composite_wait_for_copies<0>")
            block.call("composite_wgmma_publish")
            end_products(block, sums)  # of the piece before
            # All have what they waited for, and nobody reads what the next copies replace.
            block.barrier()
            keys, values = pieces.places(piece)
            scores = self._scores(held, pieces, keys)
            pieces.bring(block.bind(piece + 1, "coming"))
            end_products(block, scores)
            rows.add(scores, sums, block.bind(piece * _COLUMNS + held.column * 2, "column"))
            self._add_values(pieces, scores, values, sums)
        block.call("composite_wait_for_copies<0>")
        end_products(block, sums)

    def _scores(self, held: Fragments, pieces: _Pieces, keys: Place) -> Buffer:
        """Begin to multiply the queries and a piece of the keys."""
        scores = held.sums(_COLUMNS // 8)
        a, b = pieces.queries, pieces.keys
        rows = quotient(held.warp, 4) * GROUP_ROWS
        first, second = a.matrix(Place(keys.buffer, 0), rows), b.matrix(keys)
        function = f"{self._shapes.first.name}<{_COLUMNS}, {a.far}, {b.far}>"
        depths = range(0, self._shapes.depth, DEPTH)
        steps = ((first + a.further(k), second + b.further(k)) for k in depths)
        begin_products(self._block, function, scores, steps)
        return scores

    def _add_values(self, pieces: _Pieces, powers: Buffer, values: Place, sums: Buffer) -> None:
        """Begin to add the product of the exponentials and a piece of the values."""
        block, numbers, b = self._block, self._shapes.second, pieces.values
        steps = _COLUMNS // DEPTH
        left = block.registers(4 * steps, "uint32", "powers")
        for k in range(steps):
            for i in range(4):
                block.store(left, 4 * k + i, factor_of_sums(block, numbers, powers, k, i))
        matrix = b.matrix(values)
        factors = (
            (block.address(left, 4 * k), matrix + b.further(k * DEPTH)) for k in range(steps)
        )
        begin_products(block, f"held_{numbers.name}<{self._width}, {b.far}>", sums, factors)


class _Pieces:
    """What a block has of the queries, keys and values in shared memory, in this order."""

    def __init__(
        self, found: RunningSoftmax, depth: int, pool: Buffer, context: Context,
        *factors: SwizzledFactor,
    ) -> None:  # fmt: skip
        self._found = found
        self._depth = depth
        self._context = context
        self._block = device_block(context)
        self.queries, self.keys, self.values = factors
        self._view = self.queries.view(pool)
        self._of_keys = self._depth * self.keys.elements
        self._first_keys = self._depth * self.queries.elements
        self._first_values = self._first_keys + _SLOTS * self._of_keys
        self._batches: list[list[Index]] = [[], []]  # of the scores and of the result

    def begin(self, matrix: Expr, first: Expr) -> None:
        """Begin to bring the queries from a row on, and the first keys and values of a matrix."""
        self._batches = [
            place_of(matrix, t.shape[:-2], self._context)
            for t in (self._found.scores, self._found.result)
        ]
        for number in range(self._depth):
            to = Place(self._view, index(number * self.queries.elements))
            self.queries.begin(to, (self._batches[0], first), index(number * PIECE))
        self.bring(index(0))

    def bring(self, piece: Expr) -> None:
        """Begin to bring a piece of the keys and values."""
        block, (scores, result) = self._block, self._batches
        keys, values = self.places(piece)
        column = block.bind(piece * _COLUMNS, "column")
        for number in range(self._depth):
            to = Place(keys.buffer, keys.at + number * self.keys.elements)
            self.keys.begin(to, (scores, column), index(number * PIECE))
        self.values.begin(values, (result, index(0)), column)
        block.call("composite_commit_copies")

    def places(self, piece: Expr) -> Sequence[Place]:
        """Return where the keys and the values of a piece are."""
        block = self._block
        slot = block.bind(remainder(piece, _SLOTS), "slot")
        keys = block.bind(slot * self._of_keys + self._first_keys, "at")
        values = block.bind(slot * self.values.elements + self._first_values, "at")
        return Place(self._view, keys), Place(self._view, values)
