"""Products of a loop whose second factors a block holds in shared memory through all steps.

The gates of a cell are products of the same state with weights that stay. A block has some columns
of each gate: it loads their weights once, and computes in each step the products, and what follows
them element by element, for all gates together. So nothing but the state is read in a step, and
the blocks meet once.

Each warp has a part of the inner dimension, and adds up all elements of 32 rows over it: of the
state no two warps read the same. The sums of the warps are then added up in their order.

A block without columns of its own in shared memory, because there are more of them than blocks,
loads those that it needs: any number of blocks is right. On tensor cores: :mod:`.held_fragments`.
Not for weights that do not fit (:mod:`.product` and :mod:`.tensor_product` are).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

from tvm import tirx

from composite.compiler.tvm.codegen.access import Access, Index
from composite.compiler.tvm.codegen.device_block import WARP, Grid
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import ceildiv, floordiv
from composite.compiler.tvm.ir.tensor import Constant, Expr, Pointwise, Tensor
from composite.compiler.tvm.ir.walk import reachable, topological
from composite.compiler.tvm.math.numeric import choose, multiply_add
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.held_group import DTYPE, OWN_ROWS, PARTS, ROWS, HeldGroup
from composite.compiler.tvm.strategy.cuda.vectors import contiguous, device_block, is_multiple
from composite.compiler.tvm.tir.block import Buffer, const, index, minimum, quotient, remainder

_VECTOR = 4
"""Elements that are loaded at a time, 16 bytes."""
_TURNS = (4, 2, 1)
"""How often a lane loads of the state before it multiplies, at most."""


@dataclass(frozen=True)
class _Results:
    stored: set[Tensor]
    context: Context


class _Cell(NamedTuple):
    """An element that a thread makes, if it is there: where its first sum is, and its operands."""

    at: list[Expr]
    is_there: Expr
    own: Expr
    access: Access


class HeldProducts:
    """Stages that are written as one part of a launch; made in front of the loop.

    Attributes:
        stages: The stages.
        made: What they make.
    """

    def __init__(self, group: HeldGroup, context: Context) -> None:
        self.stages = group.stages
        self.made = {t for stage in group.stages for t in stage.made}
        self._group = group
        self._block = device_block(context)
        self._rows = group.state.shape[0]
        self._weights = self._keep()
        self._held = self._block.registers(1, "int64", "held")  # which columns' these are
        self._block.store(self._held, 0, index(-1))

    @property
    def state(self) -> Tensor:
        """The factor that the products have in common."""
        return self._group.state

    def _keep(self) -> Buffer:
        """Return room for the weights, for all steps."""
        return self._block.keep(self._group.weights, DTYPE, "weights")

    def stored(self, others: Sequence[Stage], outputs: set[Tensor]) -> set[Tensor]:
        """Return what must be stored of what they make: what other stages read, and outputs."""
        read = reachable(
            [t for stage in others for made in stage.made for t in made.node.operands],
            lambda t: () if t in self.made else t.node.operands,
        )
        return self.made & {*read, *outputs}

    def write(self, context: Context, stored: set[Tensor]) -> None:
        """Write the part of a trip, which stores so much."""
        block, group = self._block, self._group
        tiles = floordiv(self._rows + (ROWS - 1), ROWS)
        with block.launch(tiles * group.units, 1, group.threads) as grid:
            sums = block.shared(group.sums, DTYPE, "sums")
            # As many blocks as there are share the rows of the same columns.
            count = index(context.size(tiles))
            shared = tirx.max(self._by_units(grid.blocks), index(1))
            parts = block.bind(minimum(count, shared), "parts")
            with block.share_out(grid.block, parts * group.units, grid.blocks) as unit:
                part = self._by_units(unit)
                which = block.bind(unit - part * group.units, "which")
                first = block.bind(which * group.columns, "first")
                self._load(grid, which, first, context)
                with block.share_out(part, count, parts) as tile:
                    row = block.bind(tile * ROWS, "row")
                    cells = self._cells(grid, (row, first), context)
                    self._leave(grid, row, sums, context)
                    block.barrier()
                    self._follow(cells, sums, _Results(stored, context))
                    block.barrier()

    def _by_units(self, number: Expr) -> Expr:
        """Return a number of blocks divided by that of units: in 32 bits, which is an instruction.

        A division of 64 bits is a routine, for whose sake registers would be spilled.
        """
        units = const(self._group.units, "int32")
        small = tirx.truncdiv(tirx.Cast("int32", number), units)
        return self._block.bind(tirx.Cast("int64", small), "part")

    def _load(self, grid: Grid, which: Expr, first: Expr, context: Context) -> None:
        """Load the weights of a group of columns, unless they are there."""
        block, group = self._block, self._group
        own = group.columns // PARTS
        with block.when(tirx.NE(block.load(self._held, 0), which)):
            for place, product in enumerate(group.products):
                count = group.depth * group.columns
                with block.share_out(grid.thread, count, index(group.threads)) as number:
                    k = block.bind(quotient(number, group.columns), "k")
                    column = block.bind(remainder(number, group.columns), "column")
                    wide = block.bind(first + column, "wide")
                    inside = block.let(wide < index(group.width))
                    value = self._weight(product, k, minimum(wide, group.width - 1), context)
                    value = choose(inside, value, const(0.0, DTYPE))
                    lane = quotient(column, own) + k * PARTS
                    at = lane * group.step + place * own + remainder(column, own)
                    block.store(self._weights, at, value)
            block.barrier()
            block.store(self._held, 0, which)

    @staticmethod
    def _weight(product: MatMul, k: Expr, column: Expr, context: Context) -> Expr:
        at = [k, context.block.bind(index(column), "wide")]
        return context.access().read(product.b, at[::-1] if product.transpose_b else at)

    def _leave(self, grid: Grid, row: Expr, sums: Buffer, context: Context) -> None:
        """Add up a warp's part of the inner dimension, and leave the sums for the block."""
        block, group = self._block, self._group
        warp = block.bind(quotient(grid.thread, WARP), "warp")
        lane = block.bind(remainder(grid.thread, WARP), "lane")
        part = block.bind(remainder(lane, PARTS), "part")
        own = block.bind(quotient(lane, PARTS) * OWN_ROWS, "own")
        cells = self._add(row + own, warp, part, context)
        columns = group.columns // PARTS
        start = block.bind((warp * ROWS + own) * group.row + part * columns, "start")
        for i in range(OWN_ROWS):
            for j in range(group.own):
                place = start + (i * group.row + j // columns * group.columns + j % columns)
                block.store(sums, place, block.load(cells, i * group.own + j))

    def _add(self, row: Expr, warp: Expr, part: Expr, context: Context) -> Buffer:
        """Return the sums of a lane over its warp's part of the inner dimension."""
        block, group = self._block, self._group
        cells = block.registers(OWN_ROWS * group.own, DTYPE, "cells")
        for i in range(OWN_ROWS * group.own):
            block.store(cells, i, const(0.0, DTYPE))
        last = index(context.size(self._rows)) - 1
        rows = [block.bind(minimum(row + i, last), "row") for i in range(OWN_ROWS)]
        width = self._together(context)
        slice_ = ceildiv(ceildiv(group.depth, group.threads // WARP), width) * width
        start = block.bind(warp * slice_, "start")
        end = minimum(start + slice_, group.depth)
        is_whole = group.depth == slice_ * (group.threads // WARP)
        turns = next(n for n in _TURNS if (is_whole and slice_ % (n * width) == 0) or n == 1)
        with block.share_out(start, end, index(turns * width)) as first:
            # What is read of the state, far away, is under way at once.
            places = [block.bind(first + turn * width, "k") for turn in range(turns)]
            states = [[self._read(at, k, width, context) for at in rows] for k in places]
            for k, state in zip(places, states, strict=True):
                self._multiply(k, state, part, cells)
        return cells

    def _multiply(
        self, k: Expr, states: Sequence[Sequence[Expr]], part: Expr, cells: Buffer
    ) -> None:
        """Add the products of elements of a lane's rows from ``k`` on."""
        block, group = self._block, self._group
        for n in range(len(states[0])):
            weights = block.registers(group.step, DTYPE, "own")
            place = (k + n) * (PARTS * group.step) + part * group.step
            block.copy(weights, 0, self._weights, block.bind(place, "at"), group.step)
            for i in range(OWN_ROWS):
                for j in range(group.own):
                    cell = i * group.own + j
                    w, total = block.load(weights, j), block.load(cells, cell)
                    block.store(cells, cell, multiply_add(block, states[i][n], w, total))

    def _together(self, context: Context) -> int:
        """Return how many elements of a row of the state are loaded at a time."""
        group = self._group
        storage = contiguous(group.state, context)
        if storage is None or storage.dtype != DTYPE:
            return 1
        places = (group.depth, storage.offset)
        return _VECTOR if all(is_multiple(place, _VECTOR) for place in places) else 1

    def _read(self, row: Expr, k: Expr, width: int, context: Context) -> list[Expr]:
        block, group = self._block, self._group
        if width == 1:
            return [block.let(context.access().read(group.state, [row, k]))]
        storage = contiguous(group.state, context)
        if storage is None:
            raise ValueError("what is loaded together lies side by side")
        cells = block.registers(width, DTYPE, "state")
        place = block.bind(storage.offset + row * group.depth + k, "at")
        block.copy(cells, 0, storage.buffer, place, width)
        return [block.load(cells, n) for n in range(width)]

    def _cells(self, grid: Grid, corner: tuple[Expr, Expr], context: Context) -> list[_Cell]:
        """Return the elements that a thread makes, and have it load what else they are made of.

        That comes from far away, and is there when the sums are.
        """
        block, group = self._block, self._group
        # Results of these stages are computed, never loaded: each thread has what it reads of them.
        reading = replace(context, space=context.space.without(self.made))
        sizes = (index(context.size(self._rows)), index(group.width))
        count = ROWS * group.columns
        cells = []
        for turn in range(ceildiv(count, group.threads)):
            number = block.bind(grid.thread + turn * group.threads, "number")
            y = block.bind(quotient(number, group.columns), "y")
            x = block.bind(remainder(number, group.columns), "x")
            at = [block.bind(first + i, "i") for first, i in zip(corner, (y, x), strict=True)]
            inside = tirx.And(at[0] < sizes[0], at[1] < sizes[1])
            if count % group.threads:
                inside = tirx.And(inside, number < index(count))
            inside = block.let(inside)
            # Where there is no element, the last one's operands are read.
            at = [
                block.bind(index(minimum(i, n - 1)), "at") for i, n in zip(at, sizes, strict=True)
            ]
            access = reading.access()
            for operand in self._early:
                access.read_operand(operand, at)
            own = block.bind(y * group.row + x, "own")
            cells.append(_Cell(at, inside, own, access))
        return cells

    @cached_property
    def _early(self) -> list[Tensor]:
        """What is combined with the sums, and is there before them."""
        anchors = {stage.anchor for stage in self.stages}
        stores = [t for stage in self.stages for t in stage.stores]
        order = topological(stores, lambda t: () if t in anchors else t.node.operands)
        late: set[Tensor] = set()
        for tensor in order:
            if tensor in anchors or not late.isdisjoint(tensor.node.operands):
                late.add(tensor)
        made = [t for t in order if t in late and isinstance(t.node, Pointwise)]
        operands = {operand: None for tensor in made for operand in tensor.node.operands}
        return [t for t in operands if t not in late and not isinstance(t.node, Constant)]

    def _follow(self, cells: Sequence[_Cell], sums: Buffer, results: _Results) -> None:
        """Add up what the warps have left, and store what is made of it."""
        group = self._group
        for cell in cells:
            with self._block.when(cell.is_there):
                places = (cell.own + i * group.columns for i in range(len(group.stages)))
                self._store(cell, [self._total(sums, place) for place in places], results)

    def _total(self, sums: Buffer, place: Expr) -> Expr:
        block, group = self._block, self._group
        step = ROWS * group.row
        total = block.let(block.load(sums, place))
        for warp in range(1, group.threads // WARP):
            total = block.let(total + block.load(sums, place + warp * step))
        return total

    def _store(self, cell: _Cell, totals: Sequence[Expr], results: _Results) -> None:
        access = cell.access.inner()
        for stage, total in zip(self.stages, totals, strict=True):
            if stage.anchor is not None:
                access.give(stage.anchor, partial(_always, total))
            for tensor in stage.stores:
                value = access.compute(tensor, cell.at)
                if tensor in results.stored:
                    results.context.store(tensor, cell.at, value)


def _always(value: Expr, _: Sequence[Index]) -> Expr:
    return value
