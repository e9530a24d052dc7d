"""The places of a scope that a Match means, and those that it nearly does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from composite.binding.records import python_value
from composite.editing.match import Match
from composite.editing.matcher import Found, Search
from composite.editing.pattern import Pattern
from composite.editing.scope import Edge, Scope
from composite.ops import call, call_arguments


@dataclass(frozen=True)
class Place:
    """Nodes of a scope that are replaced as one.

    Attributes:
        nodes: those that compute, the one of the first result first.
        between: constants and Identity nodes among them, which go where nobody else takes them.
        inputs: what the replacement is given; a list where an op takes one.
        outputs: what it has to give.
        attrs: the attributes of the one node, where no pattern was asked for.
    """

    nodes: tuple[str, ...]
    between: tuple[str, ...]
    inputs: Sequence[Edge | list[Edge]]
    outputs: Sequence[Edge]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The node that it is called by."""
        return self.nodes[0]

    @property
    def sources(self) -> list[Edge]:
        """The inputs in one list."""
        lists = (x if isinstance(x, list) else [x] for x in self.inputs)
        return [of for one in lists for of in one]


class NearMiss(NamedTuple):
    """A node that is nearly what was looked for.

    Attributes:
        function: the function that it is in, "" for the graph.
        node: its name.
        reason: the first difference, or why it must not be replaced.
    """

    function: str
    node: str
    reason: str


def find(
    scope: Scope, match: Match, patterns: Sequence[Pattern]
) -> tuple[list[Place], list[NearMiss]]:
    """The places of a match, none with a node of another, and near misses."""
    finder = _Finder(scope, match)
    for name in scope.from_the_results():
        if name not in scope.arguments:
            finder.visit(name, patterns)
    inside = {node for place in finder.places for node in place.nodes}
    near = [NearMiss(scope.name, node, why) for node, why in finder.misses if node not in inside]
    return finder.places, near


