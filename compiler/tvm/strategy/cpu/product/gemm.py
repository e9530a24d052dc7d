"""Matrix products by register tiles, with whatever is element-wise behind them.

One side of the product supplies vectors, the other single elements to broadcast (:mod:`.tile`).
The vector side is packed into panels by :mod:`.pack`; the other side is read where it lies, unless
it is of fewer bits than sums: then :mod:`.pack_rows` packs it, too. What a step of k takes is an
element, or a group of them where the target multiplies those (:mod:`.steps`). Each block of the
result goes through a buffer of sums, from which :mod:`..epilogue` computes the element-wise work in
the result's own layout; a short epilogue is written for the registers of a tile instead.
:mod:`.blocking` says what a task takes; no task waits for another.

* Second factor ``[K, N]``, or constant: vectors run along N. Packing copies; a constant factor is
  packed before the first call (:mod:`.panels`), so that its layout costs nothing.
* Second factor ``[N, K]``: vectors run along M. Packing transposes the first factor instead of the
  weights, which are read once and in order, and the epilogue transposes the sums.

The cheaper side is chosen by counting. Vectors never need a tail: the last one overlaps. Where the
call decides the number of rows, a single one still goes the way of a matrix-vector product.
"""

from __future__ import annotations

from dataclasses import replace

from tvm import tirx

from composite.compiler.tvm.codegen.access import Strided
from composite.compiler.tvm.ir.dims import Dim, ceildiv, divide, may_be
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.machine import PAGE_BYTES
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cost import chain_cost
from composite.compiler.tvm.strategy.cpu.elementwise.epilogue import fits_registers
from composite.compiler.tvm.strategy.cpu.product.axpy import Axpy
from composite.compiler.tvm.strategy.cpu.product.blocking import Sizes, choose_blocking, guess
from composite.compiler.tvm.strategy.cpu.product.dots import Dots
from composite.compiler.tvm.strategy.cpu.product.gemm_task import GemmTask
from composite.compiler.tvm.strategy.cpu.product.panel_product import Arrangement
from composite.compiler.tvm.strategy.cpu.product.panels import pack_once
from composite.compiler.tvm.strategy.cpu.product.product import (
    Product,
    in_place,
    is_narrow,
    product_of,
    step_of,
    work_cycles,
)
from composite.compiler.tvm.strategy.cpu.product.steps import Part, Step
from composite.compiler.tvm.strategy.cpu.product.tile import Tile, other_tiles, thin_tiles, tiles
from composite.compiler.tvm.strategy.cpu.product.turned import TurnedSquares
from composite.compiler.tvm.strategy.indexing import elements, unflatten
from composite.compiler.tvm.strategy.tasks import Tasks, TaskWriter
from composite.compiler.tvm.tir.block import ceil_quotient, index, minimum, quotient, remainder

_PAGE_CONFLICTS = 0.1
"""Rows that begin a page apart take each other's place in an L1 cache: what each row of a tile
costs above those of the widest one, as a part."""
_REFETCHED = 3.0
"""Steps that begin a page apart do so, too: cycles that a tile then waits at each for its line."""

_STRIDED, _STRIDED_FAR = 1.0, 10.0
"""Cycles of a tile where each step reads another cache line: 0.4 to 1.8 were measured of the first
factor. The second one is weights, as a rule, which come from memory: with few rows, a line each
step made a product of 16 MB of them take 1.5 times as long."""
_TRANSPOSED = 5.0
"""Cycles of a vector of sums that is turned on its way to the result, but for half a cycle a lane:
9 were measured with 8 lanes, 13 with 16."""

_COLUMNS_OF_TASK = 128
"""About how many columns rows are packed for."""


