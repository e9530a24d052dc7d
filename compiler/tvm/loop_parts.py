"""What a loop is made of once its body is read: what trips carry, the rows they write, their sums.

A sum over trips need not be carried. Where what a trip adds is a product of its own rows, as the
gradient of a recurrent weight is, the trips write those rows, and one product of all of them
follows the loop: many times as deep, and made once. So too for a row that is a product with a
factor that stays, and for sums of rows; the gradient of a sequence is the array of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from . import dims, graph
from .dims import Dim, Shape
from .errors import NotCovered
from .graph import MatMul, Pointwise, Reduce, Reshape, Tensor, topological
from .hoist import AllTrips, close, flat_rows, hoist, is_by_rows, lift, push_slices, times_factor
from .lists import Among, GetRow, KnownRows, SetRow, Unset
from .loop import Leaf, Loop, LoopResult, Row, is_one_value, leaf, varies
from .lower.arithmetic import plus
from .lower.data import filled
from .lower.reduction import ADD, reduce_over
from .raising import rebuilt
from .views import select

_SUMS = ("AddN", "AddV2", "Add")

After = Callable[[], Tensor]
"""Makes a tensor behind the loop, once the loop is there to have results."""


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
        self._name = name
        self._counter = counter
        self._trips = trips
        self._trip = dims.symbol(counter)
        self._values: list[_Value] = []
        self._lists: list[_Written] = []
        self._pushed: dict[int, Tensor] = {}
        self._results: dict[int, After] = {}
        self._kinds: Mapping[Tensor, str | bool] = {}
        # The loop: leaves, what they start as, what a trip makes, and the rows among that.
        self._arrays: dict[tuple[Tensor, Dim], int] = {}
        self._carried: list[tuple[Tensor, Tensor | None, Tensor, Row | None]] = []
        self._bundle: Tensor | None = None
        self._made: dict[int, Tensor] = {}

    def carry(self, key: int, argument: Tensor, initial: Tensor, following: Tensor) -> None:
        """Add what is carried."""
        self._values.append(_Value(key, argument, initial, following))

    def set_rows(self, key: int, argument: Tensor, initial: Tensor, following: Tensor) -> None:
        """Add a list of which a trip sets one element."""
        node = following.node
        if not isinstance(node, SetRow) or node.array is not argument:
            raise NotCovered("TensorListSetItem: other than once a trip")
        self._lists.append(_Written(key, argument, initial, node.row, node.place))

    def push(self, key: int, argument: Tensor, following: Tensor) -> None:
        """Add a list to which a trip appends one element."""
        node = following.node
        if not isinstance(node, SetRow) or node.array is not argument:
            raise NotCovered("TensorListPushBack: other than once a trip")
        self._pushed[key] = node.row

    def build(self) -> dict[int, Tensor]:
        """Return the results by their keys."""
        self._read_before_set()
        made = [v.following for v in self._values] + [w.row for w in self._lists]
        made += [row for row in self._pushed.values() if row.known is None]
        leaves = [v.leaf for v in self._values]
        self._kinds = varies(made, self._counter, leaves)
        readers = _readers(made)
        # Sums of rows last: they may be of rows that others have written.
        for value in sorted(self._values, key=lambda v: isinstance(_total_of(v), Reduce)):
            after = self._sum(value, readers, made)
            if after is not None:
                self._results[value.key] = after
                continue
            at = len(self._carried)
            self._carried.append((value.leaf, value.initial, value.following, None))
            self._results[value.key] = self._result(at)
        for written in self._lists:
            self._results[written.key] = self._list(written)
        for key, row in self._pushed.items():
            self._results[key] = self._appended(row)
        self._finish()
        return {key: after() for key, after in self._results.items()}

    def _result(self, at: int) -> After:
        def after() -> Tensor:
            if self._bundle is None:
                raise TypeError("the loop is not there yet")
            if at not in self._made:
                like = self._carried[at][0]
                self._made[at] = Tensor(like.shape, like.dtype, LoopResult(self._bundle, at))
            return self._made[at]

        return after

    def _finish(self) -> None:
        """Make the loop of what is left in the trips."""
        leaves = [entry[0] for entry in self._carried]
        made = [entry[2] for entry in self._carried]
        arrays = {entry[0] for entry in self._carried if entry[3] is not None}
        self._refuse(made, arrays, set(leaves))
        made = hoist(made, leaves, self._counter, self._trips)
        made = push_slices(made, leaves, self._counter)
        captured, inner, made = close(made, leaves, self._counter)
        loop = Loop(
            self._counter,
            self._trips,
            tuple(entry[1] for entry in self._carried),
            tuple(captured),
            tuple(leaves),
            tuple(inner),
            tuple(made),
            tuple(entry[3] for entry in self._carried),
        )
        self._bundle = Tensor((), "int32", loop)

    def _refuse(self, made: Sequence[Tensor], arrays: set[Tensor], leaves: set[Tensor]) -> None:
        kinds = varies(made, self._counter, leaves)
        for tensor in topological(tuple(made)):
            is_list = isinstance(tensor.node, Leaf) and tensor not in leaves
            if is_list or tensor in arrays or isinstance(tensor.node, GetRow):
                raise NotCovered(f"{self._name}: a list is read while it is written")
            if not kinds[tensor]:
                continue
            if any(dims.mentions(d, self._counter) for d in tensor.shape):
                raise NotCovered(f"{self._name}: a size that changes from trip to trip")
            if isinstance(tensor.node, Loop):
                raise NotCovered(f"{self._name}: a loop in a loop")
            if isinstance(tensor.node, Among):
                raise NotCovered(f"{self._name}: a slice's gradient that is more than added")

    def _read_before_set(self) -> None:
        """Read rows of lists as they were, where a trip sets the very row that it has read."""
        instead: dict[Tensor, Tensor] = {}
        places = {w.leaf: w for w in self._lists}
        made = [v.following for v in self._values] + [w.row for w in self._lists]
        for tensor in topological((*made, *self._pushed.values())):
            node = tensor.node
            if isinstance(node, GetRow) and node.array in places:
                written = places[node.array]
                if node.place == written.place and self._covers(node.place, None):
                    instead[tensor] = self._row_before(written, tensor)
                    continue
            instead[tensor] = rebuilt(tensor, instead)
        self._values = [replace(v, following=instead[v.following]) for v in self._values]
        self._lists = [replace(w, row=instead[w.row]) for w in self._lists]
        self._pushed = {key: instead[row] for key, row in self._pushed.items()}

    def _row_before(self, written: _Written, like: Tensor) -> Tensor:
        if isinstance(written.initial.node, Unset):
            return filled(0, like.shape, like.dtype)
        return select(written.initial, 0, written.place)

    def _covers(self, place: Dim, count: Dim | None) -> bool:
        """Return whether a place is another in each trip, and all of ``count`` if that is given."""
        if count is not None and count != self._trips:
            return False
        ends = (self._trip, self._trip * -1 + (self._trips - 1))
        return place in ends

    # Arrays: a row a trip.

    def _array(self, row: Tensor, place: Dim, count: Dim | None = None) -> int:
        """Have the trips write a row; return which of the loop's results the array is."""
        found = self._arrays.get((row, place))
        if found is None:
            found = self._arrays[row, place] = len(self._carried)
            whole = leaf(replace(row, shape=(count or self._trips, *row.shape), known=None))
            self._carried.append((whole, None, row, Row(place)))
        return found

    def _place_of(self, row: Tensor) -> Dim:
        """Return where trips write a row already, if they do."""
        return next((place for one, place in self._arrays if one is row), self._trip)

    def _rows(self, row: Tensor, place: Dim) -> After | None:
        """Return all trips' rows, that of each at its place, as one tensor; None if they stay."""
        if not self._kinds[row]:
            return None
        whole = self._lifted(row)
        if whole is not None and whole.at == place:
            axes = [i for i in range(whole.tensor.rank) if i != whole.axis]
            moved = graph.transpose(whole.tensor, (whole.axis, *axes))
            return lambda: graph.reshape(moved, (self._trips, *row.shape))
        source, shape = _unsqueezed(row)
        array = self._result(self._array(source, place))
        return lambda: graph.reshape(array(), (self._trips, *shape))

    def _lifted(self, row: Tensor) -> AllTrips | None:
        """Return the tensor that the rows of all trips are slices of, if they are."""
        if self._kinds[row] != "counted":
            return None
        return lift(row, self._kinds, self._counter, self._trips)

    def _list(self, written: _Written) -> After:
        covered = self._covers(written.place, written.leaf.shape[0])
        row = written.row
        if covered:
            made = self._product_of_rows(row, written.place)
            if made is not None:
                return made
            return self._result(self._array(row, written.place))
        whole = leaf(replace(written.leaf, shape=(written.leaf.shape[0], *row.shape)))
        initial = written.initial
        if isinstance(initial.node, Unset):
            initial = filled(0, whole.shape, whole.dtype)
        self._carried.append((whole, initial, row, Row(written.place)))
        return self._result(len(self._carried) - 1)

    def _appended(self, row: Tensor) -> After:
        if row.known is not None:
            shape = (self._trips, *row.shape)
            known = Tensor(shape, row.dtype, KnownRows(row.known, self._counter))
            return lambda: known
        rows = self._rows(row, self._trip)
        if rows is None:  # the same in all trips
            one = graph.reshape(row, (1, *row.shape))
            same = graph.pointwise(
                "BroadcastTo",
                lambda _, x: x,
                (one,),
                row.dtype,
                cost=0,
                shape=(self._trips, *row.shape),
            )
            return lambda: same
        return rows

    def _product_of_rows(self, row: Tensor, place: Dim) -> After | None:
        """Return the product of all trips' rows with a factor that stays, made behind the loop."""
        source, _ = _unsqueezed(row)
        node = source.node
        if not isinstance(node, MatMul) or self._kinds[row] != "carried":
            return None
        if not is_by_rows(node, self._kinds):
            return None
        rows = self._rows(node.a, place)
        if rows is None:
            return None
        shape = (self._trips, *row.shape)
        return lambda: graph.reshape(times_factor(rows(), source, node), shape)

    # Sums: what each trip adds.

    def _sum(
        self, value: _Value, readers: Mapping[Tensor, int], made: Sequence[Tensor]
    ) -> After | None:
        """Return a carried value as what it starts as and the sum of what trips add, if it is."""
        added = _addends(value.following, value.leaf)
        alone = readers.get(value.leaf) == 1 and value.leaf not in made
        if not added or not alone or not value.leaf.dtype.startswith("float"):
            return None
        afters = []
        before = list(self._carried), dict(self._arrays)
        for addend in added:
            one = self._total(addend)
            if one is None:
                self._carried, self._arrays = before
                return None
            afters.append(one)

        def after() -> Tensor:
            total: Tensor | None = None if _is_zero(value.initial) else value.initial
            for each in afters:
                total = each() if total is None else plus(total, each())
            if total is None:
                raise TypeError("a sum of nothing")
            return total

        return after

    def _total(self, addend: Tensor) -> After | None:
        """Return the sum over all trips of a tensor that each of them makes."""
        source, shape = addend, addend.shape
        while isinstance(source.node, Reshape) and graph.is_squeeze(
            shape, source.node.operand.shape
        ):
            source = source.node.operand
        node = source.node
        if isinstance(node, Among):
            return self._moved(source, node)
        if isinstance(node, MatMul):
            return self._deep_product(source, node)
        if isinstance(node, Reduce) and node.combine is ADD:
            row, _ = _unsqueezed(node.operand)
            rows = self._rows(node.operand, self._place_of(row))
            if rows is None:
                return None
            axes = (0, *(a + 1 for a in node.axes))
            return lambda: graph.reshape(reduce_over(ADD, rows(), axes, keep=False), shape)
        return None

    def _moved(self, source: Tensor, node: Among) -> After | None:
        """Return rows that each lie at a place of their own, as the dimension they are among."""
        if not self._covers(node.place, source.shape[node.axis]):
            return None
        rows = self._product_of_rows(node.operand, node.place)
        rows = rows or self._rows(node.operand, node.place)
        if rows is None:
            return None
        order = list(range(1, source.rank))
        order.insert(node.axis, 0)
        return lambda: graph.transpose(rows(), tuple(order))

    def _deep_product(self, source: Tensor, node: MatMul) -> After | None:
        """Return the sum of products ``a^T b`` as one product of all rows of a and of b."""
        if not node.transpose_a or node.transpose_b or source.rank != 2:
            return None
        lifted = [one for one in (self._lifted(node.a), self._lifted(node.b)) if one is not None]
        place = lifted[0].at if lifted else self._trip
        if not self._covers(place, None):
            return None
        a, b = self._rows(node.a, place), self._rows(node.b, place)
        if a is None or b is None:
            return None

        def after() -> Tensor:
            return replace(source, node=replace(node, a=flat_rows(a()), b=flat_rows(b())))

        return after


