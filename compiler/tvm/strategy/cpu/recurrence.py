"""A loop whose trips are small functions: an RNN over its steps, a filter over its measurements.

A team of threads goes through the trips together: each computes its part of a stage, and all meet
at a barrier before the next stage. Products that are cut alike, such as the gates of a cell, are
written as one stage with the element-wise work on them, which saves barriers. Weights that all
trips read are packed before the loop. A loop too short to pay for barriers stays on one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from composite.compiler.tvm.codegen.access import Space, Strided, strided
from composite.compiler.tvm.ir.loop import Loop, varies
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cpu.product.cycles import stage_cycles
from composite.compiler.tvm.strategy.cpu.product.product import (
    float_product,
    is_packed,
    packed_from,
)
from composite.compiler.tvm.strategy.loop_trips import LoopTrips, reads_in_place
from composite.compiler.tvm.strategy.tasks import Tasks, TaskWriter, write_together
from composite.compiler.tvm.tir.block import index


class Recurrence:
    """Stages whose anchor is a loop."""

    name = "recurrence"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take loops all of whose operands are stored."""
        trips = LoopTrips.of(stage, context)
        return None if trips is None else _Writer(trips, context)


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
        return reads_in_place(stage.stores, self.made)

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
    def __init__(self, trips: LoopTrips, context: Context) -> None:
        self._block = context.block
        self._trips = trips
        self._loop = trips.loop
        self._context = trips.context

    def write(self) -> None:
        """Write it all."""
        self._trips.begin()
        self._write_trips()
        self._trips.end()

    def _write_trips(self) -> None:
        """Write the loop; twice if the call decides by its trips whether weights are packed."""
        trips = self._trips.count
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
        products = [found for s in self._trips.stages if (found := float_product(s)) is not None]
        fewest = [packed_from(p, context) for p in products if not is_packed(p, context)]
        return max((number for number in fewest if number is not None), default=None)

    def _write_loop(self, least: int | None) -> None:
        """Write the loop, for a team or for one thread, knowing of so many trips at least."""
        trips = self._loop.trips
        cycles = stage_cycles(self._trips.stages)
        machine = self._context.machine
        is_short = cycles < machine.meeting
        if self._context.target.cores == 1 or is_short or not self._is_for_team(least):
            self._loop_over(least, team=False)
        else:  # where the call decides, a launch leaves a short loop to one thread by itself
            is_long = not isinstance(trips, int) or trips * cycles >= machine.parallel
            default = "team" if is_long else "alone"
            who = self._context.choose("recurrence.threads", ("alone", "team"), default)
            self._loop_over(least, team=who == "team")

    def _is_for_team(self, least: int | None) -> bool:
        context = self._of_trip(index(0), least)
        stages = self._trips.stages
        return all(isinstance(context.match(stage).writer, TaskWriter) for stage in stages)

    def _loop_over(self, least: int | None, *, team: bool) -> None:
        block, depth, trips = self._block, self._block.depth, self._trips.count
        with block.team() if team else nullcontext(), block.loop(trips, "trip") as trip:
            self._write_stages(self._of_trip(trip, least, team=team, depth=depth))

    def _of_trip(
        self, trip: Expr, least: int | None = None, *, team: bool = False, depth: int = 0
    ) -> Context:
        """Return the context of a trip, of which strategies are told."""
        context = self._trips.of_trip(trip)
        following = context.space.within(self._loop.counter, trip + 1)
        trips = _Trips(self._loop, self._context, following, depth, least, team)
        return replace(context, trips=trips)

    def _write_stages(self, context: Context) -> None:
        """Write the stages, those that are cut alike together, with the barriers they need."""
        units = self._units(context)
        for number, unit in enumerate(units):
            later = [t for other in units[number + 1 :] for t in other.made]
            meets = not later or bool(unit.made & set(topological(tuple(later))))
            unit.write(context, meets=meets)

    def _units(self, context: Context) -> list[_Unit]:
        units: list[_Unit] = []
        for stage in self._trips.stages:
            writer = context.match(stage).writer
            sets = None
            if stage.anchor is not None and isinstance(writer, TaskWriter):
                sets = writer.task_sets()
            if not (units and units[-1].joins(stage, sets)):
                units.append(_Unit(writer))
            units[-1].add(stage, sets)
        return units