class Gemm:
    """Stages whose anchor is a product of floats or int32, one factor of which lies in memory."""

    name = "gemm"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take products with an arrangement."""
        product = product_of(stage)
        arrangement = None if product is None else arrange(product, context)
        return None if arrangement is None else _Writer(arrangement, context)


class _Writer(TaskWriter):
    def __init__(self, arrangement: Arrangement, context: Context) -> None:
        super().__init__(context)
        self._arrangement = arrangement
        # Thin products and those whose last vectors overlap compute some elements twice.
        once = isinstance(arrangement.product.rows, int) and _stores_once(arrangement, context)
        self.forwards = context.forwards if once else ()

    def task_sets(self) -> list[Tasks]:
        """Return the tasks, and before them those of a single row where the call decides."""
        context, product = self.context, self._arrangement.product
        single = replace(product, single=True)
        found = (one.match_product(single, context) for one in (Dots(), TurnedSquares(), Axpy()))
        matvec = next((writer for writer in found if writer is not None), None)
        tiled = tiled_tasks(self._arrangement, context)
        if isinstance(product.rows, int) or matvec is None or not may_be(product.rows, 1):
            return [tiled]
        is_single = tirx.EQ(index(context.size(product.rows)), index(1))
        return [replace(matvec.tasks(), condition=is_single), tiled]


def arrange(product: Product, context: Context) -> Arrangement | None:
    """Return the arrangement to use, the cheapest by default, or None if there is none."""
    counted: list[Arrangement] = []
    others: list[Arrangement] = []
    for swapped in (False, True):
        left = (product.node.a, product.node.transpose_a)
        right = (product.node.b, not product.node.transpose_b)
        vectors, rows = (left, right) if swapped else (right, left)
        step = step_of(product, context, swapped=swapped)
        where = _broadcast_at(product, rows, context, step)
        if where is None and not is_narrow(rows[0], context):
            continue
        packing = context.packing(vectors[0])
        is_thin = packing is not None and not swapped
        thin = thin_tiles(context.target, product.rows) if is_thin else []
        usual = [*thin, *tiles(context.target)]
        for found, shapes in ((counted, usual), (others, other_tiles(context.target))):
            for tile in shapes:
                one = Arrangement(product, vectors, rows, where, swapped, tile, packing, step)
                found.append(_with_crowded_rows_packed(one, context))
    cheapest = min(counted, key=lambda a: estimate(a, context), default=None)
    if cheapest is None:
        return None
    # If one side is packed before the tasks, the arrangements that pack in the tasks are no choice.
    named = {_name(a): a for a in [*counted, *others] if a.is_packed == cheapest.is_packed}
    return named[context.choose("gemm.tile", list(named), _name(cheapest))]


def _with_crowded_rows_packed(arrangement: Arrangement, context: Context) -> Arrangement:
    """Return an arrangement that packs its rows where to read them in place costs more."""
    if not (arrangement.broadcast[1] and _are_pages_apart(arrangement)):
        return arrangement
    columns, rows = map(guess, _counts(arrangement))
    vectors = ceildiv(columns, context.lanes(arrangement.product.dtype))
    panels = ceildiv(vectors, arrangement.tile.vectors)
    waits = (
        panels
        * ceildiv(rows, arrangement.tile.rows)
        * guess(arrangement.product.depth)
        * _REFETCHED
    )
    packed = replace(arrangement, broadcast_at=None)
    return packed if _row_packing(packed, context) < waits else arrangement


def _row_packing(arrangement: Arrangement, context: Context) -> float:
    """Return about how many cycles tasks of some columns each take to pack their rows."""
    columns, rows = map(guess, _counts(arrangement))
    lanes = context.lanes(arrangement.product.dtype)
    copies = ceildiv(ceildiv(columns, lanes) * lanes, _COLUMNS_OF_TASK)
    depth = ceildiv(guess(arrangement.product.depth), arrangement.step.size)
    return copies * rows * depth * (4.0 if arrangement.broadcast[1] else 2.0) / lanes


def _broadcast_at(
    product: Product, rows: tuple[Tensor, bool], context: Context, step: Step
) -> Strided | None:
    """Return where rows lie, if they can be multiplied as they are: groups as neighbours."""
    tensor, k_first = rows
    if not step.is_group:
        return in_place(tensor, product.dtype, context)
    if step.rows != Part(tensor.dtype):
        return None
    where = in_place(tensor, tensor.dtype, context)
    is_whole = isinstance(product.depth, int) and product.depth % step.size == 0
    lies = where is not None and not k_first and where.strides[-1] == 1
    return where if lies and is_whole else None


def _name(arrangement: Arrangement) -> str:
    """Return a tile and what its vectors run along: ``columns 12x2``."""
    return f"{'rows' if arrangement.swapped else 'columns'} {arrangement.tile}"


def _stores_once(arrangement: Arrangement, context: Context) -> bool:
    """Return whether no vector of the result overlaps another one."""
    product = arrangement.product
    vectors = arrangement.tile.vectors if fits_registers(product.stage, context) else 1
    whole = divide(product.columns, context.lanes(product.dtype) * vectors) is not None
    return whole and not arrangement.swapped


def _counts(arrangement: Arrangement) -> tuple[Dim, Dim]:
    """Return how many vector elements and how many rows there are."""
    product = arrangement.product
    if arrangement.swapped:
        return product.rows, product.columns
    return product.columns, product.rows


def estimate(arrangement: Arrangement, context: Context) -> float:
    """Return the cycles that an arrangement would take on one core, roughly.

    Where each panel is a task, and threads share them, those of the last ones may have no work.
    """
    columns, row_count = _counts(arrangement)
    lanes = context.lanes(arrangement.product.dtype)
    vectors = ceildiv(guess(columns), lanes)
    step, tile = arrangement.step, arrangement.tile
    rows, depth = guess(row_count), guess(arrangement.product.depth)
    depth = ceildiv(depth, step.size)
    high = ceildiv(rows, ceildiv(rows, tile.rows))  # balanced: the larger of the two sizes
    panels = ceildiv(vectors, tile.vectors)
    cycles = Tile(high, tile.vectors).cycles(context.machine, groups=step.is_group, lost=1.0)
    if isinstance(row_count, int) and row_count <= tile.rows and _is_shared(arrangement, context):
        panels = ceildiv(panels, context.target.cores) * context.target.cores
    multiply = rows / high * panels * cycles * depth
    if not arrangement.broadcast[1] and _are_pages_apart(arrangement):
        least = min(one.rows for one in tiles(context.target))
        multiply *= 1.0 + _PAGE_CONFLICTS * max(0, high - least)
    if arrangement.broadcast_at is None:
        multiply += _row_packing(arrangement, context)
    elif arrangement.broadcast[1]:  # broadcast along [K, count]
        strided = _STRIDED_FAR if arrangement.swapped else _STRIDED
        multiply += panels * ceildiv(rows, high) * depth * strided
    pack = (
        0.0 if arrangement.is_packed else vectors * depth * (2.0 if arrangement.vectors[1] else 4.0)
    )
    return multiply + pack + _store(arrangement, rows, guess(columns), context)


def _store(arrangement: Arrangement, rows: int, columns: int, context: Context) -> float:
    """Return about how many cycles what follows the sums takes more than in whole vectors."""
    lanes = context.lanes(arrangement.product.dtype)
    vectors = ceildiv(columns, lanes)
    if arrangement.swapped:
        return rows * vectors * (_TRANSPOSED + lanes / 2)
    if columns < lanes:  # an element at a time
        return rows * columns * (1.5 + chain_cost(arrangement.product.stage, context))
    return rows * vectors * 1.5


def _are_pages_apart(arrangement: Arrangement) -> bool:
    """Return whether rows that are read in place, or their steps, begin some pages apart."""
    where = arrangement.broadcast_at
    if where is None or not isinstance(where.strides[-2], int):
        return False
    pitch = where.strides[-2] * ITEM_SIZE[where.storage.dtype]
    return pitch > 0 and pitch % PAGE_BYTES == 0


def _is_shared(arrangement: Arrangement, context: Context) -> bool:
    """Return whether the factor is so large that it is worth several threads that no loop has."""
    cycles = work_cycles(arrangement.product, context, 0)
    return context.trips is None and isinstance(cycles, int) and cycles >= context.machine.parallel


def tiled_tasks(arrangement: Arrangement, context: Context) -> Tasks:
    """Return the tasks of an arrangement."""
    product, block, tile = arrangement.product, context.block, arrangement.tile
    vectors_first, rows_first = arrangement.vectors[1], arrangement.broadcast[1]
    lanes = context.lanes(product.dtype)
    columns, row_count = _counts(arrangement)
    rows, step = context.size(row_count), arrangement.step
    depth = step.count(context.size(product.depth))
    deep = ceildiv(guess(product.depth), step.size)
    sizes = Sizes.of(product.batch, columns, lanes, (row_count, rows), (deep, depth))
    blocking = choose_blocking(
        sizes,
        arrangement.tile,
        lanes,
        context,
        k_first=arrangement.vectors[1],
        packed=arrangement.is_packed,
        by_rows=not (arrangement.swapped or fits_registers(product.stage, context)),
    )
    vectors = ceil_quotient(context.size(columns), lanes)
    groups = ceil_quotient(vectors, blocking.group)
    share = block.bind(blocking.rows, "share")
    chunks = quotient(rows + (share - 1), share)
    batches = elements(product.batch, context)
    rows_first = not arrangement.swapped and sizes.rows >= sizes.vectors * lanes
    cycles = work_cycles(product, context, quotient(rows * vectors * batches * depth, 2))
    packed = None
    if arrangement.packing is not None:
        factor = arrangement.vectors
        packed = pack_once(
            context, arrangement.packing, factor, product.dtype, tile, blocking, step
        )

    def body(task: Expr) -> None:
        batch = block.bind(quotient(task, groups * chunks), "batch")
        rest = block.bind(remainder(task, groups * chunks), "rest")
        # A thread takes tasks that follow each other: with the longer side of the result, it shares
        # fewer lines with others, and reads the larger factor alone.
        if rows_first:
            chunk, group = quotient(rest, groups), remainder(rest, groups)
        else:
            chunk, group = remainder(rest, chunks), quotient(rest, chunks)
        group = block.bind(group, "group")
        first = block.bind(chunk * share, "first")
        count = block.bind(minimum(share, rows - first), "count")
        where = unflatten(context, batch, product.batch) if product.batch else []
        GemmTask(arrangement, blocking, context, where, packed).write(group, first, count)

    alike = (arrangement.swapped, tile, arrangement.is_packed, vectors_first, rows_first, step)
    key = (Gemm.name, *product.sizes, *alike, blocking.group)
    return Tasks(key, batches * groups * chunks, cycles, body)
