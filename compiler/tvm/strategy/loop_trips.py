"""The trips of a loop as stages, and where they read and write what they carry.

The function of a trip is planned as a whole function is, and the strategies that match its stages
write them inside of the loop. A value that is carried as a whole has two buffers: a trip reads one
and writes the other, so that none of its stages sees the value of the next trip. A row of an array
is written to its place in the result.

Not here: who runs the trips, and where those meet who run them (a strategy of the device).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from composite.compiler.tvm.codegen.access import Storage
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.graph import Function, pointwise
from composite.compiler.tvm.ir.loop import Loop, LoopResult, number_of, varies
from composite.compiler.tvm.ir.tensor import Expr, Pointwise, Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.plan.plan import make_plan
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.tir.block import index, remainder

Place = Callable[[Expr], Expr]


class LoopTrips:
    """The trips of a loop.

    Attributes:
        loop: The loop.
        stages: Those of a trip, in order.
        context: What trips see of outside.
    """

    def __init__(
        self, stage: Stage, loop: Loop, captured: Sequence[Storage], context: Context, place: Place
    ) -> None:
        self.loop = loop
        self._results = {t.node.index: t for t in stage.stores if isinstance(t.node, LoopResult)}
        self._kept = _needed(loop, self._results)
        self._wholes: dict[int, Storage] = {}
        self._plan = make_plan(Function((), tuple(loop.following[i] for i in self._kept)))
        self._place = place
        space = context.space.within(loop.counter, index(0))
        for storage, inner in zip(captured, loop.leaves, strict=True):
            space.parameters[number_of(inner)] = storage
        self.context = replace(context, space=space)

    @classmethod
    def of(cls, stage: Stage, context: Context, place: Place | None = None) -> LoopTrips | None:
        """Return the trips of a stage's loop; None if it has none or not all operands are stored.

        ``place`` is applied to each offset into a buffer that a trip computes.
        """
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, Loop):
            return None
        stored = [context.space.storage(t) for t in anchor.node.captured]
        captured = [storage for storage in stored if storage is not None]
        if len(captured) < len(stored):
            return None
        return cls(stage, anchor.node, captured, context, place or context.block.bind)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of a trip that have something to compute."""
        return tuple(s for s in self._plan.stages if 0 not in s.shape)

    @property
    def count(self) -> Expr | int:
        """How many trips there are."""
        return self.context.size(self.loop.trips)

    @property
    def outputs(self) -> set[Tensor]:
        """What a trip makes for later ones, or for the results."""
        return {*self._plan.outputs}

    def stays(self, tensor: Tensor) -> bool:
        """Return whether a tensor has the same elements in all trips."""
        return not varies((tensor,), self.loop.counter, self.loop.carried)[tensor]

    def begin(self, rounded: Collection[Tensor] = ()) -> None:
        """Take memory, and write what is carried into the first trip.

        What is carried is as it was computed, but for what may be ``rounded`` to its dtype.
        """
        context, loop = self.context, self.loop
        for i, initial in enumerate(loop.initial):
            if loop.rows[i] is not None and initial is not None and i in self._results:
                self._copy(initial, context.space.storages[self._results[i]])
        for i in self._kept:
            initial = loop.initial[i]
            if loop.rows[i] is None and initial is not None:
                leaf = loop.carried[i]
                self._wholes[i] = context.temporary(leaf, 2, rounded=leaf in rounded)
                self._copy(initial, self._wholes[i])
        for stage in self._plan.stages:
            for tensor in stage.stores:
                if tensor not in self._plan.outputs:
                    context.space.storages[tensor] = context.temporary(tensor)

    def of_trip(self, trip: Expr) -> Context:
        """Return the context of a trip: where it reads what is carried, and where it writes."""
        loop = self.loop
        space = self.context.space.within(loop.counter, trip)
        for i, output in zip(self._kept, self._plan.outputs, strict=True):
            row = loop.rows[i]
            if row is None:
                space.parameters[number_of(loop.carried[i])] = self._half(i, self._wholes[i], trip)
                space.storages[output] = self._half(i, self._wholes[i], trip + 1)
                continue
            array = self._results[i]
            offset = space.size(row.place) * space.size(product(array.shape[1:]))
            whole = self.context.space.storages[array]
            place = self._place(index(whole.offset + offset))
            space.storages[output] = replace(whole, offset=place)
        return replace(self.context, space=space)

    def end(self) -> None:
        """Copy what is carried as a whole to the results."""
        space, trips = self.context.space, self.count
        for i, storage in self._wholes.items():
            if i in self._results:
                leaf = self.loop.carried[i]
                space.parameters[number_of(leaf)] = self._half(i, storage, trips)
                self._copy(leaf, space.storages[self._results[i]])

    def _copy(self, source: Tensor, target: Storage) -> None:
        """Write a tensor to a place."""
        copied = pointwise("Identity", lambda _, x: x, (source,), source.dtype, cost=0)
        self.context.space.storages[copied] = target
        stage = Stage(copied.shape, None, [copied])
        if 0 not in stage.shape:
            self.context.match(stage).writer.write()

    def _half(self, i: int, storage: Storage, number: Expr | int) -> Storage:
        """Return the buffer that is read in trip ``number``; the next one reads the other."""
        size = self.context.size(product(self.loop.carried[i].shape))
        return replace(storage, offset=self._place(remainder(number, 2) * size))


def _needed(loop: Loop, results: Collection[int]) -> list[int]:
    """Return which results the trips make: those that are read, there or in other trips."""
    needed = set(results)
    while True:
        read = set(topological(tuple(loop.following[i] for i in needed)))
        more = {i for i, leaf in enumerate(loop.carried) if leaf in read} | needed
        if more == needed:
            return sorted(needed)
        needed = more


def reads_in_place(tensors: Sequence[Tensor], made: set[Tensor]) -> bool:
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
