"""Products of a loop on tensor cores, whose second factors a warp holds in registers.

As :mod:`.held_product`, for 16-bit floats: the fragments of a warp's part of the inner dimension
are all that it ever multiplies with, so that its lanes hold them through all steps. In a step the
lanes load the state as fragments, from where the step before has stored it.
"""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.codegen.device_block import WARP, Grid, Place
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import bits, choose, storage_dtype
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.fragments import Fragments, Numbers
from composite.compiler.tvm.strategy.cuda.held_group import DTYPE, ROWS
from composite.compiler.tvm.strategy.cuda.held_product import HeldProducts
from composite.compiler.tvm.strategy.cuda.vectors import contiguous, is_multiple
from composite.compiler.tvm.tir.block import Buffer, const, index, minimum, quotient, remainder

_TALL = 16
"""Rows of a fragment of the state, and of sums."""


class HeldFragments(HeldProducts):
    """Stages that are written as one part of a launch, by tensor cores; made before the loop."""

    def _keep(self) -> Buffer:
        return self._block.registers(self._group.fragments, "uint32", "weights")

    @property
    def _numbers(self) -> Numbers:
        numbers = self._group.numbers
        if numbers is None:
            raise ValueError("no tensor core multiplies")
        return numbers

    def _load(self, grid: Grid, which: Expr, first: Expr, context: Context) -> None:
        """Load the weights of a group of columns, unless they are there."""
        block, group = self._block, self._group
        held = Fragments(block, self._numbers, grid.thread)
        with block.when(tirx.NE(block.load(self._held, 0), which)):
            for step in range(group.steps):
                for tile in range(group.wide // 8):
                    number = block.bind(held.row + tile * 8, "number")
                    own = block.bind(quotient(number, group.columns), "product")
                    column = block.bind(first + remainder(number, group.columns), "column")
                    places = range(tile * 8 // group.columns, (tile * 8 + 7) // group.columns + 1)
                    for half in range(2):
                        at = (step * group.wide // 8 + tile) * 2 + half
                        deep = self._deep(held, step, half)
                        for place in places:
                            with block.when(tirx.EQ(own, index(place))):
                                pair = self._weights_at(place, deep, column, context)
                                block.store(self._weights, at, pair)
            block.store(self._held, 0, which)

    def _deep(self, held: Fragments, step: int, half: int) -> Expr:
        """Return the first of the two elements along the inner dimension of a lane's register."""
        depth = self._numbers.depth
        start = held.warp * (self._group.steps * depth) + held.column * 2
        return self._block.bind(start + (step * depth + half * (depth // 2)), "deep")

    def _weights_at(self, place: int, deep: Expr, column: Expr, context: Context) -> Expr:
        """Return two neighbours of a column of a product's weights; zeros where there are none."""
        block, group = self._block, self._group
        inside = column < index(group.width)
        column = minimum(column, group.width - 1)
        both = []
        for k in (deep, deep + 1):
            value = self._weight(
                group.products[place], minimum(k, group.depth - 1), column, context
            )
            there = tirx.And(inside, k < index(group.depth))
            both.append(block.let(choose(there, value, const(0.0, DTYPE))))
        return self._pair(*both)

    def _pair(self, low: Expr, high: Expr) -> Expr:
        name = f"composite_pair_{self._numbers.name}"
        return self._block.let(tirx.call_pure_extern("uint32", name, low, high))

    def _halves(self, low: Expr, high: Expr) -> Expr:
        """Return two elements of 16 bits as a register."""
        both = (tirx.Cast("uint32", bits(x, "uint16")) for x in (low, high))
        return self._block.let(next(both) | next(both) << const(16, "uint32"))

    def _leave(self, grid: Grid, row: Expr, sums: Buffer, context: Context) -> None:
        """Add up a warp's part of the inner dimension, and leave the sums for the block."""
        block, group = self._block, self._group
        held = Fragments(block, self._numbers, grid.thread)
        tall, along = ROWS // _TALL, group.wide // 8
        states = held.registers(tall * group.steps, "state")
        for step in range(group.steps):
            for i in range(tall):
                for part in range(4):
                    own = row + held.row + (i * _TALL + part % 2 * 8)
                    pair = self._state(own, self._deep(held, step, part // 2), context)
                    block.store(states, 4 * (step * tall + i) + part, pair)
        cells = held.sums(tall * along)
        for step in range(group.steps):
            for i in range(tall):
                for j in range(along):
                    a, b = step * tall + i, step * along + j
                    held.multiply(
                        Place(cells, i * along + j), Place(states, a), Place(self._weights, b)
                    )
        first = (held.warp * ROWS + held.row) * group.row + held.column * 2
        start = block.bind(first, "start")
        for i in range(tall):
            for j in range(along):
                for part in range(4):
                    place = start + ((i * _TALL + part // 2 * 8) * group.row + j * 8 + part % 2)
                    block.store(sums, place, block.load(cells, 4 * (i * along + j) + part))

    def _state(self, row: Expr, deep: Expr, context: Context) -> Expr:
        """Return two neighbours of a row of the state; the last row's where there is none."""
        block, group = self._block, self._group
        row = block.bind(minimum(row, index(context.size(self._rows)) - 1), "row")
        whole = group.depth % (group.steps * self._numbers.depth * group.threads // WARP) == 0
        storage = contiguous(group.state, context)
        if storage is not None and whole and is_multiple(storage.offset, 2):
            cells = block.registers(2, storage_dtype(storage.dtype), "pair")
            place = block.bind(storage.offset + row * group.depth + deep, "at")
            block.copy(cells, 0, storage.buffer, place, 2)
            pair = [block.load(cells, i) for i in range(2)]
            return self._pair(*pair) if storage.dtype == DTYPE else self._halves(*pair)
        both = []
        for k in (deep, deep + 1):
            value = context.access().read(group.state, [row, minimum(k, group.depth - 1)])
            there = k < index(group.depth)
            both.append(block.let(value if whole else choose(there, value, const(0.0, DTYPE))))
        return self._pair(*both)
