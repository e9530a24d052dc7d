"""Reductions over the last dimensions, and all that is done to the same rows, a row at a time.

All passes over a row (the maximum, then the sum of exponentials, then the quotients) run one after
the other while the row is in the cache; rows are shared out among threads once. Short rows are
computed side by side, one in each lane, so that nothing is left of a vector and no lanes have to be
added up. Few long rows are cut into pieces, and every pass is shared out by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from composite.compiler.tvm.codegen.access import Lane
from composite.compiler.tvm.codegen.block import index, maximum, minimum, quotient
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.graph import ITEM_SIZE, Expr, Reduce, Tensor, compute_dtype
from composite.compiler.tvm.plan.row_stages import Rows, rows_of
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cpu.interleave import abreast, covering
from composite.compiler.tvm.strategy.cpu.rows.row_pieces import PIECE, RowPieces
from composite.compiler.tvm.strategy.cpu.rows.row_program import Pass, RowProgram, row_program
from composite.compiler.tvm.strategy.cpu.rows.row_sweep import Kept, Sweep
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.strategy.tasks import tasks

_TASK_ELEMENTS = 16384
"""Elements of the rows that one task computes, at least."""
_STRIP_ROWS = 8
_STRIP_ELEMENTS = 2048
"""Rows, and elements in them, that passes go over together: a few cycles for each element hide what
it takes to finish a row."""
_NEAR_ELEMENTS = 16384
"""So many elements stay in a cache from call to call; of more, those of the next rows are asked for
ahead. CPUs do not see by themselves what comes after several passes over some rows."""
_ACROSS = 2
"""Vectors that a row must fill; shorter ones are computed side by side."""


class RowStages:
    """Stages over rows."""

    name = "rows"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take reductions over the last dimensions, alone or with others on their rows."""
        rows = rows_of(stage)
        return None if rows is None else _Writer(stage, rows, context)


@dataclass(frozen=True)
class _Writer:
    stage: Stage
    rows: Rows
    context: Context

    def write(self) -> None:
        """Write the loops over rows."""
        program = row_program(self.stage, self.rows, self.context)
        _RowLoops(program, self.context).write()


class _RowLoops:
    def __init__(self, program: RowProgram, context: Context) -> None:
        self._program = program
        self._context = context
        self._block = context.block
        self._rows = context.size(product(program.rows))
        self._width = context.size(product(program.inner))
        self._lanes = _lanes(program, context)
        self._wide = self._lanes * covering(_abreast(program, context), self._lanes, self._last())

    def _last(self) -> Expr | int:
        return self._context.size(self._program.inner[-1])

    def write(self) -> None:
        few = self._rows < 2 * self._context.target.cores
        long = self._width >= 2 * PIECE
        if few is False or long is False:
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
        width, lanes = self._width, self._lanes
        across = isinstance(width, int) and width < _ACROSS * lanes
        if not across or not len(self._program.rows) == len(self._program.inner) == 1:
            self._share(1)
            return
        enough = self._rows >= lanes
        with self._block.when(enough):
            self._share(lanes)
        if enough is not True:
            with self._block.when(True) if enough is False else self._block.otherwise():
                self._share(1)

    def _share(self, step: int) -> None:
        """Share out the rows, ``step`` of which are computed side by side."""
        block = self._block
        groups = quotient(self._rows + (step - 1), step)
        size = maximum(1, self._width * step)
        near = self._context.choose("rows.strip", (512, _STRIP_ELEMENTS, 8192), _STRIP_ELEMENTS)
        strip = maximum(1, minimum(_STRIP_ROWS, quotient(near, size)))
        strips = quotient(groups + (strip - 1), strip)
        least = self._context.choose("rows.task", (4096, _TASK_ELEMENTS, 65536), _TASK_ELEMENTS)
        own = maximum(1, quotient(least, strip * size))

        def body(task: Expr) -> None:
            lanes = self._wide if step == 1 else self._lanes
            writer = _Strip(self._program, self._context, lanes, step, strip)
            first = block.bind(index(task * own), "first")
            with block.loop(minimum(own, strips - first), "s") as s:
                start = block.bind((first + s) * strip, "start")
                writer.write(start, block.bind(index(minimum(strip, groups - start)), "count"))

        cost = sum(one.cost for one in self._program.passes)
        cycles = quotient(self._rows * self._width * cost, self._lanes)
        tasks(self._context, quotient(strips + (own - 1), own), cycles, body)


