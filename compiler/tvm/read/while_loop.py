"""TensorFlow's While as a loop of the lowered function, if its trips can be counted beforehand.

The body is read to find out how each operand is passed on. An operand that the body does not change
is read from outside; an integer to which each trip adds a constant is a function of the counter; a
list of which each trip sets one element is an array written row by row; all others are carried. The
condition must compare such integers with bounds from outside, one or several that all have to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from composite.compiler.loop_body import LoopBody
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim, Poly
from composite.compiler.tvm.ir.lists import Rest
from composite.compiler.tvm.ir.loop import counter, leaf
from composite.compiler.tvm.ir.tensor import Pointwise, Tensor
from composite.compiler.tvm.lower.static import known_tensor
from composite.compiler.tvm.nodes.node import VARIANT, OpNode
from composite.compiler.tvm.read.loop_parts import Parts

_ROUNDS = 8
"""How often guesses at how operands are passed on are revised, at most."""

Read = Callable[..., list[Tensor]]
"""Reads a function of the library: its name, arguments, the counts of counters, minimums to note,
and of which results, by their positions; of all without."""


@dataclass(frozen=True)
class _Passed:
    """How one operand of a While is passed on.

    "fixed"; "count", an integer; "list", "pushed" and "popped", lists of which a trip sets one
    element, appends one, or takes one off; or "data".
    """

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
    return _Reading(node, condition, body, inputs, read).results(minimums)


class _Reading:
    def __init__(
        self, node: Any, condition: Any, body: Any, inputs: list[Tensor], read: Read
    ) -> None:
        self._node, self._condition, self._body = node, condition, body
        self._parts = LoopBody(body)
        self._inputs = inputs
        self._read = read
        self._counter = counter()
        self._trip = dims.symbol(self._counter)

    def results(self, minimums: dict[str, int]) -> list[Tensor]:
        passed = self._count([self._guess(i) for i in range(len(self._inputs))])
        for _ in range(_ROUNDS):
            found = dict(minimums)
            arguments = [p.argument for p in passed]
            trips = self._trips(arguments, found)
            if trips == 0:
                return list(self._inputs)
            name = self._body.signature.name
            following = self._read(name, arguments, {self._counter: trips}, found)
            pairs = zip(passed, following, strict=True)
            better = [self._settle(i, *pair) for i, pair in enumerate(pairs)]
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
                    better[i] = self._settle(i, passed[i], following)
            if better == passed:
                return passed
            passed = better
        raise NotCovered(f"{name}: what the loop counts does not settle")

    def _guess(self, i: int) -> _Passed:
        initial = self._inputs[i]
        argument = self._body.signature.input_arg[i]
        if self._parts.result(i) == argument.name:
            return _Passed("fixed", initial)
        if argument.type == VARIANT:
            return self._guess_list(i, initial)
        if initial.known is not None and not initial.shape:
            return self._counted(i, 1)
        return _Passed("data", leaf(initial))

    def _guess_list(self, i: int, initial: Tensor) -> _Passed:
        """Tell by the op that makes what is passed on whether a trip sets, appends or takes off."""
        maker = self._parts.node_of(self._parts.result(i))
        if maker is not None and maker.op == "TensorListPushBack" and initial.shape[0] == 0:
            return _Passed("pushed", leaf(replace(initial, shape=(self._trip, *initial.shape[1:]))))
        if maker is not None and maker.op == "TensorListPopBack":
            base = initial.node.base if isinstance(initial.node, Rest) else initial
            left = initial.shape[0] - self._trip
            return _Passed("popped", Tensor((left, *initial.shape[1:]), initial.dtype, Rest(base)))
        return _Passed("list", leaf(initial))

    def _counted(self, i: int, step: int) -> _Passed:
        value = self._trip * step + _element(self._inputs[i])
        return _Passed("count", known_tensor(value, self._inputs[i].dtype), step)

    def _settle(self, i: int, passed: _Passed, following: Tensor) -> _Passed:
        """Return how an operand is passed on, given what a trip made of it as guessed."""
        argument = passed.argument
        if passed.kind in ("fixed", "pushed"):
            return passed
        if passed.kind == "count":
            step = self._step(argument, following)
            if step == passed.step:
                return passed
            if step is not None:
                return self._counted(i, step)
            return _Passed("data", leaf(replace(argument, known=None)))
        if passed.kind == "popped":
            after = following.node
            same = isinstance(after, Rest) and after.base is argument.node.operands[0]
            if same and following.shape[0] == argument.shape[0] - 1:
                return passed
            raise NotCovered("TensorListPopBack: other than once a trip")
        if passed.kind == "list":
            if following.shape != argument.shape:
                return _Passed("list", leaf(following))
            return passed
        if following.shape != argument.shape or following.dtype != argument.dtype:
            raise NotCovered(f"{self._body.signature.name}: a shape that changes in a loop")
        return passed

    @staticmethod
    def _step(argument: Tensor, following: Tensor) -> int | None:
        if following.known is None or following.shape:
            return None
        step = _element(following) - _element(argument)
        return int(step) if not isinstance(step, Poly) else None

    def _trips(self, arguments: list[Tensor], minimums: dict[str, int]) -> Dim:
        """Return how many trips the condition allows."""
        name = self._condition.signature.name
        # The condition is asked once more than there are trips, so nothing is known of the counter.
        (test,) = self._read(name, arguments, {}, minimums)
        fewest: Dim | None = None
        for one in _conjuncts(test):
            found = _span(one, self._counter)
            if found is None:
                raise NotCovered(f"{name}: the trips of the loop cannot be counted beforehand")
            trips = self._counted_to(*found, minimums)
            more = trips if fewest is None else dims.larger(fewest, trips)
            if more is None:
                raise NotCovered(f"{name}: which of {fewest} and {trips} trips are fewer is open")
            fewest = trips if fewest is None else fewest + trips - more
        assert fewest is not None, "a test is one condition at least"
        return fewest

    def _counted_to(self, span: Dim, step: int, minimums: dict[str, int]) -> Dim:
        """Return after how many trips a count that is so far from its bound has reached it."""
        positive = dims.larger(span, 0)  # where it is negative, there is no trip
        if positive is None:
            OpNode(self._node, minimums).at_least(span, 0, f"the number of trips, {span},")
            positive = span
        return dims.floordiv(positive + (step - 1), step)

    def _loop(
        self, passed: Sequence[_Passed], following: Sequence[Tensor], trips: Dim
    ) -> list[Tensor]:
        parts = Parts(self._body.signature.name, self._counter, trips)
        for i, (p, after) in enumerate(zip(passed, following, strict=True)):
            initial = self._inputs[i]
            if p.kind == "data":
                parts.carry(i, p.argument, initial, after)
            elif p.kind == "list":
                parts.set_rows(i, p.argument, initial, after)
            elif p.kind == "pushed":
                parts.push(i, p.argument, after)
        results = parts.build()
        for i, p in enumerate(passed):
            if p.kind == "count":
                last = trips * p.step + _element(self._inputs[i])
                results[i] = known_tensor(last, p.argument.dtype)
            elif p.kind == "popped":
                left = self._inputs[i].shape[0] - trips
                results[i] = replace(p.argument, shape=(left, *p.argument.shape[1:]))
        return [results.get(i, initial) for i, initial in enumerate(self._inputs)]


def _element(tensor: Tensor) -> Any:
    """Return the one element of a tensor that is known: an int or a size."""
    if tensor.known is None:
        raise TypeError("the tensor is not known")
    return tensor.known.item()


def _conjuncts(test: Tensor) -> list[Tensor]:
    """Return the conditions that all have to hold: TensorFlow adds its own for a bound on trips."""
    node = test.node
    if isinstance(node, Pointwise) and node.op == "LogicalAnd":
        return [one for operand in node.operands for one in _conjuncts(operand)]
    return [test]


def _span(test: Tensor, symbol: str) -> tuple[Dim, int] | None:
    """Return how far a count is from its bound at first, and how much nearer each trip gets."""
    node = test.node
    if not isinstance(node, Pointwise) or test.shape or len(node.operands) != 2:
        return None
    if any(t.known is None for t in node.operands):
        return None
    a, b = map(_element, node.operands)
    if node.op in ("Greater", "GreaterEqual"):
        a, b = b, a
    elif node.op not in ("Less", "LessEqual"):
        return None
    span = b - a + (1 if node.op.endswith("Equal") else 0)  # holds while this is positive
    step = -dict(span.terms).get((symbol,), 0) if isinstance(span, Poly) else 0
    span = span + dims.symbol(symbol) * step  # before the first trip
    if step <= 0 or dims.mentions(span, symbol):
        return None
    return span, step
