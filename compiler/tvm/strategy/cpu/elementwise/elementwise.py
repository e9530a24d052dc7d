"""Element-wise chains: one loop over the output, everything else computed in registers.

Dimensions that every operand either has or broadcasts are merged, so that the innermost loop is
long. It runs over whole vectors of several registers (:mod:`.interleave`); the last one overlaps
its neighbour instead of needing a tail; outputs then must not lie in inputs. Rows shorter than a
vector are computed element by element; but where each column is made in another way, such as the
four coordinates of boxes, a vector holds a column of many rows.
"""

from __future__ import annotations

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.ir.dims import Dim, divide
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE, compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.ir.views import Concat
from composite.compiler.tvm.ir.walk import reachable
from composite.compiler.tvm.plan.in_place import Forwards
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cost import chain_cost, is_read
from composite.compiler.tvm.strategy.cpu.elementwise.interleave import (
    interleave_in_row,
    interleaving,
)
from composite.compiler.tvm.strategy.indexing import elements, unflatten
from composite.compiler.tvm.strategy.merge import merge_dimensions
from composite.compiler.tvm.strategy.tasks import Tasks, TaskWriter
from composite.compiler.tvm.tir.block import ceil_quotient, index, maximum, minimum, quotient

_CHUNK = 8192
"""Elements that one task computes, at least, unless it is tuned."""
_COLUMNS = 8
"""Columns that are written side by side, at most."""


class Elementwise:
    """Any stage without an anchor."""

    name = "elementwise"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take what has no anchor."""
        return _Writer(stage, context) if stage.anchor is None else None


class _Writer(TaskWriter):
    def __init__(self, stage: Stage, context: Context) -> None:
        super().__init__(context)
        self._stage = stage
        self.forwards: Forwards = ()

    def task_sets(self) -> list[Tasks]:
        """Return the tasks: some rows, or a part of a row, of the merged dimensions."""
        context = self.context
        stage = merge_dimensions(self._stage, context)
        columns = _columns(stage, context)
        shape = stage.shape[:-1] if columns > 1 else stage.shape or (1,)
        inner = context.size(shape[-1])
        rows = elements(shape[:-1], context)
        lanes = _lanes(stage, context)
        total = elements(shape, context)
        some = [c for c in (2048, _CHUNK, 32768) if not isinstance(total, int) or c < total]
        chunk = context.choose("elementwise.chunk", some, _CHUNK) // columns
        per_row = maximum(1, ceil_quotient(inner, chunk))
        grouped = maximum(1, quotient(chunk, maximum(1, inner)))
        cycles = quotient(total * chain_cost(stage, context), lanes)
        run = _Run(stage, context, lanes, columns)
        # Side by side, a column is stored before the next one is read.
        whole = columns == 1 and run.is_in_place(shape[-1])
        self.forwards = context.forwards if whole else ()

        def body(task: Expr) -> None:
            block = context.block
            group = block.bind(quotient(task, per_row), "group")
            part = block.bind(task - group * per_row, "part")
            first = block.bind(index(group * grouped), "row")
            count = minimum(grouped, rows - first)
            with block.loop(count, "r") as r:
                start = block.bind(index(part * chunk), "start")
                stop = block.bind(index(minimum(start + chunk, inner)), "stop")
                run.write(block.bind(first + r, "row"), start, stop, inner)

        groups = quotient(rows + (grouped - 1), grouped)
        return [Tasks((Elementwise.name, columns, *stage.shape), groups * per_row, cycles, body)]


class _Run:
    """Writes a run of elements within one row, or of rows of several columns."""

    def __init__(self, stage: Stage, context: Context, lanes: int, columns: int) -> None:
        self._stage = stage
        self._context = context
        self._lanes = lanes
        self._columns = columns
        self._outer = stage.shape[: -2 if columns > 1 else -1]
        fit = interleaving(
            stage.stores, lambda tensor: is_read(tensor, stage, context), context.target
        )
        # Where but one fits, something else than arithmetic may be between.
        some = (1, 2, 4) if fit > 1 else (1,)
        self._interleave = context.choose("elementwise.interleave", some, fit)

    def is_in_place(self, inner: Dim) -> bool:
        """Whether no element of a row of this size is computed twice."""
        width = self._widths(inner if isinstance(inner, int) else None)[0]
        is_short = isinstance(inner, int) and inner < width
        return is_short or divide(inner, width) is not None

    def write(self, row: Expr, start: Expr, stop: Expr, inner: Expr | int) -> None:
        indices = unflatten(self._context, row, self._outer) if self._outer else []
        widths = self._widths(inner if isinstance(inner, int) else None)
        self._run(indices, start, stop, inner, widths)

    def _widths(self, inner: int | None) -> list[int]:
        """Return the widths of vectors for a row, the widest first; None is any size."""
        most = self._interleave
        if inner is not None:
            return [interleave_in_row(most, self._lanes, inner) * self._lanes]
        return [most * self._lanes, self._lanes] if most > 1 else [self._lanes]

    def _run(
        self,
        indices: list[Index],
        start: Expr,
        stop: Expr,
        inner: Expr | int,
        widths: list[int],
    ) -> None:
        """Write the run in vectors of the first width that is not longer than a row."""
        block = self._context.block
        if not widths:
            with block.loop(stop - start, "e") as e:
                self._element([*indices, start + e])
            return
        width, *others = widths
        is_long = inner >= width if isinstance(inner, int) else index(inner) >= width
        with (
            block.when(is_long),
            block.loop(ceil_quotient(stop - start, width), "v") as v,
        ):
            at = block.bind(index(minimum(start + v * width, inner - width)), "at")
            self._element([*indices, Lane(at, width)])
        if is_long is not True:
            with block.otherwise():
                self._run(indices, start, stop, inner, others)

    def _element(self, at: list[Index]) -> None:
        access = self._context.access()
        if not self._stage.shape:
            at = []
        if self._columns > 1 or not any(self._context.forwards):
            for tensor in self._stage.stores:
                for column in range(self._columns):
                    place = [*at, column] if self._columns > 1 else at
                    self._context.store(tensor, place, access.compute(tensor, place))
            return
        values = [access.compute(tensor, at) for tensor in self._stage.stores]
        for tensor, value in zip(self._stage.stores, values, strict=True):
            self._context.store(tensor, at, value)


def _columns(stage: Stage, context: Context) -> int:
    """Return how many columns are computed side by side; 1 if elements are computed in a row."""
    columns = stage.shape[-1] if len(stage.shape) > 1 else 1
    if not isinstance(columns, int) or not 1 < columns <= _COLUMNS:
        return 1

    def ends(tensor: Tensor) -> bool:
        return is_read(tensor, stage, context)

    found = reachable(stage.stores, lambda t: () if ends(t) else t.node.operands)
    differ = any(
        isinstance(t.node, Concat) and t.node.axis == t.rank - 1 and t.shape[-1] == columns
        for t in found
        if not ends(t)
    )
    return columns if differ else 1


def _lanes(stage: Stage, context: Context) -> int:
    """Return lanes for the narrowest dtype that is computed with; wider ones take two registers."""
    dtypes = {compute_dtype(t.dtype) for t in stage.stores} - {"bool"}
    narrow = any(ITEM_SIZE[d] == 4 for d in dtypes) or not dtypes
    return context.lanes("float32" if narrow else "float64")
