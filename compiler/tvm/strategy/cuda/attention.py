"""Attention as one launch: the softmax runs along with the product that it is of.

A warp has 16 rows of queries in registers. Keys and values come in pieces, the next one while the
current one is used: the warp multiplies the queries and the keys, makes the logits of the sums,
raises the largest number of each row so far, scales what it has added up by what that changes, and
adds the product of the exponentials and the values, which it never stores. What is made of one
number a row, the quotient, is done last.

The products are those of tensor cores (:mod:`.tensor_product`); the exponentials are rounded to the
values' dtype, as TensorFlow's softmax is.
"""

from __future__ import annotations

from composite.compiler.tvm.codegen.device_block import DECLARED, WARP, Grid, Place
from composite.compiler.tvm.ir.dims import floordiv, product
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.attention_shapes import AttentionWriter, Shapes
from composite.compiler.tvm.strategy.cuda.fragments import Fragments, factor_of_sums
from composite.compiler.tvm.strategy.cuda.running_rows import RunningRows, place_of
from composite.compiler.tvm.strategy.cuda.staged_factor import Corner, StagedFactor, Team
from composite.compiler.tvm.strategy.cuda.staged_sums import SumsEpilogue
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.tir.block import Buffer, index, quotient, remainder

_WARPS = 4
_ROWS = 16 * _WARPS
"""Rows of queries of a block."""
_SLOTS = 2
"""Pieces of keys and values that are there at a time."""


