"""A loop as one launch, whose blocks go through the trips together.

The stages of a trip are parts of the launch, which the strategies that match them write. All
blocks are there at a time, and meet before a stage that reads what another one has made since they
met, and at the end of each trip: a launch for each stage of each trip would cost more than the
stages of a small cell do.
"""

from __future__ import annotations

from dataclasses import dataclass

from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.strategy.loop_trips import LoopTrips

THREADS = 256
"""Threads of a block, which all parts of the launch have."""


class Recurrence:
    """Stages whose anchor is a loop."""

    name = "recurrence"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take loops all of whose operands are stored."""
        # An offset stays an expression: what it is a multiple of says how wide accesses can be.
        trips = LoopTrips.of(stage, context, lambda offset: offset)
        return None if trips is None else _Writer(trips, context)


@dataclass(frozen=True)
class _Writer:
    trips: LoopTrips
    context: Context

    def write(self) -> None:
        """Write one launch, and one before it."""
        block, trips = device_block(self.context), self.trips
        with block.resident(THREADS, self.context.size):
            trips.begin()
            block.meet()
            with block.loop(trips.count, "trip") as trip:
                self._write_stages(trips.of_trip(trip))
                block.meet()
            trips.end()

    def _write_stages(self, context: Context) -> None:
        """Write the stages of a trip, and where the blocks meet between them."""
        block, made = device_block(context), set[Tensor]()
        for stage in self.trips.stages:
            if made & set(topological(tuple(stage.made))):
                block.meet()
                made.clear()
            context.match(stage).writer.write()
            made |= stage.made
