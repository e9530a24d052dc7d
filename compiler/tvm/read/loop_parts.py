"""Sort what a While passes on into carried values, arrays of rows, and sums behind the loop.

A carried value to which trips only add is replaced by its initial value plus a sum over all trips,
computed behind the loop (:mod:`.loop_sums`): one deep product there is faster than a shallow one in
each trip. A list of which each trip sets or appends one element becomes an array with a row for
each trip; if all rows can be computed at once, the trips do not write it (:mod:`.loop_builder`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import graph
from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.lists import GetRow, KnownRows, SetRow, Unset
from composite.compiler.tvm.ir.loop import Row
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.views import select
from composite.compiler.tvm.ir.walk import rewrite, topological, users
from composite.compiler.tvm.lower.data import broadcast, filled
from composite.compiler.tvm.read.loop_builder import After, LoopBuilder
from composite.compiler.tvm.read.loop_sums import is_sum_of_rows, sum_of_trips


@dataclass(frozen=True)
class _Value:
    """What is carried, for result ``key``."""

    key: int
    leaf: Tensor
    initial: Tensor
    following: Tensor


@dataclass(frozen=True)
class _Written:
    """A list of which a trip sets the row at ``place``, for result ``key``."""

    key: int
    leaf: Tensor
    initial: Tensor
    row: Tensor
    place: Dim


class Parts:
    """Takes what a While passes on, and gives the results of the loop.

    Args:
        name: The body's, for errors.
        counter: The loop's symbol.
        trips: How many there are.
    """

    def __init__(self, name: str, counter: str, trips: Dim) -> None:
        self._loop = LoopBuilder(name, counter, trips)
        self._values: list[_Value] = []
        self._lists: list[_Written] = []
        self._pushed: dict[int, Tensor] = {}

    def carry(self, key: int, argument: Tensor, initial: Tensor, following: Tensor) -> None:
        """Add what is carried."""
        self._values.append(_Value(key, argument, initial, following))

    def set_rows(self, key: int, argument: Tensor, initial: Tensor, following: Tensor) -> None:
        """Add a list of which a trip sets one element."""
        node = _set_once(argument, following, "TensorListSetItem")
        if isinstance(initial.node, Unset):
            initial = filled(0, argument.shape, argument.dtype)
        self._lists.append(_Written(key, argument, initial, node.row, node.place))

    def push(self, key: int, argument: Tensor, following: Tensor) -> None:
        """Add a list to which a trip appends one element."""
        self._pushed[key] = _set_once(argument, following, "TensorListPushBack").row

    def build(self) -> dict[int, Tensor]:
        """Return the results by their keys."""
        self._read_before_set()
        made = [v.following for v in self._values] + [w.row for w in self._lists]
        made += [row for row in self._pushed.values() if row.known is None]
        self._loop.read(made, [v.leaf for v in self._values])
        readers = users(topological(made))
        results: dict[int, After] = {}
        # Sums of rows last: they may be of rows that others have written.
        for v in sorted(self._values, key=lambda v: is_sum_of_rows(v.leaf, v.following)):
            passed = (v.leaf, v.initial, v.following)
            alone = len(readers.get(v.leaf, ())) == 1 and v.leaf not in made
            total = sum_of_trips(self._loop, *passed) if alone else None
            results[v.key] = total or self._loop.carry(*passed)
        for written in self._lists:
            results[written.key] = self._list(written)
        for key, row in self._pushed.items():
            results[key] = self._appended(row)
        self._loop.finish()
        return {key: after() for key, after in results.items()}

    def _read_before_set(self) -> None:
        """Read rows of lists as they were, where a trip sets the very row that it has read."""
        places = {w.leaf: w for w in self._lists}

        def rule(tensor: Tensor, _: Mapping[Tensor, Tensor]) -> Tensor | None:
            node = tensor.node
            if not isinstance(node, GetRow) or node.array not in places:
                return None
            written = places[node.array]
            if node.place != written.place or not self._loop.visits_each(node.place):
                return None
            return select(written.initial, 0, written.place)

        made = [v.following for v in self._values] + [w.row for w in self._lists]
        instead = rewrite((*made, *self._pushed.values()), rule)
        self._values = [replace(v, following=instead[v.following]) for v in self._values]
        self._lists = [replace(w, row=instead[w.row]) for w in self._lists]
        self._pushed = {key: instead[row] for key, row in self._pushed.items()}

    def _list(self, written: _Written) -> After:
        row, place = written.row, written.place
        if not self._loop.visits_each(place, written.leaf.shape[0]):
            return self._loop.carry(written.leaf, written.initial, row, Row(place))
        return self._loop.product_of_rows(row, place) or self._loop.array(row, place)

    def _appended(self, row: Tensor) -> After:
        loop, shape = self._loop, (self._loop.trips, *row.shape)
        if row.known is not None:
            known = Tensor(shape, row.dtype, KnownRows(row.known, loop.counter))
            return lambda: known
        same = broadcast(graph.reshape(row, (1, *row.shape)), shape)
        return loop.rows(row, loop.trip) or (lambda: same)


def _set_once(argument: Tensor, following: Tensor, op: str) -> SetRow:
    node = following.node
    if not isinstance(node, SetRow) or node.array is not argument:
        raise NotCovered(f"{op}: other than once a trip")
    return node
