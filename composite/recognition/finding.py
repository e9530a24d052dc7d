"""The places of a scope where an op's body is written out, and those where it nearly is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.editing.places import NearMiss, Place, Places
from composite.editing.replacement import Replacement
from composite.editing.scope import Edge, Scope
from composite.editing.traced import Traced
from composite.ops.op import CompositeOp
from composite.recognition import values
from composite.recognition.cuts import Cut
from composite.recognition.reading import COPIES, OF_SIZES, Constants
from composite.recognition.search import Call, Search
from composite.recognition.view import View, Views
from composite.recognition.vocabulary import kinds_of

_MOST_CUTS = 24  # parts that end in one node


class Recognized(NamedTuple):
    """An op that was found.

    Attributes:
        op: its name.
        function: the function of the graph that it is in, "" for the graph itself.
        node: the node that gives its first result.
        ops: the types of the nodes that it stands for.
        attrs: its attributes.
        constants: the inputs that were not there, and what each element of them is.
        deviation: the largest difference of values, as a part of the largest value.
    """

    op: str
    function: str
    node: str
    ops: tuple[str, ...]
    attrs: dict[str, Any]
    constants: dict[str, float]
    deviation: float


@dataclass(frozen=True)
class _CalledPlace(Place):
    """A place, and the call of the op that stands there."""

    call: Call | None = field(default=None)


class Finder:
    """An op looked for in the scopes of a graph, and what stands in its places.

    Attributes:
        recognized: what was found so far.
    """

    def __init__(self, op: CompositeOp, views: Views) -> None:
        """`views` are those of the graph that the scopes are of."""
        self._op = op
        self._views = views
        self._search = Search(op)
        self._deviations: dict[Any, float] = {}
        self._stands: dict[Any, Replacement] = {}
        self.recognized: list[Recognized] = []

    def __call__(self, scope: Scope) -> tuple[list[Place], list[NearMiss]]:
        """The places of a scope, none with a node of another, and near misses."""
        if not self._search.words.may_be_in(kinds_of(node.op for node in scope.nodes.values())):
            return [], []
        views = self._views.of(scope)
        if not views:
            return [], []
        found = _Found(self._search, scope, views, self._deviations)
        for name in views[0].order:
            found.visit(name)
        self.recognized += found.recognized
        near = [NearMiss(scope.name, node, why) for node, why in found.misses.items()]
        return found.places.found, near

    def at(self, scope: Scope, place: Place) -> tuple[Traced, list[Edge]]:
        """The graph of the op's call for a place, and what that takes."""
        assert isinstance(place, _CalledPlace), "it is one of this finder's"
        assert place.call is not None, "it is one of this finder's"
        call = place.call
        key = (call.arrangement, repr(call.slots), tuple(call.attrs.items()))
        if key not in self._stands:
            self._stands[key] = Replacement(_called(self._op, call))
        return self._stands[key].at(scope, place)


def _called(op: CompositeOp, call: Call) -> Callable[..., Any]:
    """The call of an op as a function of the inputs of its place."""

    def called(*given: Any) -> Any:
        taken = [given[one] if isinstance(one, int) else tf.constant(one) for one in call.slots]
        return op(*call.arrangement.nested(taken), **call.attrs)

    called.__name__ = op.__name__
    return called


