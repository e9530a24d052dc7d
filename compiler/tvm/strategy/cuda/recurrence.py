"""A loop as one launch, whose blocks go through the trips together.

The stages of a trip are parts of the launch, which the strategies that match them write. All
blocks are there at a time, and meet before a stage that reads what another one has made since they
met, and at the end of each trip: a launch for each stage of each trip would cost more than the
stages of a small cell do.
"""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.held_fragments import HeldFragments
from composite.compiler.tvm.strategy.cuda.held_group import (
    HeldGroup,
    most_held,
    products_together,
)
from composite.compiler.tvm.strategy.cuda.held_product import HeldProducts
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


class _Writer:
    def __init__(self, trips: LoopTrips, context: Context) -> None:
        self._trips = trips
        self._context = context
        self._block = device_block(context)

    def write(self) -> None:
        """Write one launch, and one before it."""
        block, trips = self._block, self._trips
        with block.resident(THREADS, self._context.size):
            units = self._units()
            trips.begin(self._rounded(units))
            block.meet()
            with block.loop(trips.count, "trip") as trip:
                self._write_trip(units, trips.of_trip(trip))
                block.meet()
            trips.end()

    def _units(self) -> list[Stage | HeldProducts]:
        """Return the stages of a trip, products whose weights are held as one."""
        units: list[Stage | HeldProducts] = []
        context, left = self._trips.context, self._trips.stages
        room = most_held(context)
        while left:
            together = products_together(left, self._trips, context)
            group = HeldGroup.of(together, THREADS, room, context)
            if group is None:
                together = together or [left[0]]
                units += together
            else:
                held = HeldProducts if group.numbers is None else HeldFragments
                units.append(held(group, context))
                room -= group.bytes
            left = left[len(together) :]
        return units

    def _rounded(self, units: Sequence[Stage | HeldProducts]) -> list[Tensor]:
        """Return what is carried and read by products alone that round it anyway."""
        loop = self._trips.loop
        everything = topological(loop.following)
        states = {
            unit.state: {stage.anchor for stage in unit.stages}
            for unit in units
            if isinstance(unit, HeldFragments) and unit.state in loop.carried
        }
        return [
            state
            for state, products in states.items()
            if state not in loop.following
            and {t for t in everything if state in t.node.operands} <= products
        ]

    def _write_trip(self, units: Sequence[Stage | HeldProducts], context: Context) -> None:
        """Write the stages of a trip, and where the blocks meet between them."""
        made = set[Tensor]()
        for unit in units:
            if made & set(topological(tuple(unit.made))):
                self._block.meet()
                made.clear()
            if isinstance(unit, HeldProducts):
                others = [s for s in self._trips.stages if s not in unit.stages]
                unit.write(context, unit.stored(others, self._trips.outputs))
            else:
                context.match(unit).writer.write()
            made |= unit.made
