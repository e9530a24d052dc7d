"""A loop whose trips are small functions: an RNN over its steps, a filter over its measurements.

The function of a trip is planned as a whole function is, and the strategies that match its stages
write them inside of the loop. A value that is carried as a whole has two buffers: a trip reads one
and writes the other, so that none of its stages sees the value of the next trip. A row of an array
is written to its place in the result.

A team of threads goes through the trips together: each computes its part of a stage, and all meet
at a barrier before the next stage. Products that are cut alike, such as the gates of a cell, are
written as one stage with the element-wise work on them, which saves barriers. Weights that all
trips read are packed before the loop. A loop too short to pay for barriers stays on one thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from composite.compiler.tvm.codegen.access import Space, Storage, Strided, strided
from composite.compiler.tvm.codegen.block import index, remainder
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.graph import Function, pointwise
from composite.compiler.tvm.ir.loop import Loop, LoopResult, number_of, varies
from composite.compiler.tvm.ir.tensor import Expr, Pointwise, Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.plan.plan import make_plan
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cpu.cycles import stage_cycles
from composite.compiler.tvm.strategy.cpu.product.product import (
    float_product,
    is_packed,
    packed_from,
)
from composite.compiler.tvm.strategy.tasks import PARALLEL_CYCLES, Tasks, TaskWriter, write_together

_LEAST_TRIP = 3000
"""Cycles of a trip below which a second thread costs more in waiting than it saves."""


class Recurrence:
    """Stages whose anchor is a loop."""

    name = "recurrence"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take loops all of whose operands are stored."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, Loop):
            return None
        stored = [context.space.storage(t) for t in anchor.node.captured]
        captured = [storage for storage in stored if storage is not None]
        if len(captured) < len(stored):
            return None
        return _Writer(stage, anchor.node, captured, context)


@dataclass(frozen=True)
class _Trips:
    """What strategies are told of the loop they write in.

    ``following`` is what the next trip sees, ``depth`` is that of the scope around the loop,
    ``count`` how many trips there are, at least; None if nothing is known.
    """

    loop: Loop
    outer: Context
    following: Space
    depth: int
    count: int | None
    team: bool
    meets: bool = True

    def stays(self, tensor: Tensor) -> bool:
        """Return whether a tensor is the same in all trips."""
        return not varies((tensor,), self.loop.counter, self.loop.carried)[tensor]

    def next_place(self, tensor: Tensor) -> Strided | None:
        """Return where the next trip reads a slice of what was there before the loop."""
        is_view = tensor.node.is_strided_view
        return None if not is_view or self.stays(tensor) else strided(tensor, self.following)

    @contextmanager
    def ahead(self) -> Iterator[Context]:
        """Write before the loop."""
        with self.outer.block.ahead(self.depth):
            yield self.outer


@dataclass
class _Unit:
    """A stage of a trip, or products side by side that are written as one."""

    writer: Writer
    stages: list[Stage] = field(default_factory=list)
    sets: list[list[Tasks]] = field(default_factory=list)

    @property
    def made(self) -> set[Tensor]:
        """What is computed here and may be read elsewhere."""
        return {t for stage in self.stages for t in stage.made}

    def add(self, stage: Stage, sets: list[Tasks] | None) -> None:
        """Add a stage; ``sets`` are the tasks of a product."""
        self.stages.append(stage)
        if sets is not None:
            self.sets.append(sets)

    def joins(self, stage: Stage, sets: list[Tasks] | None) -> bool:
        """Return whether a product can be written with these, each task making a part of all.

        It must be cut alike, and read of their results only the elements of its own task.
        """
        if not self.sets or sets is None or stage.anchor is None:
            return False
        if [one.key for one in sets] != [one.key for one in self.sets[0]]:
            return False
        if self.made & set(topological(stage.anchor.node.operands)):
            return False
        return _reads_in_place(stage.stores, self.made)

    def write(self, context: Context, *, meets: bool) -> None:
        """Write it, with a barrier behind if ``meets``: others read it, or the trip ends."""
        if isinstance(context.trips, _Trips):
            context = replace(context, trips=replace(context.trips, meets=meets))
        if self.sets:
            write_together(self.sets, context)
        elif isinstance(self.writer, TaskWriter):
            write_together([self.writer.task_sets()], context)
        else:
            self.writer.write()


class _Writer:
    def __init__(
        self, stage: Stage, loop: Loop, captured: Sequence[Storage], context: Context
    ) -> None:
        self._block = context.block
        self._loop = loop
        results = {t.node.index: t for t in stage.stores if isinstance(t.node, LoopResult)}
        self._kept = _needed(loop, results)
        self._results = results
        self._wholes: dict[int, Storage] = {}
        self._plan = make_plan(Function((), tuple(loop.following[i] for i in self._kept)))
        space = context.space.within(loop.counter, index(0))
        for storage, inner in zip(captured, loop.leaves, strict=True):
            space.parameters[number_of(inner)] = storage
        self._context = replace(context, space=space)

    def write(self) -> None:
        """Write it all."""
        context, loop = self._context, self._loop
        for i, initial in enumerate(loop.initial):
            if loop.rows[i] is not None and initial is not None and i in self._results:
                self._copy(initial, context.space.storages[self._results[i]])
        for i in self._kept:
            initial = loop.initial[i]
            if loop.rows[i] is None and initial is not None:
                self._wholes[i] = context.temporary(loop.carried[i], 2)
                self._copy(initial, self._wholes[i])
        for stage in self._plan.stages:
            for tensor in stage.stores:
                if tensor not in self._plan.outputs:
                    context.space.storages[tensor] = context.temporary(tensor)
        self._write_trips()
        for i, storage in self._wholes.items():
            if i in self._results:
                self._give(i, storage, context.size(loop.trips))

    def _copy(self, source: Tensor, target: Storage) -> None:
        """Write a tensor to a place."""
        copied = pointwise("Identity", lambda _, x: x, (source,), source.dtype, cost=0)
        self._context.space.storages[copied] = target
        stage = Stage(copied.shape, None, [copied])
        if 0 not in stage.shape:
            self._context.match(stage).writer.write()

    def _half(self, i: int, storage: Storage, number: Expr | int) -> Storage:
        """Return the buffer that is read in trip ``number``; the next one reads the other."""
        size = self._context.size(product(self._loop.carried[i].shape))
        return replace(storage, offset=self._block.bind(remainder(number, 2) * size, "half"))

    def _write_trips(self) -> None:
        """Write the loop; twice if the call decides by its trips whether weights are packed."""
        trips = self._context.size(self._loop.trips)
        if isinstance(trips, int):
            self._write_loop(trips)
        elif (many := self._many()) is None:
            self._write_loop(None)
        else:
            with self._block.when(trips >= many):
                self._write_loop(many)
            with self._block.otherwise():
                self._write_loop(None)

    def _many(self) -> int | None:
        """Return from how many trips on weights are packed that are not for a few; None if none."""
        context = self._of_trip(index(0))
        products = [found for s in self._plan.stages if (found := float_product(s)) is not None]
        fewest = [packed_from(p, context) for p in products if not is_packed(p, context)]
        return max((number for number in fewest if number is not None), default=None)

    def _write_loop(self, least: int | None) -> None:
        """Write the loop, for a team or for one thread, knowing of so many trips at least."""
        trips = self._loop.trips
        cycles = stage_cycles(self._plan.stages)
        if self._context.target.cores == 1 or cycles < _LEAST_TRIP or not self._is_for_team(least):
            self._loop_over(least, team=False)
        else:  # where the call decides, a launch leaves a short loop to one thread by itself
            is_long = not isinstance(trips, int) or trips * cycles >= PARALLEL_CYCLES
            default = "team" if is_long else "alone"
            who = self._context.choose("recurrence.threads", ("alone", "team"), default)
            self._loop_over(least, team=who == "team")

    def _is_for_team(self, least: int | None) -> bool:
        context = self._of_trip(index(0), least)
        stages = [s for s in self._plan.stages if 0 not in s.shape]
        return all(isinstance(context.match(stage).writer, TaskWriter) for stage in stages)

    def _loop_over(self, least: int | None, *, team: bool) -> None:
        block, depth = self._block, self._block.depth
        trips = self._context.size(self._loop.trips)
        with block.team() if team else nullcontext(), block.loop(trips, "trip") as trip:
            self._write_stages(self._of_trip(trip, least, team=team, depth=depth))

    def _of_trip(
        self, trip: Expr, least: int | None = None, *, team: bool = False, depth: int = 0
    ) -> Context:
        """Return the context of a trip: where it reads what is carried, and where it writes."""
        loop = self._loop
        space = self._context.space.within(loop.counter, trip)
        for i, output in zip(self._kept, self._plan.outputs, strict=True):
            row = loop.rows[i]
            if row is None:
                space.parameters[number_of(loop.carried[i])] = self._half(i, self._wholes[i], trip)
                space.storages[output] = self._half(i, self._wholes[i], trip + 1)
                continue
            array = self._results[i]
            offset = space.size(row.place) * space.size(product(array.shape[1:]))
            whole = self._context.space.storages[array]
            place = self._block.bind(index(whole.offset + offset), "row")
            space.storages[output] = replace(whole, offset=place)
        following = space.within(loop.counter, trip + 1)
        trips = _Trips(loop, self._context, following, depth, least, team)
        return replace(self._context, space=space, trips=trips)

    def _write_stages(self, context: Context) -> None:
        """Write the stages, those that are cut alike together, with the barriers they need."""
        units = self._units(context)
        for number, unit in enumerate(units):
            later = [t for other in units[number + 1 :] for t in other.made]
            meets = not later or bool(unit.made & set(topological(tuple(later))))
            unit.write(context, meets=meets)

    def _units(self, context: Context) -> list[_Unit]:
        units: list[_Unit] = []
        for stage in self._plan.stages:
            if 0 in stage.shape:
                continue
            writer = context.match(stage).writer
            sets = None
            if stage.anchor is not None and isinstance(writer, TaskWriter):
                sets = writer.task_sets()
            if not (units and units[-1].joins(stage, sets)):
                units.append(_Unit(writer))
            units[-1].add(stage, sets)
        return units

    def _give(self, i: int, storage: Storage, trips: Expr | int) -> None:
        """Copy what is carried to its result."""
        space = self._context.space
        space.parameters[number_of(self._loop.carried[i])] = self._half(i, storage, trips)
        self._copy(self._loop.carried[i], space.storages[self._results[i]])


def _needed(loop: Loop, results: Collection[int]) -> list[int]:
    """Return which results the trips make: those that are read, there or in other trips."""
    needed = set(results)
    while True:
        read = set(topological(tuple(loop.following[i] for i in needed)))
        more = {i for i, leaf in enumerate(loop.carried) if leaf in read} | needed
        if more == needed:
            return sorted(needed)
        needed = more


def _reads_in_place(tensors: Sequence[Tensor], made: set[Tensor]) -> bool:
    """Return whether tensors are made of others element for element, where they are at all."""
    depends = set(made)
    for tensor in topological(tuple(tensors)):
        if tensor in made:
            continue
        for operand in tensor.node.operands:
            if operand in depends:
                if not isinstance(tensor.node, Pointwise) or tensor.shape != operand.shape:
                    return False
                depends.add(tensor)
    return True