class _Found:
    """What was found in a scope.

    Attributes:
        places: where the op is.
        recognized: the same, as reports have it.
    """

    def __init__(
        self, search: Search, scope: Scope, views: Sequence[View], deviations: dict[Any, float]
    ) -> None:
        """`deviations` are the known ones of calls, by the structures of their parts."""
        self._search = search
        self._scope = scope
        self._views = views
        self._deviations = deviations
        self._constants = views[0].constants
        self._cuts = search.cuts(views[0])
        self._near: set[str] = set()
        self.places = Places(scope)
        self.recognized: list[Recognized] = []
        self._missed: dict[str, tuple[str, Cut]] = {}

    @property
    def misses(self) -> dict[str, str]:
        """Where the op nearly is, and not all the same: why not."""
        return {
            name: why
            for name, (why, cut) in self._missed.items()
            if not any(one in self.places for one in cut.ops)
        }

    def visit(self, name: str) -> None:
        """Notes the place whose first result a node gives, or how nearly it is one."""
        operation = self._constants.graph.get_operation_by_name(name)
        if name in self.places or operation.type in COPIES or not operation.outputs:
            return
        nearest: tuple[float, str, Cut] | None = None
        cuts = self._cuts.at(operation.outputs[0], self._search.most_inputs)
        for cut in itertools.islice(cuts, _MOST_CUTS):
            outcome = self._search.outcome(cut, self._views[0])
            call = outcome.call_at(cut)
            if call is not None:
                refusal = self._take(call)
                if refusal is None:
                    return
                nearest = (0.0, refusal, cut)
            elif nearest is None or outcome.distance < nearest[0]:
                why = outcome.reason(cut)
                nearest = nearest if why is None else (outcome.distance, why, cut)
        if nearest is not None and name not in self._near:
            _, why, cut = nearest
            self._missed[name] = (why, cut)
            self._near |= cut.ops

    def _take(self, call: Call) -> str | None:
        """Notes a call, or says why it must not stand there."""
        place = self._place(call)
        refusal = self.places.obstacle(place)
        if refusal is not None:
            return refusal
        moved = self._deviation(call)
        if not moved <= values.bound([one.dtype for one in (*call.cut.inputs, *call.outputs)]):
            return f"{self._search.op.op_name} gives other values there, by {moved:.1e}"
        self.places.add(place)
        ops = tuple(self._scope.nodes[name].op for name in place.nodes)
        names = call.arrangement.of_each([arg.name for arg in self._search.op.schema.inputs])
        pairs = zip(names, call.slots, strict=True)
        constants = {n: float(x.flat[0]) for n, x in pairs if isinstance(x, np.ndarray)}
        self.recognized.append(
            Recognized(
                self._search.op.op_name,
                self._scope.name,
                place.root,
                ops,
                dict(call.attrs),
                constants,
                moved,
            )
        )
        return None

    def _deviation(self, call: Call) -> float:
        """How far values are from the op's, with either choice of sizes."""
        worst = 0.0
        for view in self._views:
            constants, graph = view.constants, view.constants.graph
            roots = [graph.get_tensor_by_name(one.name) for one in call.outputs]
            inputs = [graph.get_tensor_by_name(one.name) for one in call.cut.inputs]
            if not all(one.shape.is_fully_defined() for one in inputs):
                return float("inf")
            arguments = (call.arrangement, call.slots, call.attrs, inputs)
            expansion = self._search.expansion(*arguments)
            if expansion is None:
                return float("inf")
            parts = tuple(view.structure(one, inputs) for one in roots)
            key = (parts, call.arrangement, repr(call.slots), tuple(call.attrs.items()))
            if key not in self._deviations:
                part = values.part_of(graph, constants.without(inputs), roots, inputs)
                moved = values.deviation(part, expansion.body, inputs, call.slots)
                self._deviations[key] = moved
            worst = max(worst, self._deviations[key])
        return worst

    def _place(self, call: Call) -> _CalledPlace:
        """The nodes that the op stands for."""
        inputs = {one.name for one in call.cut.inputs}
        constants = self._constants.without(call.cut.inputs)
        nodes: dict[str, None] = {}
        between: dict[str, None] = {}
        pending = [one.op for one in call.outputs]
        while pending:
            op = pending.pop(0)
            if op.name in nodes or op.name in between:
                continue
            group = nodes if _computes(op, constants) else between
            group[op.name] = None
            if op.type in OF_SIZES:
                continue
            pending += [x.op for x in op.inputs if x.name not in inputs]
        kept = self._without_shared(nodes, between, inputs)
        edges = [Edge(one.op.name, one.value_index) for one in call.cut.inputs]
        outputs = [Edge(one.op.name, one.value_index) for one in call.outputs]
        return _CalledPlace(tuple(nodes), tuple(kept), edges, outputs, call=call)

    def _without_shared(
        self, nodes: dict[str, None], between: dict[str, None], inputs: set[str]
    ) -> list[str]:
        """The nodes between without those that others take as well: these stay."""
        kept = dict(between)
        while True:
            inside = {*nodes, *kept}
            left = {
                name: None
                for name in kept
                if self._scope.nodes[name].op == "Const"
                or (
                    inside.issuperset(self.places.takers(name))
                    and not self._is_result(name)
                    and not any(f"{name}:0" == one for one in inputs)
                )
            }
            if len(left) == len(kept):
                return list(kept)
            kept = left

    def _is_result(self, name: str) -> bool:
        return any(of.node == name for of in self._scope.results)


def _computes(op: Any, constants: Constants) -> bool:
    """Whether a node is neither a constant, or what follows from some, nor a copy."""
    return op.type not in COPIES and any(constants.value(one) is None for one in op.outputs)
