"""A loop under construction: what its trips carry, and the arrays of which each trip writes a row.

Readers ask for the rows that all trips compute as one tensor. The trips write them to an array,
unless they are slices of a tensor that exists for all trips at once, or rows of a product that can
be computed behind the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.lists import Among, GetRow
from composite.compiler.tvm.ir.loop import Leaf, Loop, LoopResult, Row, Trip, leaf, varies
from composite.compiler.tvm.ir.tensor import Reshape, Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.passes.lift import AllTrips, is_by_rows, lift, times_factor
from composite.compiler.tvm.passes.pipeline import LOOP_PASSES, run

After = Callable[[], Tensor]
"""Makes a tensor behind the loop, once the loop is there to have results."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class _Carried:
    """A result of the loop: its leaf, what that starts as, and what a trip makes of it."""

    leaf: Tensor
    initial: Tensor | None
    following: Tensor
    row: Row | None


class LoopBuilder:
    """Collects the results of a loop, then makes it.

    Args:
        name: The body's, for errors.
        counter: The loop's symbol.
        trips: How many there are.
    """

    def __init__(self, name: str, counter: str, trips: Dim) -> None:
        self._name = name
        self.counter = counter
        self.trips = trips
        self.trip = dims.symbol(counter)
        self._kinds: Mapping[Tensor, str | bool] = {}
        self._carried: list[_Carried] = []
        self._arrays: dict[tuple[Tensor, Dim], After] = {}
        self._loop: Tensor | None = None

    def read(self, made: Sequence[Tensor], leaves: Sequence[Tensor]) -> None:
        """Note how what trips make varies; ``leaves`` is what they carry."""
        self._kinds = varies(made, self.counter, leaves)

    def carry(
        self, argument: Tensor, initial: Tensor | None, following: Tensor, row: Row | None = None
    ) -> After:
        """Add a result; see :class:`.loop.Loop`."""
        at = len(self._carried)
        self._carried.append(_Carried(argument, initial, following, row))
        made: list[Tensor] = []

        def after() -> Tensor:
            if self._loop is None:
                raise TypeError("the loop is not there yet")
            if not made:
                result = LoopResult(self._loop, at)
                made.append(Tensor(argument.shape, argument.dtype, result))
            return made[0]

        return after

    def attempt(self, make: Callable[[], _T | None]) -> _T | None:
        """Return what is made; where that is nothing, the loop is as it was before."""
        before = list(self._carried), dict(self._arrays)
        made = make()
        if made is None:
            self._carried, self._arrays = before
        return made

    def visits_each(self, place: Dim, count: Dim | None = None) -> bool:
        """Return whether each trip visits another place, and together they visit all ``count``."""
        return place in (self.trip, self.trips - 1 - self.trip) and count in (None, self.trips)

    def first_visited(self, place: Dim, count: Dim) -> int | None:
        """Return the first of the places that trips visit, one each and all of them in a row.

        None if they do otherwise, or some may not be among ``count``.
        """
        for first in (place - self.trip, place - (self.trips - 1 - self.trip)):
            rest = count - first - self.trips
            if isinstance(first, int) and isinstance(rest, int) and min(first, rest) >= 0:
                return first
        return None

    def array(self, row: Tensor, place: Dim) -> After:
        """Return the array of the rows of all trips, which write them."""
        if (row, place) not in self._arrays:
            whole = leaf(replace(row, shape=(self.trips, *row.shape), known=None))
            self._arrays[row, place] = self.carry(whole, None, row, Row(place))
        return self._arrays[row, place]

    def place_of(self, row: Tensor) -> Dim:
        """Return where trips write a row already, if they do."""
        source = unsqueezed(row)
        return next((place for one, place in self._arrays if one is source), self.trip)

    def rows(self, row: Tensor, place: Dim) -> After | None:
        """Return all trips' rows, that of each at its place, as one tensor; None if they stay."""
        if not self._kinds[row]:
            return None
        shape = (self.trips, *row.shape)
        whole = self.lifted(row)
        if whole is not None and whole.at == place:
            axes = [i for i in range(whole.tensor.rank) if i != whole.axis]
            moved = graph.transpose(whole.tensor, (whole.axis, *axes))
            return lambda: graph.reshape(moved, shape)
        array = self.array(unsqueezed(row), place)
        return lambda: graph.reshape(array(), shape)

    def lifted(self, row: Tensor) -> AllTrips | None:
        """Return the tensor that the rows of all trips are slices of, if they are."""
        if self._kinds[row] != "counted":
            return None
        return lift(row, self._kinds, self.counter, self.trips)

    def product_of_rows(self, row: Tensor, place: Dim) -> After | None:
        """Return the product of all trips' rows with a factor that stays, made behind the loop."""
        source = unsqueezed(row)
        node = source.node
        if not isinstance(node, MatMul) or self._kinds[row] != "carried":
            return None
        rows = self.rows(node.a, place) if is_by_rows(node, self._kinds) else None
        if rows is None:
            return None
        return lambda: graph.reshape(times_factor(rows(), source, node), (self.trips, *row.shape))

    def finish(self) -> None:
        """Make the loop of what is left in the trips."""
        leaves = [one.leaf for one in self._carried]
        made = [one.following for one in self._carried]
        self._refuse(made, leaves)
        trip = Trip(tuple(leaves), tuple(made), counter=self.counter, trips=self.trips)
        trip = run(LOOP_PASSES, trip)
        loop = Loop(
            trip.counter,
            trip.trips,
            tuple(one.initial for one in self._carried),
            trip.captured,
            trip.parameters,
            trip.leaves,
            trip.outputs,
            tuple(one.row for one in self._carried),
        )
        self._loop = Tensor((), "int32", loop)

    def _refuse(self, made: Sequence[Tensor], leaves: Sequence[Tensor]) -> None:
        arrays = {one.leaf for one in self._carried if one.row is not None}
        kinds = varies(made, self.counter, leaves)
        for tensor in topological(tuple(made)):
            is_list = isinstance(tensor.node, Leaf) and tensor not in leaves
            if is_list or tensor in arrays or isinstance(tensor.node, GetRow):
                raise NotCovered(f"{self._name}: a list is read while it is written")
            if not kinds[tensor]:
                continue
            if any(dims.mentions(d, self.counter) for d in tensor.shape):
                raise NotCovered(f"{self._name}: a size that changes from trip to trip")
            if isinstance(tensor.node, Loop):
                raise NotCovered(f"{self._name}: a loop in a loop")
            if isinstance(tensor.node, Among):
                raise NotCovered(f"{self._name}: a slice's gradient that is more than added")


def unsqueezed(tensor: Tensor) -> Tensor:
    """Return what a tensor is but for dimensions of 1."""
    source = tensor
    while isinstance(source.node, Reshape) and graph.is_squeeze(
        tensor.shape, source.node.operand.shape
    ):
        source = source.node.operand
    return source
