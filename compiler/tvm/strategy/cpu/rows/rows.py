"""Reductions over the last dimensions, and all that is done to the same rows, a row at a time.

All sweeps over a row (the maximum, then the sum of exponentials, then the quotients) run one after
the other while the row is in the cache, and threads share the rows. Rows shorter than two vectors
are computed side by side, a row in each lane: no lane of a vector is wasted, and no total has to be
added up over lanes. A few long rows are cut into pieces, and threads share the pieces of one sweep
before the next sweep begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from composite.compiler.tvm.codegen.access import Lane
from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE, compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.in_place import Forwards
from composite.compiler.tvm.plan.row_stages import Rows, rows_of
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cpu.elementwise.interleave import (
    interleave_in_row,
    interleaving,
)
from composite.compiler.tvm.strategy.cpu.rows.row_loops import Kept, RowLoops
from composite.compiler.tvm.strategy.cpu.rows.row_pieces import (
    RowPieces,
    piece_elements,
)
from composite.compiler.tvm.strategy.cpu.rows.take_over import TakenOver
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.strategy.row_program import RowProgram, Sweep, row_program
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import index, maximum, minimum, quotient

_TASK_ELEMENTS = 4096
"""Elements of the rows that one task computes, at least."""
_BLOCK_ROWS = 8
"""Rows that a sweep goes over before the next sweep begins, as far as the L1 cache has room for
them: the work on one row then hides the latency of adding up the totals of another."""
_ACROSS = 2
"""Vectors that a row must fill; shorter ones are computed side by side."""
_NOTHING = TakenOver((), ())


class RowStages:
    """Stages over rows."""

    name = "rows"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take reductions over the last dimensions, alone or with others on their rows."""
        rows = rows_of(stage)
        return None if rows is None else _Writer(stage, rows, context)


@dataclass
class _Writer:
    stage: Stage
    rows: Rows
    context: Context
    forwards: Forwards = ()

    def write(self) -> None:
        """Write the loops over rows."""
        program = row_program(self.stage, self.rows, self.context)
        loops = _StageLoops(program, self.context)
        loops.write()
        self.forwards = loops.taken.forwards


class _StageLoops:
    def __init__(self, program: RowProgram, context: Context) -> None:
        self._program = program
        self._context = context
        self._block = context.block
        self._rows = context.size(product(program.rows))
        self._width = context.size(product(program.inner))
        self._lanes = _lanes(program, context)
        # One order of a row's sums, whatever else is computed, and however many rows there are.
        most = 1 if context.invariant else _interleaving(program, context)
        self._wide = self._lanes * interleave_in_row(most, self._lanes, self._last())
        self._few = context.invariant or self._rows < 2 * context.target.cores
        self._long = self._width >= 2 * piece_elements(context)
        one_by_one = self._is_whole() and not self._is_across()
        self.taken = TakenOver.of(program, context) if one_by_one else _NOTHING

    def _is_whole(self) -> bool:
        """Return whether no row is ever cut into pieces."""
        return self._few is False or self._long is False

    def _is_across(self) -> bool:
        """Return whether rows are computed side by side, as far as there are enough of them."""
        vectors = 1 if self._context.invariant else _ACROSS
        is_short = isinstance(self._width, int) and self._width < vectors * self._lanes
        return is_short and len(self._program.rows) == len(self._program.inner) == 1

    def _last(self) -> Expr | int:
        return self._context.size(self._program.inner[-1])

    def write(self) -> None:
        few, long = self._few, self._long
        if self._is_whole():
            self._whole_rows()
        elif few is True and long is True:
            RowPieces(self._program, self._context, self._wide).write()
        else:
            few_long = [c for c in (few, long) if not isinstance(c, bool)]
            with self._block.when(few_long[0] if len(few_long) == 1 else tirx.And(*few_long)):
                RowPieces(self._program, self._context, self._wide).write()
            with self._block.otherwise():
                self._whole_rows()

    def _whole_rows(self) -> None:
        lanes = self._lanes
        if not self._is_across():
            self._share(1)
            return
        enough = self._rows >= lanes
        with self._block.when(enough):
            self._share(lanes)
        if enough is not True:
            with self._block.otherwise():
                self._share(1)

    def _share(self, step: int) -> None:
        """Share out the rows, ``step`` of which are computed side by side."""
        block = self._block
        groups = quotient(self._rows + (step - 1), step)
        size = maximum(1, self._width * step)
        swept = self._context.machine.swept // ITEM_SIZE["float32"]
        near = self._context.choose("rows.block", (512, 2048, 8192), swept)
        rows_of_block = maximum(1, minimum(_BLOCK_ROWS, quotient(near, size)))
        blocks = quotient(groups + (rows_of_block - 1), rows_of_block)
        least = self._context.choose("rows.task", (_TASK_ELEMENTS, 16384, 65536), _TASK_ELEMENTS)
        own = maximum(1, quotient(least, rows_of_block * size))

        def body(task: Expr) -> None:
            lanes = self._wide if step == 1 else self._lanes
            writer = _RowBlock(self._program, self._context, lanes, step, rows_of_block, self.taken)
            first = block.bind(index(task * own), "first")
            with block.loop(minimum(own, blocks - first), "s") as s:
                start = block.bind((first + s) * rows_of_block, "start")
                writer.write(
                    start, block.bind(index(minimum(rows_of_block, groups - start)), "count")
                )

        cost = sum(one.cost for one in self._program.sweeps)
        cycles = quotient(self._rows * self._width * cost, self._lanes)
        tasks(self._context, quotient(blocks + (own - 1), own), cycles, body)