def _total_of(value: _Value) -> graph.Node | None:
    """Return what makes the last of what is added to a value."""
    added = _addends(value.following, value.leaf)
    return _unsqueezed(added[-1])[0].node if added else None


def _unsqueezed(tensor: Tensor) -> tuple[Tensor, Shape]:
    """Return what a tensor is another shape of, and its shape."""
    source = tensor
    while isinstance(source.node, Reshape) and graph.is_squeeze(
        tensor.shape, source.node.operand.shape
    ):
        source = source.node.operand
    return source, tensor.shape


def _readers(made: Sequence[Tensor]) -> dict[Tensor, int]:
    count: dict[Tensor, int] = {}
    for tensor in topological(tuple(made)):
        for operand in tensor.node.operands:
            count[operand] = count.get(operand, 0) + 1
    return count


def _addends(total: Tensor, start: Tensor) -> list[Tensor] | None:
    """Return what is added to ``start`` to make ``total``, None if it is made otherwise."""
    node = total.node
    if not isinstance(node, Pointwise) or node.op not in _SUMS or len(node.operands) != 2:
        return None
    if any(t.shape != total.shape for t in node.operands):
        return None
    for one, other in (node.operands, node.operands[::-1]):
        if one is start:
            return [other]
        before = _addends(one, start)
        if before is not None:
            return [*before, other]
    return None


def _is_zero(tensor: Tensor) -> bool:
    """Return whether a tensor is known to be all zeros."""
    if not is_one_value(tensor):
        return False
    constants = [t.node.value for t in topological((tensor,)) if isinstance(t.node, graph.Constant)]
    views = ("Fill", "Cast", "BroadcastTo", "Identity")
    plain = all(
        not isinstance(t.node, Pointwise) or t.node.op in views for t in topological((tensor,))
    )
    return plain and len(constants) == 1 and not constants[0].any()