class _Strip:
    """Some rows that fit into the cache together: each pass goes over all of them.

    So the next row's elements are worked on while a total is added up over the lanes.
    """

    def __init__(
        self, program: RowProgram, context: Context, lanes: int, step: int, rows: Expr | int
    ) -> None:
        self._program = program
        self._context = context
        self._block = context.block
        self._lanes = lanes
        self._step = step
        cut = len(program.rows)
        # Side by side, rows lie in another order while they are kept.
        self._in_place = program.in_place if step == 1 else {}
        own = [t for t in program.keeps if t not in self._in_place]
        sizes = {t: context.size(product(t.shape[cut:])) * step for t in own}
        self._kept = {
            t: self._block.workspace(maximum(1, size * rows), compute_dtype(t.dtype), "kept")
            for t, size in sizes.items()
        }
        self._size = context.size(product(program.inner)) * step
        elements = context.size(product(program.rows + program.inner))
        near = isinstance(elements, int) and elements <= _NEAR_ELEMENTS
        self._next = None if near or step > 1 else rows * self._size
        self._totals = {
            t: self._block.registers(_STRIP_ROWS, self._total_dtype(t), "totals")
            for one in program.passes
            for t in one.reductions
        }

    def _total_dtype(self, tensor: Tensor) -> str:
        dtype = compute_dtype(tensor.dtype)
        return dtype if self._step == 1 else f"{dtype}x{self._step}"

    def write(self, start: Expr, count: Expr) -> None:
        """Write all passes over ``count`` rows, or groups of rows, from ``start`` on."""
        known: list[Tensor] = []
        for one, values in zip(self._program.passes, self._program.values, strict=True):
            with self._block.loop(count, "r") as r:
                sweep = self._sweep(self._block.bind(start + r, "row"), r)
                for tensor in known:
                    sweep.know(tensor, self._load(tensor, r))
                sweep.learn(one.values)
                for tensor, total in zip(one.reductions, self._run(sweep, one), strict=True):
                    sweep.know(tensor, total)
                    self._block.store(self._totals[tensor], r, total)
                sweep.store_values(values)
            known += one.reductions

    def _load(self, tensor: Tensor, r: Expr) -> Expr:
        return self._block.let(tirx.BufferLoad(self._totals[tensor], [index(r)]))

    def _sweep(self, row: Expr, r: Expr) -> Sweep:
        if self._step == 1:
            place = unflatten(self._context, row, self._program.rows)
        else:
            last = self._context.size(self._program.rows[0]) - self._lanes
            place = [Lane(self._block.bind(minimum(row * self._step, last), "row"), self._lanes)]
        begin = self._block.bind(index(r * self._size), "begin") if self._kept else 0
        kept = {t: Kept(buffer, begin) for t, buffer in self._kept.items()}
        storages = self._context.space.storages
        kept |= {t: Kept(storages[s].buffer, None) for t, s in self._in_place.items()}
        sweep = Sweep(self._program, self._context, self._lanes, place, kept)
        if self._next is not None:
            sweep.fetch(self._next)
        return sweep

    def _run(self, sweep: Sweep, one: Pass) -> list[Expr]:
        size = self._context.size(self._program.inner[0])
        if self._step > 1 and isinstance(size, int):
            return [t.total() for t in sweep.run_across(one, size)]
        return [t.result() for t in sweep.run(one, 0, size)]


def _abreast(program: RowProgram, context: Context) -> int:
    roots = [t for one in program.passes for t in one.roots]
    stores = {t for one in program.passes for t in one.stores}

    def is_read(tensor: Tensor) -> bool:
        stored = context.space.storage(tensor) is not None and tensor not in stores
        return stored or isinstance(tensor.node, Reduce)

    return abreast(roots, is_read, context.target)


def _lanes(program: RowProgram, context: Context) -> int:
    """Return lanes for the narrowest dtype that is computed with; wider ones take two registers."""
    roots = [t for one in program.passes for t in one.roots] + [
        t for values in program.values for t in values
    ]
    dtypes = {compute_dtype(t.dtype) for t in roots} - {"bool"}
    narrow = any(ITEM_SIZE[d] == 4 for d in dtypes) or not dtypes
    return context.lanes("float32" if narrow else "float64")
