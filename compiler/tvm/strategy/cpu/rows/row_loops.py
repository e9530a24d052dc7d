"""The loops of the sweeps over one row: whole vectors, several at a time, and a last one.

The last vector overlaps its neighbour instead of needing a tail. What it reads of inputs that a
result is written over, it reads before the sweep; a reduction masks out the elements that it would
count twice. Rows shorter than a vector are computed element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from composite.compiler.tvm.codegen.access import Index, Lane, flat_index
from composite.compiler.tvm.codegen.indices import moved
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.machine import LINE_BYTES
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cpu.rows.accumulate import BLOCK, Accumulator, write_sums
from composite.compiler.tvm.strategy.row_program import RowProgram, Sweep
from composite.compiler.tvm.tir.block import (
    Buffer,
    index,
    quotient,
    remainder,
    spread,
)

_UNROLLED = 4
"""Elements of rows side by side that are written without a loop. Each is gathered by a load for a
row, and the time of LLVM grows faster than the length of such code."""

_INVARIANT_WAYS = 4
"""Vectors at a time in any sweep whose order must not depend on what is computed in it."""

_EXPENSIVE = 8
"""Instructions for a vector from which on its totals are folded into one register each."""


@dataclass(frozen=True)
class Kept:
    """Where the elements of a tensor lie between sweeps.

    Attributes:
        buffer: What they are kept in.
        begin: Where the row begins in it; None if it is the buffer of a result, whose elements take
            their places.
        offset: Where the first of that result's elements is.
    """

    buffer: Buffer
    begin: Expr | int | None
    offset: Expr | int = 0


@dataclass
class _OpenSweep:
    """A sweep under construction: its totals, and the counters of the loops that are open."""

    one: Sweep
    totals: list[Accumulator]
    ways: int
    outer: list[Index] = field(default_factory=list)


class RowLoops:
    """Writes the sweeps over one row, whose place is ``row``.

    Args:
        program: What the sweeps compute.
        context: The kernel.
        lanes: Elements in a vector, which may be several registers long.
        row: The row's indices; a :class:`Lane` stands for as many rows.
        kept: Where the elements are that are kept between sweeps.
    """

    def __init__(
        self,
        program: RowProgram,
        context: Context,
        lanes: int,
        row: list[Index],
        kept: dict[Tensor, Kept],
    ) -> None:
        self._program = program
        self._context = context
        self._lanes = lanes
        self._row = row
        self._kept = kept
        self._distance: Expr | int | None = None
        self._overwritten: Sequence[Tensor] = ()
        self._values = context.access()
        self._known: dict[Tensor, Expr] = {}

    def fetch(self, distance: Expr | int) -> None:
        """Prefetch, in the most expensive sweep, the row that begins ``distance`` elements on.

        The row need not exist: a prefetch never faults.
        """
        self._distance = distance

    def overwrite(self, tensors: Sequence[Tensor]) -> None:
        """Say which elements that are read lie where the sweep writes a result."""
        self._overwritten = tensors

    def know(self, tensor: Tensor, value: Expr) -> None:
        """Give the value of a reduction, or another value of the row."""
        self._known[tensor] = value
        self._values.give(tensor, partial(_at_any_place, value))

    def learn(self, tensors: Sequence[Tensor]) -> None:
        """Compute values of the row before the elements that read them."""
        for tensor in tensors:
            if tensor not in self._known:
                self._known[tensor] = self._value(tensor)

    def store_values(self, tensors: Sequence[Tensor]) -> None:
        """Store values of the row."""
        for tensor in tensors:
            place = _place(tensor, [*self._row, *(0 for _ in self._program.inner)])
            self._context.store(tensor, place, self._value(tensor))

    def _value(self, tensor: Tensor) -> Expr:
        place = _place(tensor, [*self._row, *(0 for _ in self._program.inner)])
        given = self._context.space.storage(tensor) is not None and not self._is_store(tensor)
        return self._values.read(tensor, place) if given else self._values.compute(tensor, place)

    def _is_store(self, tensor: Tensor) -> bool:
        return any(tensor in stores for stores in self._program.values)

    def run(self, one: Sweep, start: Expr | int, count: Expr | int) -> list[Accumulator]:
        """Write a sweep over ``count`` places of a row's first dimension, from ``start`` on."""
        ways = max(1, self._ways(one) * self._context.lanes("float32") // self._lanes)
        totals = [
            Accumulator.of(self._context, node, self._lanes_of_total(one, tensor), ways)
            for tensor, node in one.reductions.items()
        ]
        loops = _OpenSweep(one, totals, ways)
        spans = [(start, count)]
        spans += [(0, self._context.size(d)) for d in self._program.inner[1:]]
        starts = [first for first, _ in spans[:-1]]

        def body(counters: list[Expr]) -> None:
            pairs = zip(starts, counters, strict=True)
            loops.outer = [self._context.block.bind(first + k, "k") for first, k in pairs]
            self._last_dimension(loops, *spans[-1])

        extents = [extent for _, extent in spans[:-1]]
        write_sums(self._context, extents, totals, body, self._left_in_totals(loops))
        return loops.totals

    def _ways(self, one: Sweep) -> int:
        return _INVARIANT_WAYS if self._context.invariant else _ways(one)

    def _left_in_totals(self, loops: _OpenSweep) -> int:
        """Return how many elements of one last dimension a total takes that it does not put aside.

        At most: more than a few where all of its vectors are one block.
        """
        if self._context.invariant:
            return self._lanes
        size = self._context.size(self._program.inner[-1])
        groups = size // (self._lanes * loops.ways) if isinstance(size, int) else 0
        return max(self._lanes, (groups if groups <= BLOCK else 0) + loops.ways + 1)

    def _lanes_of_total(self, one: Sweep, tensor: Tensor) -> int:
        """Return one register's lanes where an element takes many registers to compute."""
        register = self._context.lanes(tensor.dtype)
        if self._context.invariant:
            return self._lanes
        return min(self._lanes, register) if one.cost > _EXPENSIVE else self._lanes

    def run_across(self, one: Sweep, width: int) -> list[Accumulator]:
        """Write a sweep over the ``width`` elements of as many rows as there are lanes."""
        ways = 1 if self._context.invariant else min(2, width)
        nodes = one.reductions.values()
        totals = [Accumulator.of(self._context, node, self._lanes, ways) for node in nodes]
        loops = _OpenSweep(one, totals, ways)
        groups = 0 if width <= _UNROLLED else width // ways

        def group(counters: list[Expr]) -> None:
            for way in range(ways):
                self._element(loops, counters[0] * ways + way, way)()

        if groups:
            write_sums(self._context, [groups], totals, group)
        for e in range(groups * ways, width):
            self._element(loops, e, e % ways)()
        return loops.totals

    def _last_dimension(self, loops: _OpenSweep, start: Expr | int, count: Expr | int) -> None:
        block, lanes = self._context.block, self._lanes
        size = self._context.size(self._program.inner[-1])
        is_long = size >= lanes if isinstance(size, int) else index(size) >= lanes
        with block.when(is_long):
            self._vectors(loops, start, count)
        if is_long is True:
            return
        with block.otherwise(), block.loop(count) as e:
            self._element(loops, start + e)()

    def _vectors(self, loops: _OpenSweep, start: Expr | int, count: Expr | int) -> None:
        block, lanes, ways = self._context.block, self._lanes, loops.ways

        def vector(at: Expr | int, way: int) -> Callable[[], None]:
            return self._element(loops, Lane(block.bind(at, "at"), lanes), way)

        def group(counters: list[Expr]) -> None:
            (g,) = counters
            some = [vector(start + (g * ways + way) * lanes, way) for way in range(ways)]
            for write in some:
                write()

        rest = block.bind(remainder(count, lanes), "rest")
        last = Lane(block.bind(start + count - lanes, "last"), lanes)
        # The vector before the last one would leave results in the place of what the last reads.
        ahead = self._read_in_place(loops, last) if not isinstance(rest, int) or rest else {}
        whole = block.bind(quotient(count, lanes), "whole")
        groups = block.bind(quotient(whole, ways), "groups")
        write_sums(self._context, [groups], loops.totals, group)
        if isinstance(whole, int) and isinstance(groups, int):
            for number in range(whole - groups * ways):
                way = 0 if self._context.invariant else number
                vector(start + (groups * ways + number) * lanes, way)()
        else:
            with block.loop(whole - groups * ways, "v") as v:
                vector(start + (groups * ways + v) * lanes, 0)()
        with block.when(rest > 0 if isinstance(rest, int) else index(rest) > 0):
            self._element(loops, last, ways - 1, lanes - rest, ahead)()

    def _read_in_place(self, loops: _OpenSweep, last: Lane) -> dict[Tensor, Expr]:
        at = [*self._row, *loops.outer, last]
        kept = [t for t in loops.one.in_place if self._kept[t].begin is None]
        ahead = {t: self._context.block.let(self._load_kept(t, at)) for t in kept}
        access = self._context.access()
        return ahead | {t: access.read(t, _place(t, at)) for t in self._overwritten}

    def _element(
        self,
        loops: _OpenSweep,
        last: Index,
        way: int | None = None,
        skipped: Expr | int = 0,
        ahead: Mapping[Tensor, Expr] | None = None,
    ) -> Callable[[], None]:
        """Compute the sweep at one place of the last dimension, a vector as a rule.

        All is read before anything is written, since a result may lie where an input does: what is
        returned does the writing. ``way`` says which of the totals take it, without the first
        ``skipped`` lanes; None stands for a single element. ``ahead`` holds elements that were read
        before.
        """
        context, one = self._context, loops.one
        access = context.access()
        for tensor, value in self._known.items():
            access.give(tensor, partial(_at_any_place, value))
        for tensor in one.kept:
            access.give(tensor, partial(self._load_kept, tensor))
        for tensor, value in (ahead or {}).items():
            access.give(tensor, partial(_at_any_place, value))
        at = [*self._row, *loops.outer, last]
        if self._distance is not None and one is self._program.most_expensive:
            self._fetch(at, self._distance)
        stored = [access.compute(t, _place(t, at)) for t in one.stores]
        kept = [access.compute(t, _place(t, at)) for t in one.keeps]
        operands = [node.operand for node in one.reductions.values()]
        added = [context.block.let(access.read(t, _place(t, at))) for t in operands]

        def write() -> None:
            for tensor, value in zip(one.stores, stored, strict=True):
                context.store(tensor, _place(tensor, at), value)
            for tensor, value in zip(one.keeps, kept, strict=True):
                self._keep(tensor, value, at)
            for value, total in zip(added, loops.totals, strict=True):
                if way is None:
                    total.add_single(value)
                else:
                    total.add(way, spread(value, self._lanes), skipped)

        return write

    def _fetch(self, at: Sequence[Index], distance: Expr | int) -> None:
        strides = self._context.space.strides(tuple(self._program.rows + self._program.inner))
        place = flat_index(at, strides)
        if not isinstance(place, Lane) or place.step != 1:
            return
        for storage, is_result in self._program.streams:
            first = place.base + distance
            for line in range(0, place.lanes, LINE_BYTES // ITEM_SIZE[storage.dtype]):
                self._context.block.prefetch(storage.buffer, first + line, write=is_result)

    def _kept_place(self, tensor: Tensor, at: Sequence[Index]) -> Index:
        begin, strides = self._kept[tensor].begin, self._context.space.strides
        if begin is None:
            place = flat_index(_place(tensor, at), strides(tensor.shape))
            return moved(place, self._kept[tensor].offset)
        own = _place(tensor, at)[len(self._program.rows) :]
        if isinstance(self._row[-1], Lane):  # a vector for each element of the rows
            return Lane(begin + own[-1] * self._lanes, self._lanes)
        place = flat_index(own, strides(tensor.shape[len(self._program.rows) :]))
        if isinstance(place, Lane):
            return Lane(begin + place.base, place.lanes, place.step)
        flat: Index = begin + place
        return flat

    def _keep(self, tensor: Tensor, value: Expr, at: Sequence[Index]) -> None:
        place, buffer = self._kept_place(tensor, at), self._kept[tensor].buffer
        if isinstance(place, Lane):
            self._context.block.store(buffer, place.base, spread(value, place.lanes), place.step)
        else:
            self._context.block.store(buffer, place, value)

    def _load_kept(self, tensor: Tensor, at: Sequence[Index]) -> Expr:
        place, buffer = self._kept_place(tensor, at), self._kept[tensor].buffer
        if isinstance(place, Lane):
            return self._context.block.load(buffer, place.base, place.lanes, place.step)
        return self._context.block.load(buffer, place)


def _at_any_place(value: Expr, _: Sequence[Index]) -> Expr:
    return value


def _place(tensor: Tensor, at: Sequence[Index]) -> list[Index]:
    return [0 if d == 1 else i for d, i in zip(tensor.shape, at, strict=True)]


def _ways(one: Sweep) -> int:
    """Return how many vectors are computed at a time: enough to hide the latency of one."""
    if not one.reductions:
        return 2
    return 8 if one.cost <= 4 else 4