class _RowBlock:
    """Some rows that fit into the cache together: each sweep goes over all of them.

    The elements of the next row are computed while a total of this one is added up over the lanes.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - rows, how they are cut, and what they lie in
        self,
        program: RowProgram,
        context: Context,
        lanes: int,
        step: int,
        rows: Expr | int,
        taken: TakenOver,
    ) -> None:
        self._program = program
        self._taken = taken
        self._context = context
        self._block = context.block
        self._lanes = lanes
        self._step = step
        cut = len(program.rows)
        # Rows side by side are kept transposed, so they cannot be kept in the result's place.
        self._in_place = program.in_place if step == 1 else {}
        own = [t for t in program.keeps if t not in self._in_place]
        sizes = {t: context.size(product(t.shape[cut:])) * step for t in own}
        self._kept = {
            t: self._block.workspace(maximum(1, size * rows), compute_dtype(t.dtype), "kept")
            for t, size in sizes.items()
        }
        self._size = context.size(product(program.inner)) * step
        elements = context.size(product(program.rows + program.inner))
        # The hardware does not foresee what follows several sweeps over the same rows: the next
        # rows are prefetched, unless a cache still has them from the call before.
        near = isinstance(elements, int) and elements <= piece_elements(context)
        self._next = None if near or step > 1 else rows * self._size
        self._totals = {
            t: self._block.registers(_BLOCK_ROWS, self._total_dtype(t), "totals")
            for one in program.sweeps
            for t in one.reductions
        }

    def _total_dtype(self, tensor: Tensor) -> str:
        dtype = compute_dtype(tensor.dtype)
        return dtype if self._step == 1 else f"{dtype}x{self._step}"

    def write(self, start: Expr, count: Expr) -> None:
        """Write all sweeps over ``count`` rows, or groups of rows, from ``start`` on."""
        known: list[Tensor] = []
        reads = self._taken.reads or [()] * len(self._program.sweeps)
        sweeps = zip(self._program.sweeps, self._program.values, reads, strict=True)
        for one, values, overwritten in sweeps:
            with self._block.loop(count, "r") as r:
                loops = self._loops(self._block.bind(start + r, "row"), r)
                loops.overwrite(overwritten)
                for tensor in known:
                    loops.know(tensor, self._load(tensor, r))
                loops.learn(one.values)
                for tensor, total in zip(one.reductions, self._run(loops, one), strict=True):
                    loops.know(tensor, total)
                    self._block.store(self._totals[tensor], r, total)
                loops.store_values(values)
            known += one.reductions

    def _load(self, tensor: Tensor, r: Expr) -> Expr:
        return self._block.let(tirx.BufferLoad(self._totals[tensor], [index(r)]))

    def _loops(self, row: Expr, r: Expr) -> RowLoops:
        if self._step == 1:
            place = unflatten(self._context, row, self._program.rows)
        else:
            last = self._context.size(self._program.rows[0]) - self._lanes
            place = [Lane(self._block.bind(minimum(row * self._step, last), "row"), self._lanes)]
        begin = self._block.bind(index(r * self._size), "begin") if self._kept else 0
        kept = {t: Kept(buffer, begin) for t, buffer in self._kept.items()}
        storages = self._context.space.storages
        for tensor, store in self._in_place.items():
            where = storages[store]
            kept[tensor] = Kept(where.buffer, None, where.offset)
        loops = RowLoops(self._program, self._context, self._lanes, place, kept)
        if self._next is not None:
            loops.fetch(self._next)
        return loops

    def _run(self, loops: RowLoops, one: Sweep) -> list[Expr]:
        size = self._context.size(self._program.inner[0])
        if self._step > 1 and isinstance(size, int):
            return [t.total() for t in loops.run_across(one, size)]
        return [t.result() for t in loops.run(one, 0, size)]


def _interleaving(program: RowProgram, context: Context) -> int:
    roots = [t for one in program.sweeps for t in one.roots]
    stores = {t for one in program.sweeps for t in one.stores}

    def is_read(tensor: Tensor) -> bool:
        stored = context.space.storage(tensor) is not None and tensor not in stores
        return stored or isinstance(tensor.node, Reduce)

    return interleaving(roots, is_read, context.target)


def _lanes(program: RowProgram, context: Context) -> int:
    """Return lanes for the narrowest dtype that is computed with; wider ones take two registers."""
    if context.invariant:
        return context.lanes("float32")
    roots = [t for one in program.sweeps for t in one.roots] + [
        t for values in program.values for t in values
    ]
    dtypes = {compute_dtype(t.dtype) for t in roots} - {"bool"}
    narrow = any(ITEM_SIZE[d] == 4 for d in dtypes) or not dtypes
    return context.lanes("float32" if narrow else "float64")
