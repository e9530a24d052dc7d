"""TensorFlow's While as a loop of the lowered function, if its trips can be counted beforehand.

What the loop passes on is told apart by reading its body: what it does not change is read from
outside; an integer that a trip adds a constant to is a size of the trip; a list of which a trip
sets one element is an array that is written row by row; all else is carried. A condition must
compare such an integer with a bound from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import dims, graph
from .dims import Dim, Poly
from .errors import NotCovered
from .graph import Pointwise, Tensor, topological
from .hoist import close, hoist, push_slices
from .lists import SetRow, Unset
from .loop import Leaf, Loop, LoopResult, Row, counter, leaf, mentions
from .lower.data import filled
from .lower.static import known_tensor

_VARIANT = 21  # tensorflow.DT_VARIANT, of lists
_ROUNDS = 8
"""Guesses at how a value is passed on: a part changes from a step of 1 to another to data."""

Read = Callable[..., list[Tensor]]
"""Reads a function of the library: its name, arguments, the counts of counters, minimums to note,
and of which results, by their positions; of all without."""


@dataclass(frozen=True)
class _Passed:
    """How one operand of a While is passed on: "fixed", "count", "list" or "data"."""

    kind: str
    argument: Tensor
    step: int = 0


def lower_while(
    node: Any,
    inputs: list[Tensor],
    read: Read,
    functions: Mapping[str, Any],
    minimums: dict[str, int],
) -> list[Tensor]:
    """Return the results of a While node.

    Raises:
        NotCovered: If the trips cannot be counted, or a trip does what kernels do not.
    """
    names = [node.attr[key].func.name for key in ("cond", "body")]
    for name in names:
        if name not in functions:
            raise NotCovered(f"function {name} is not in the library")
    condition, body = (functions[name] for name in names)
    return _Reading(condition, body, inputs, read).results(minimums)


class _Reading:
    def __init__(self, condition: Any, body: Any, inputs: list[Tensor], read: Read) -> None:
        self._condition, self._body = condition, body
        self._inputs = inputs
        self._read = read
        self._counter = counter()

    def results(self, minimums: dict[str, int]) -> list[Tensor]:
        passed = self._count([self._guess(i) for i in range(len(self._inputs))])
        for _ in range(_ROUNDS):
            found = dict(minimums)
            arguments = [p.argument for p in passed]
            trips = self._trips(arguments, found)
            if trips == 0:
                return [self._unlooped(i) for i in range(len(passed))]
            name = self._body.signature.name
            following = self._read(name, arguments, {self._counter: trips}, found)
            better = [self._settle(*pair) for pair in zip(passed, following, strict=True)]
            if better == passed:
                minimums.update(found)
                return self._loop(passed, following, trips)
            passed = better
        raise NotCovered(f"{self._body.signature.name}: what the loop passes on does not settle")

    def _count(self, passed: list[_Passed]) -> list[_Passed]:
        """Settle what is counted, of which all else may depend: by what steps, if any."""
        name = self._body.signature.name
        for _ in range(_ROUNDS):
            counts = [i for i, p in enumerate(passed) if p.kind == "count"]
            arguments = [p.argument for p in passed]
            better = list(passed)
            for i in counts:
                try:
                    (following,) = self._read(name, arguments, {}, {}, [i])
                except NotCovered:  # made of what is not counted
                    better[i] = _Passed("data", leaf(replace(passed[i].argument, known=None)))
                else:
                    better[i] = self._settle(passed[i], following)
            if better == passed:
                return passed
            passed = better
        raise NotCovered(f"{name}: what the loop counts does not settle")

    def _guess(self, i: int) -> _Passed:
        initial = self._inputs[i]
        argument = self._body.signature.input_arg[i]
        if self._returned(i) == argument.name:
            return _Passed("fixed", initial)
        if argument.type == _VARIANT:
            return _Passed("list", leaf(initial))
        if initial.known is not None and not initial.shape:
            return self._counted(initial, 1)
        return _Passed("data", leaf(initial))

    def _returned(self, i: int) -> str:
        """Return what the body returns, before it is only passed through."""
        nodes = {n.name: n for n in self._body.node_def}
        reference = self._body.ret[self._body.signature.output_arg[i].name]
        while nodes.get(reference.split(":")[0]) is not None:
            node = nodes[reference.split(":")[0]]
            if node.op != "Identity":
                break
            reference = node.input[0]
        return str(reference)

    def _counted(self, initial: Tensor, step: int) -> _Passed:
        trip = Poly((((self._counter,), 1),))
        (first,) = initial.known.reshape(-1)  # type: ignore[union-attr]
        value = trip * step + first
        return _Passed("count", known_tensor(value, initial.dtype), step)

    def _settle(self, passed: _Passed, following: Tensor) -> _Passed:
        """Return how an operand is passed on, given what a trip made of it as guessed."""
        argument = passed.argument
        if passed.kind == "fixed":
            return passed
        if passed.kind == "count":
            step = self._step(argument, following)
            if step == passed.step:
                return passed
            if step is not None:
                return self._counted(self._first(argument, passed.step), step)
            return _Passed("data", leaf(replace(argument, known=None)))
        if passed.kind == "list":
            if following.shape != argument.shape:
                return _Passed("list", leaf(following))
            return passed
        if following.shape != argument.shape or following.dtype != argument.dtype:
            raise NotCovered(f"{self._body.signature.name}: a shape that changes in a loop")
        return passed

    def _first(self, argument: Tensor, step: int) -> Tensor:
        trip = Poly((((self._counter,), 1),))
        (value,) = argument.known.reshape(-1)  # type: ignore[union-attr]
        return known_tensor(value - trip * step, argument.dtype)

    @staticmethod
    def _step(argument: Tensor, following: Tensor) -> int | None:
        if following.known is None or following.shape:
            return None
        (before,), (after,) = argument.known.reshape(-1), following.known.reshape(-1)  # type: ignore[union-attr]
        step = after - before
        return int(step) if not isinstance(step, Poly) else None

    def _trips(self, arguments: list[Tensor], minimums: dict[str, int]) -> Dim:
        """Return how many trips the condition allows."""
        name = self._condition.signature.name
        # The condition is asked once more than there are trips, so nothing is known of the counter.
        (test,) = self._read(name, arguments, {}, minimums)
        found = _bound(test, self._counter)
        if found is None:
            raise NotCovered(f"{name}: the trips of the loop cannot be counted beforehand")
        return found

    def _unlooped(self, i: int) -> Tensor:
        return self._inputs[i]

    def _loop(
        self, passed: Sequence[_Passed], following: Sequence[Tensor], trips: Dim
    ) -> list[Tensor]:
        carried = [i for i, p in enumerate(passed) if p.kind in ("list", "data")]
        rows: list[Row | None] = []
        made: list[Tensor] = []
        for i in carried:
            value, row = following[i], None
            if passed[i].kind == "list":
                value, row = _written(value, passed[i].argument)
            made.append(value)
            rows.append(row)
        leaves = [passed[i].argument for i in carried]
        self._refuse(made, [t for t, row in zip(leaves, rows, strict=True) if row is not None])
        made = hoist(made, leaves, self._counter, trips)
        made = push_slices(made, leaves, self._counter)
        captured, inner, made = close(made, leaves, self._counter)
        initial = [
            _start(self._inputs[i], leaf_, row, self._counter, trips)
            for i, leaf_, row in zip(carried, leaves, rows, strict=True)
        ]
        loop = Loop(
            self._counter,
            trips,
            tuple(initial),
            tuple(captured),
            tuple(leaves),
            tuple(inner),
            tuple(made),
            tuple(rows),
        )
        bundle = Tensor((), "int32", loop)
        results = list(self._inputs)
        for index, i in enumerate(carried):
            like = leaves[index]
            results[i] = Tensor(like.shape, like.dtype, LoopResult(bundle, index))
        for i, p in enumerate(passed):
            if p.kind == "count":
                (first,) = self._inputs[i].known.reshape(-1)  # type: ignore[union-attr]
                results[i] = known_tensor(trips * p.step + first, p.argument.dtype)
        return results

    def _refuse(self, made: Sequence[Tensor], arrays: Sequence[Tensor]) -> None:
        name = self._body.signature.name
        for tensor in topological(tuple(made)):
            if any(mentions(d, self._counter) for d in tensor.shape):
                raise NotCovered(f"{name}: a size that changes from trip to trip")
            if isinstance(tensor.node, Loop):
                raise NotCovered(f"{name}: a loop in a loop")
            if tensor in arrays or isinstance(tensor.node, SetRow | Unset):
                raise NotCovered(f"{name}: a list is read while it is written")


def _bound(test: Tensor, symbol: str) -> Dim | None:
    """Return for how many trips a comparison of a count and a bound holds."""
    node = test.node
    if not isinstance(node, Pointwise) or test.shape or len(node.operands) != 2:
        return None
    low, high = (t.known for t in node.operands)
    if low is None or high is None:
        return None
    a, b = low.reshape(-1)[0], high.reshape(-1)[0]
    if node.op in ("Greater", "GreaterEqual"):
        a, b = b, a
    elif node.op not in ("Less", "LessEqual"):
        return None
    span = b - a + (1 if node.op.endswith("Equal") else 0)  # holds while this is positive
    terms = dict(span.terms) if isinstance(span, Poly) else {}
    step = -terms.pop((symbol,), 0)
    if step <= 0 or any(symbol in " ".join(m).split() for m in terms):
        return None
    span = span + Poly((((symbol,), 1),)) * step
    # Before the first trip this may be negative: then there is none.
    positive = dims.larger(span, 0)
    if positive is None:
        return None
    return dims.floordiv(positive + (step - 1), step)


def _written(value: Tensor, array: Tensor) -> tuple[Tensor, Row]:
    """Return the row that a trip sets of an array, and where."""
    node = value.node
    if not isinstance(node, SetRow) or node.array is not array:
        raise NotCovered("TensorListSetItem: other than once a trip")
    return node.row, Row(node.place)


def _start(
    initial: Tensor, like: Tensor, row: Row | None, symbol: str, trips: Dim
) -> Tensor | None:
    """Return what a leaf starts as; None for an array all of whose rows are written."""
    if row is not None and _covers(row.place, symbol, trips, like.shape[0]):
        return None
    if isinstance(initial.node, Unset):
        return filled(0, like.shape, like.dtype)
    return graph.reshape(initial, like.shape)


def _covers(place: Dim, symbol: str, trips: Dim, count: Dim) -> bool:
    """Return whether a place runs through all rows, up or down."""
    trip = Poly((((symbol,), 1),))
    return trips == count and place in (trip, trip * -1 + (trips - 1))


__all__ = ["Leaf", "lower_while"]