class Attention:
    """Stages that are an attention, of numbers that tensor cores multiply."""

    name = "attention"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take what was joined as one."""
        shapes = Shapes.of(stage, context) if stage.parts else None
        return None if shapes is None else AttentionWriter(_Launch, stage, shapes, context)


class _Launch:
    def __init__(self, last: Stage, shapes: Shapes, context: Context) -> None:
        self._last = last
        self._shapes = shapes
        self._found = shapes.found
        self._context = context
        self._block = device_block(context)
        self._queries = StagedFactor(shapes.queries, _ROWS, shapes.depth, context)
        # Wide numbers take more registers, for fragments and for where they lie.
        candidates = (64, 32, 16) if shapes.first.bytes == 2 else (32, 16)
        fitting = [n for n in candidates if _SLOTS * self._piece_bytes(n) <= DECLARED]
        self._columns = context.choose("attention.keys", fitting, fitting[0])
        self._keys, self._values = self._staged(self._columns)
        self._epilogue = SumsEpilogue(last, shapes.found.result, shapes.width, context)
        pieces = _SLOTS * self._piece_bytes(self._columns)
        self._room = max(pieces, self._queries.bytes, self._epilogue.bytes(_WARPS))
        self._batch = self._found.result.shape[:-2]
        self._count = context.size(self._found.scores.shape[-1])

    def _staged(self, columns: int) -> tuple[StagedFactor, StagedFactor]:
        shapes, context = self._shapes, self._context
        keys = StagedFactor(shapes.keys, columns, shapes.depth, context)
        return keys, StagedFactor(shapes.values, shapes.width, columns, context, paired=True)

    def _piece_bytes(self, columns: int) -> int:
        return sum(one.bytes for one in self._staged(columns))

    def write(self) -> None:
        block = self._block
        down = floordiv(self._found.result.shape[-2] + (_ROWS - 1), _ROWS)
        work = product(self._batch) * down
        with block.launch(work, 1, _WARPS * WARP) as grid:
            pool = block.shared(self._room, "uint8", "pool")
            held = Fragments(block, self._shapes.first, grid.thread)
            paired = Fragments(block, self._shapes.second, grid.thread, paired=True)
            with block.share_out(grid.block, self._context.size(work), grid.blocks) as unit:
                matrix = block.bind(quotient(unit, self._context.size(down)), "matrix")
                first = block.bind((unit - matrix * self._context.size(down)) * _ROWS, "first")
                own = block.bind(first + held.warp * 16, "own")
                queries = self._take_queries(grid, held, pool, matrix, first)
                rows = RunningRows(self._found, matrix, own + held.row, self._context)
                sums = paired.sums(self._shapes.width // 8)
                self._go_through(grid, (held, paired), pool, matrix, (queries, rows, sums))
                rows.divide(sums)
                block.barrier()
                at = [*place_of(matrix, self._batch, self._context), own, index(0)]
                self._epilogue.write(held, pool, sums, at)
                block.barrier()

    def _take_queries(
        self, grid: Grid, held: Fragments, pool: Buffer, matrix: Expr, first: Expr
    ) -> Buffer:
        """Load the queries of a warp into registers."""
        block, staged = self._block, self._queries
        view = staged.view(pool)
        team, batch = Team(grid.thread, _WARPS * WARP), self._found.scores.shape[:-2]
        corner = Corner(place_of(matrix, batch, self._context), first, index(0))
        staged.bring(team, Place(view, index(0)), corner)
        block.call("composite_commit_copies")
        block.call("composite_wait_for_copies<0>")
        block.barrier()
        depth = self._shapes.first.depth
        count = self._shapes.depth // depth
        queries = held.registers(count, "queries")
        place = held.lane_place(staged, is_first=True) + held.warp * (16 * staged.step[0])
        start = block.bind(place, "at")
        for k in range(count):
            at = start + k * depth * staged.step[1]
            held.load(staged, Place(view, at), Place(queries, k), is_first=True)
        block.barrier()
        return queries

    def _go_through(
        self,
        grid: Grid,
        held: tuple[Fragments, Fragments],
        pool: Buffer,
        matrix: Expr,
        own: tuple[Buffer, RunningRows, Buffer],
    ) -> None:
        """Take all keys and values, piece by piece."""
        block, factors = self._block, (self._keys, self._values)
        views = [one.view(pool) for one in factors]
        # The values lie behind the keys, counted in their own elements.
        behind = (0, _SLOTS * self._keys.bytes // (self._values.bytes // self._values.elements))
        batches = [
            place_of(matrix, t.shape[:-2], self._context)
            for t in (self._found.scores, self._found.result)
        ]

        def begin(slot: Expr, piece: Expr) -> None:
            column = block.bind(piece * self._columns, "column")
            corners = (
                Corner(batches[0], column, index(0)),
                Corner(batches[1], index(0), column),
            )
            for one, view, at, corner in zip(factors, views, behind, corners, strict=True):
                to = Place(view, block.bind(slot * one.elements + at, "to"))
                one.bring(Team(grid.thread, _WARPS * WARP), to, corner)
            block.call("composite_commit_copies")

        starts = [
            block.bind(fragments.lane_place(one, is_first=False) + at, "at")
            for fragments, one, at in zip(held, factors, behind, strict=True)
        ]
        with block.loop(_SLOTS - 1, "early") as number:
            begin(number, number)
        pieces = quotient(self._count + (self._columns - 1), self._columns)
        with block.loop(pieces, "piece") as piece:
            block.call(f"composite_wait_for_copies<{_SLOTS - 2}>")
            # All have what they waited for, and nobody reads what the next copies replace.
            block.barrier()
            coming = block.bind(piece + (_SLOTS - 1), "coming")
            begin(block.bind(remainder(coming, _SLOTS), "slot"), coming)
            slot = block.bind(remainder(piece, _SLOTS), "slot")
            places = [
                Place(view, block.bind(start + slot * one.elements, "at"))
                for one, view, start in zip(factors, views, starts, strict=True)
            ]
            column = block.bind(piece * self._columns + held[0].column * 2, "column")
            queries, rows, sums = own
            scores = self._scores(held[0], queries, places[0])
            rows.add(scores, sums, column)
            self._add_values(held[1], scores, places[1], sums)
        block.call("composite_wait_for_copies<0>")

    def _scores(self, held: Fragments, queries: Buffer, keys: Place) -> Buffer:
        """Multiply the queries and a piece of the keys."""
        depth, staged = self._shapes.first.depth, self._keys
        along = self._columns // 8
        scores = held.sums(along)
        loaded = held.registers(along // 2, "keys")
        for k in range(self._shapes.depth // depth):
            for j in range(along // 2):
                at = keys.at + (j * 16 * staged.step[0] + k * depth * staged.step[1])
                held.load(staged, Place(keys.buffer, at), Place(loaded, j), is_first=False)
            for j in range(along):
                held.multiply(Place(scores, j), Place(queries, k), Place(loaded, j))
        return scores

    def _add_values(self, held: Fragments, powers: Buffer, values: Place, sums: Buffer) -> None:
        """Add the product of the exponentials and a piece of the values."""
        block, numbers, staged = self._block, self._shapes.second, self._values
        left, loaded = held.registers(1, "powers"), held.registers(1, "values")
        for k in range(self._columns // numbers.depth):
            for i in range(4):
                block.store(left, i, factor_of_sums(block, numbers, powers, k, i))
            for j in range(self._shapes.width // 16):
                at = values.at + (j * 16 * staged.step[0] + k * numbers.depth * staged.step[1])
                held.load(staged, Place(values.buffer, at), Place(loaded, 0), is_first=False)
                for n in range(2):
                    held.multiply(Place(sums, 2 * j + n), Place(left, 0), Place(loaded, n))
