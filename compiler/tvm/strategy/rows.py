"""Reductions over the last dimensions, and all that is done to the same rows, a row at a time.

All passes over a row (the maximum, then the sum of exponentials, then the quotients) run one after
the other while the row is in the cache; rows are shared out among threads once. Short rows are
computed side by side, one in each lane, so that nothing is left of a vector and no lanes have to be
added up. Few long rows are cut into pieces, and every pass is shared out by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx

from ..access import Index, Lane
from ..block import Buffer, index, maximum, minimum, quotient
from ..dims import product
from ..graph import ITEM_SIZE, Expr, Tensor, compute_dtype
from ..row_stages import rows_of
from ..stage import Stage
from .base import Context, tasks, unflatten
from .row_pieces import PIECE, RowPieces
from .row_program import Pass, RowProgram, row_program
from .row_sweep import Sweep

_TASK_ELEMENTS = 16384
"""Elements of the rows that one task computes, at least."""
_ACROSS = 2
"""Vectors that a row fills at most if rows are computed side by side."""


class Rows:
    """Stages over rows."""

    name = "rows"

    def fits(self, stage: Stage, context: Context) -> bool:  # noqa: ARG002
        """Take reductions over the last dimensions, alone or with others on their rows."""
        return rows_of(stage) is not None

    def emit(self, stage: Stage, context: Context) -> None:
        """Write the loops over rows."""
        _Writer(row_program(stage, context), context).write()


class _Writer:
    def __init__(self, program: RowProgram, context: Context) -> None:
        self._program = program
        self._context = context
        self._block = context.block
        self._rows = context.size(product(program.rows))
        self._width = context.size(product(program.inner))
        self._lanes = _lanes(program, context)

    def write(self) -> None:
        few = self._rows < 2 * self._context.target.cores
        long = self._width >= 2 * PIECE
        if len(self._program.inner) > 1 or few is False or long is False:
            self._whole_rows()
        elif few is True and long is True:
            RowPieces(self._program, self._context, self._lanes).write()
        else:
            few_long = [c for c in (few, long) if not isinstance(c, bool)]
            with self._block.when(few_long[0] if len(few_long) == 1 else tirx.And(*few_long)):
                RowPieces(self._program, self._context, self._lanes).write()
            with self._block.otherwise():
                self._whole_rows()

    def _whole_rows(self) -> None:
        width = self._width
        across = isinstance(width, int) and width <= _ACROSS * self._lanes
        across = across and len(self._program.rows) == len(self._program.inner) == 1
        if not across:
            self._share(1, self._row)
            return
        lanes = self._lanes
        enough = self._rows >= lanes
        with self._block.when(enough):
            self._share(lanes, self._rows_across)
        if not isinstance(enough, bool):
            with self._block.otherwise():
                self._share(1, self._row)
        elif not enough:
            self._share(1, self._row)

    def _share(self, step: int, write: Callable[[Expr, dict[Tensor, Buffer]], None]) -> None:
        """Share out groups of ``step`` rows."""
        block = self._block
        groups = quotient(self._rows + (step - 1), step)
        own = maximum(1, quotient(_TASK_ELEMENTS, maximum(1, self._width * step)))

        def body(task: Expr) -> None:
            buffers = self._row_buffers(step)
            first = block.bind(index(task * own), "first")
            with block.loop(minimum(own, groups - first), "r") as r:
                write(block.bind((first + r) * step, "row"), buffers)

        cost = sum(one.cost for one in self._program.passes)
        cycles = quotient(self._rows * self._width * cost, self._lanes)
        tasks(self._context, quotient(groups + (own - 1), own), cycles, body)

    def _row_buffers(self, step: int) -> dict[Tensor, Buffer]:
        cut = len(self._program.rows)
        sizes = {t: self._context.size(product(t.shape[cut:])) for t in self._program.keeps}
        return {
            t: self._block.workspace(maximum(1, size * step), compute_dtype(t.dtype), "kept")
            for t, size in sizes.items()
        }

    def _row(self, row: Expr, buffers: dict[Tensor, Buffer]) -> None:
        place = unflatten(self._context, row, self._program.rows)
        sweep = Sweep(self._program, self._context, self._lanes, place, (buffers, 0))
        size = self._context.size(self._program.inner[-1])
        self._passes(sweep, lambda one: [t.result() for t in sweep.run(one, 0, size)])

    def _rows_across(self, row: Expr, buffers: dict[Tensor, Buffer]) -> None:
        first = self._block.bind(minimum(row, self._rows - self._lanes), "row")
        place: list[Index] = [Lane(first, self._lanes)]
        sweep = Sweep(self._program, self._context, self._lanes, place, (buffers, 0))
        width = int(self._width)
        self._passes(sweep, lambda one: [t.total() for t in sweep.run_across(one, width)])

    def _passes(self, sweep: Sweep, run: Callable[[Pass], list[Expr]]) -> None:
        for one, values in zip(self._program.passes, self._program.values, strict=True):
            sweep.learn(one.values)
            for tensor, total in zip(one.reductions, run(one), strict=True):
                sweep.know(tensor, total)
            sweep.store_values(values)


def _lanes(program: RowProgram, context: Context) -> int:
    """Return lanes for the narrowest dtype that is computed with; wider ones take two registers."""
    roots = [t for one in program.passes for t in one.roots] + [
        t for values in program.values for t in values
    ]
    dtypes = {compute_dtype(t.dtype) for t in roots} - {"bool"}
    narrow = any(ITEM_SIZE[d] == 4 for d in dtypes) or not dtypes
    return context.lanes("float32" if narrow else "float64")
