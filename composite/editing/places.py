"""Places of a scope where one node can take the place of several, and what stands in the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from composite.editing.scope import Edge, Scope


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


class Places:
    """The places of a scope so far, none with a node of another.

    Attributes:
        found: in the order in which they were added.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._consumers = scope.consumers()
        self._groups: dict[str, Place] = {}
        self.found: list[Place] = []

    def add(self, place: Place) -> None:
        """Notes a place."""
        self.found.append(place)
        self._groups |= dict.fromkeys(place.nodes, place)

    def __contains__(self, node: str) -> bool:
        return node in self._groups

    def takers(self, node: str) -> list[str]:
        """The nodes that take, or wait for, a node."""
        return [name for name, _ in self._consumers.get(node, [])]

    def obstacle(self, place: Place) -> str | None:
        """Why nodes that were found must not become one."""
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
