"""Rows: all reductions over a row and all that is made of them, by the threads that share the row.

A row of a known size that fits is held in registers: each thread loads its elements once, all
sweeps are over what it holds. A longer row, or one of unknown size, is read again by each sweep.
A short row has a part of a warp to itself, a long one a block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from tvm import tirx

from composite.compiler.tvm.codegen.access import Access, Index
from composite.compiler.tvm.codegen.device_block import WARP, Grid
from composite.compiler.tvm.ir.dims import ceildiv, product
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.row_stages import Rows, rows_of
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.group import Group, Total
from composite.compiler.tvm.strategy.cuda.vectors import (
    Lanes,
    Loads,
    device_block,
    read_in_place,
    threads_of_block,
    vector_width,
)
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.strategy.row_program import RowProgram, Sweep, row_program
from composite.compiler.tvm.tir.block import index, minimum, quotient, remainder

_THREADS = 128
"""Threads of a block whose warps have rows of their own."""
_HELD = 32
"""Elements of a row that a thread holds in registers, at most; half as many in a block of 1024."""
_VECTORS = 4
"""Vectors of a thread in a long row: so many loads are under way at a time."""
_LARGEST = 1024
"""Threads of a block, at most."""
_HELD_COST = 1024
"""Instructions that are written out for the elements that a thread holds, at most."""
_LONG = 256
"""Threads of a block for a row of unknown size, unless it is tuned."""


class _Piece(NamedTuple):
    """Elements of a thread side by side, and whether they are within the row; None is always."""

    lanes: Lanes
    inside: Expr | None


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
        """Write one launch."""
        program = row_program(self.stage, self.rows, self.context)
        _RowLaunch(program, self.context).write()


class _RowLaunch:
    def __init__(self, program: RowProgram, context: Context) -> None:
        self._program = program
        self._context = context
        self._block = device_block(context)
        self._shape = program.rows + program.inner
        width = product(program.inner)
        self._width = context.size(width)
        roots = [t for one in program.sweeps for t in one.roots]
        stores = [t for one in program.sweeps for t in one.stores]
        own = [*stores, *(t for values in program.values for t in values)]
        # Its own results are computed, never loaded: nobody has stored them yet.
        self._reading = replace(context, space=context.space.without(own))
        self._read = read_in_place(roots, self._shape, {*stores}, context)
        everything = [*self._read, *stores]
        self._lanes = vector_width(everything, width, context) if isinstance(width, int) else 1
        self._size, self._held = self._choose(width if isinstance(width, int) else None)

    def _choose(self, width: int | None) -> tuple[int, int]:
        """Return the threads of a row, and how many vectors each of them holds; 0 is none."""
        if width is None:
            threads = threads_of_block("rows.threads", (32, 128, _LONG, 512), _LONG, self._context)
            return threads, 0
        vectors = ceildiv(width, self._lanes)
        if width <= WARP * _HELD:
            size = min(WARP, _power_of_two(vectors))
        else:
            own = max(8, self._lanes * _VECTORS)
            size = self._block.threads or min(_LARGEST, max(64, _power_of_two(ceildiv(width, own))))
        held = ceildiv(vectors, size)
        cost = held * self._lanes * sum(one.cost for one in self._program.sweeps)
        most = _HELD if size < _LARGEST else _HELD // 2
        fits = held * self._lanes <= most and cost <= _HELD_COST
        return size, held if fits else 0

    def write(self) -> None:
        block, rows = self._block, product(self._program.rows)
        whole = self._block.threads or _THREADS
        threads = whole if self._size <= WARP else self._size
        share = threads // self._size
        with block.launch(rows, share, threads) as grid:
            thread = block.bind(remainder(grid.thread, self._size), "thread")
            group = Group(block, self._size, thread)
            last = self._context.size(rows) - 1
            count = quotient(self._context.size(rows) + (share - 1), share)
            with block.share_out(grid.block, count, grid.blocks) as unit:
                row, valid = self._row(grid, unit, share, last)
                self._sweeps(group, row, valid)
                group.part()

    def _row(
        self, grid: Grid, unit: Expr, share: int, last: Expr | int
    ) -> tuple[Expr, Expr | None]:
        """Return the row of a thread's group, and whether it is one: warps stay together."""
        if share == 1:
            return unit, None
        block = self._block
        own = block.bind(unit * share + quotient(grid.thread, self._size), "own")
        return block.bind(index(minimum(own, last)), "row"), block.let(own <= index(last))

    def _sweeps(self, group: Group, row: Expr, valid: Expr | None) -> None:
        at = unflatten(self._context, row, self._program.rows)
        access = self._reading.access()
        visit = (
            self._holds(group, at, access, valid) if self._held else self._reads(group, at, valid)
        )
        for one, values in zip(self._program.sweeps, self._program.values, strict=True):
            for tensor in one.values:
                access.read(tensor, self._value_place(at, tensor))
            totals = {
                t: Total(self._block, node.combine, compute_dtype(t.dtype))
                for t, node in one.reductions.items()
            }
            visit(one, totals, access)
            for tensor, total in totals.items():
                result = group.combine(total)
                access.give(tensor, _always(result))
            self._store_values(group, values, at, access, valid)

    def _value_place(self, at: list[Index], tensor: Tensor) -> list[Index]:
        place = [*at, *([0] * len(self._program.inner))]
        own = place[len(place) - tensor.rank :]
        return [0 if d == 1 else i for d, i in zip(tensor.shape, own, strict=True)]

    def _store_values(
        self,
        group: Group,
        values: list[Tensor],
        at: list[Index],
        access: Access,
        valid: Expr | None,
    ) -> None:
        """Have one thread store what there is one of a row."""
        if not values:
            return
        block = self._block
        places = [self._value_place(at, t) for t in values]
        found = [access.compute(t, place) for t, place in zip(values, places, strict=True)]
        with block.when(_both(group.thread < index(1), valid)):
            for tensor, place, value in zip(values, places, found, strict=True):
                self._context.store(tensor, place, value)

    def _holds(
        self, group: Group, at: list[Index], access: Access, valid: Expr | None
    ) -> Callable[..., None]:
        """Return how a sweep goes over elements that the threads hold in registers."""
        block, width, lanes = self._block, self._width, self._lanes
        pieces: list[_Piece] = []
        vectors = quotient(width, lanes)
        for i in range(self._held):
            number = block.bind(group.thread + i * group.size, "vector")
            all_there = isinstance(vectors, int) and (i + 1) * group.size <= vectors
            inside = None if all_there else block.let(number < index(vectors))
            number = number if all_there else block.bind(minimum(number, vectors - 1), "vector")
            first = block.bind(number * lanes, "at") if lanes > 1 else number
            place = unflatten(self._context, first, self._program.inner)
            pieces.append(_Piece(Lanes(self._context, [*at, *place], lanes), inside))
        loads = Loads(self._reading, access, self._read)
        for piece in pieces:
            loads.load(piece.lanes)

        def visit(one: Sweep, totals: dict[Tensor, Total], access: Access) -> None:
            for piece in pieces:
                self._piece(one, totals, access, piece, valid)

        return visit

    def _reads(self, group: Group, at: list[Index], valid: Expr | None) -> Callable[..., None]:
        """Return how a sweep goes over elements that it reads."""
        block, lanes = self._block, self._lanes

        def visit(one: Sweep, totals: dict[Tensor, Total], access: Access) -> None:
            vectors = quotient(self._width, lanes)
            step = index(group.size)
            with block.share_out(group.thread, vectors, step) as number:
                first = block.bind(number * lanes, "at") if lanes > 1 else number
                place = unflatten(self._context, first, self._program.inner)
                inner = access.inner()
                piece = _Piece(Lanes(self._context, [*at, *place], lanes), None)
                Loads(self._reading, inner, self._read).load(piece.lanes)
                self._piece(one, totals, inner, piece, valid)

        return visit

    def _piece(
        self,
        one: Sweep,
        totals: dict[Tensor, Total],
        access: Access,
        piece: _Piece,
        valid: Expr | None,
    ) -> None:
        """Write a sweep over one thread's elements side by side."""
        lanes, inside = piece
        for tensor, total in totals.items():
            operand = one.reductions[tensor].operand
            for place in lanes.places:
                total.add(access.read(operand, _place(operand, place)), inside)
        values = [[access.compute(t, place) for place in lanes.places] for t in one.stores]
        if values:
            with self._block.when(_both(inside, valid)):
                for tensor, elements in zip(one.stores, values, strict=True):
                    lanes.store(tensor, elements)


def _place(tensor: Tensor, at: list[Index]) -> list[Index]:
    return [0 if d == 1 else i for d, i in zip(tensor.shape, at, strict=True)]


def _always(value: Expr) -> Callable[..., Expr]:
    return lambda _: value


def _both(a: Expr | None, b: Expr | None) -> Expr | bool:
    if a is None or b is None:
        return True if a is None and b is None else (b if a is None else a)
    return tirx.And(a, b)


def _power_of_two(size: int) -> int:
    """Return the smallest power of two that is not less than a positive size."""
    return 1 << (size - 1).bit_length()