class _Finder:
    def __init__(self, scope: Scope, match: Match) -> None:
        self._scope = scope
        self._match = match
        self._consumers = scope.consumers()
        self._searches: dict[Pattern, Search] = {}
        self._groups: dict[str, Place] = {}
        self.places: list[Place] = []
        self.misses: list[tuple[str, str]] = []

    def visit(self, name: str, patterns: Sequence[Pattern]) -> None:
        """Notes the place whose first result a node gives, or how nearly it is one."""
        node = self._scope.nodes[name]
        if self._match.op not in (None, node.op):
            return
        if self._match.pattern is None:
            if call.op_def(node.op) is None:  # a function is called by its name
                return
            refusal = self._refusal_of(name)
            place = None if refusal else self._single(name)
            is_near = self._match.op is not None
        else:
            place, refusal, is_near = self._of_patterns(name, patterns)
        if place is not None:
            self.places.append(place)
            self._groups |= dict.fromkeys(place.nodes, place)
        elif refusal and is_near:
            self.misses.append((name, refusal))

    def _refusal_of(self, name: str) -> str | None:
        node = self._scope.nodes[name]
        return self._match.refusal(node, lambda: self._scope.graph.get_operation_by_name(name))

    def _single(self, name: str) -> Place:
        node = self._scope.nodes[name]
        definition = call.op_def(node.op)
        defaults = {a.name: a.default_value for a in definition.attr if a.HasField("default_value")}
        attrs = {**defaults, **{n: v for n, v in node.attr.items() if not n.startswith("_")}}
        given = iter(self._scope.operands(name))
        inputs: list[Edge | list[Edge]] = []
        for arg in definition.input_arg:
            is_list = bool(arg.number_attr or arg.type_list_attr)
            taken = [next(given) for _ in range(call_arguments.length(arg, attrs))]
            inputs.append(taken if is_list else taken[0])
        count = sum(call_arguments.length(arg, attrs) for arg in definition.output_arg)
        values = {n: python_value(value) for n, value in attrs.items()}
        return Place((name,), (), inputs, [Edge(name, k) for k in range(count)], values)

    def _of_patterns(
        self, name: str, patterns: Sequence[Pattern]
    ) -> tuple[Place | None, str | None, bool]:
        """The first pattern that is here; else why not, and whether most of one is."""
        nearest, why = 0.5, None
        for pattern in patterns:
            if pattern.root != self._scope.nodes[name].op:
                continue
            if pattern not in self._searches:
                self._searches[pattern] = Search(pattern, self._scope)
            search = self._searches[pattern]
            for found in search.at(name):
                place = self._place(pattern, found)
                refusal = self._refusal_of(name) or self._obstacle(place)
                if refusal is None:
                    return place, None, False
                nearest, why = 1.0, refusal
            part = search.reached / len(pattern.ops)
            if search.reason and part >= nearest and nearest < 1.0:
                nearest, why = part, search.reason
        return None, why, why is not None

    def _place(self, pattern: Pattern, found: Found) -> Place:
        nodes = tuple(dict.fromkeys(found.nodes[name] for name in pattern.ops))
        outputs = [Edge(found.nodes[of.node], of.output) for of in pattern.graph.outputs]
        constants = {found.nodes[name] for name in found.nodes if pattern.is_constant(name)}
        between = dict.fromkeys(sorted(constants))
        for node in nodes:
            for of in self._scope.operands(node):
                between |= dict.fromkeys(self._copies(of, {*nodes, *constants}, outputs))
        inputs = [found.inputs[name] for name in pattern.graph.inputs]
        return Place(nodes, tuple(between), inputs, outputs)

    def _copies(self, of: Edge, inside: set[str], outputs: Sequence[Edge]) -> list[str]:
        """The Identity nodes between a node and what it takes, where that is inside, too."""
        source = self._scope.resolved(of)
        if source.node not in inside or source in outputs:
            return []
        copies = []
        while of != source:
            copies.append(of.node)
            of = self._scope.operands(of.node)[0]
        return copies

    def _obstacle(self, place: Place) -> str | None:
        """Why nodes that a pattern was found in must not become one."""
        for node in place.nodes:
            if node in self._groups:
                return f"{node} is replaced together with {self._groups[node].root}"
        devices = sorted({self._scope.nodes[node].device for node in place.nodes})
        if len(devices) > 1:
            return f"its nodes are on {devices[0] or 'any device'} and on {devices[1]}"
        return self._input_inside(place) or self._value_taken(place) or self._cycle(place)

    def _input_inside(self, place: Place) -> str | None:
        """An input that the pattern itself computes."""
        for of in place.sources:
            source = self._scope.resolved(of)
            if source.node in place.nodes:
                part = "results" if source in place.outputs else "inner values"
                return f"{of} is an input of the pattern and one of its {part}"
        return None

    def _value_taken(self, place: Place) -> str | None:
        """A value that would be gone, and is taken or may be fetched."""
        scope, inside = self._scope, {*place.nodes, *place.between}
        for node in (name for name in sorted(inside) if scope.nodes[name].op != "Const"):
            for consumer, output in self._consumers.get(node, []):
                if consumer not in inside and output >= 0 and (node, output) not in place.outputs:
                    return f"{node}, an inner value of the pattern, is taken by {consumer} too"
            if any(of.node == node and of not in place.outputs for of in scope.results):
                return f"{node}, an inner value of the pattern, is a result of {scope}"
        for node in () if scope.is_function else place.nodes:
            given = {of.output for of in place.outputs if of.node == node}
            if given != set(range(len(given))):
                return f"not all of the first outputs of {node}, which may be fetched, are results"
        return None

    def _cycle(self, place: Place) -> str | None:
        """The node by which the replacement would wait for itself."""
        goals = {of.node for of in place.sources}
        goals |= {name for node in place.nodes for name in self._scope.awaited(node)}
        seen: set[str] = set()
        pending = list(place.nodes)
        while pending:
            node = pending.pop()
            for consumer, _ in self._consumers.get(node, []):
                if consumer in seen or consumer in place.nodes or consumer in place.between:
                    continue
                if consumer in goals:
                    return f"an input, {consumer}, follows from a result: it would be a cycle"
                if self._scope.is_back_edge(consumer):
                    continue
                group = self._groups.get(consumer)
                added = group.nodes if group else (consumer,)
                seen.update(added)
                pending += added
        return None
