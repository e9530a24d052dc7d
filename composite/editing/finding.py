"""The places of a scope that a Match means, and those that it nearly does."""

from __future__ import annotations

from collections.abc import Sequence

from composite.binding.records import python_value
from composite.editing.match import Match
from composite.editing.matcher import Found, Search
from composite.editing.pattern import Pattern
from composite.editing.places import NearMiss, Place, Places
from composite.editing.scope import Edge, Scope
from composite.ops import call, call_arguments


def find(
    scope: Scope, match: Match, patterns: Sequence[Pattern]
) -> tuple[list[Place], list[NearMiss]]:
    """The places of a match, none with a node of another, and near misses."""
    finder = _Finder(scope, match)
    for name in scope.from_the_results():
        if name not in scope.arguments:
            finder.visit(name, patterns)
    places = finder.places
    near = [NearMiss(scope.name, node, why) for node, why in finder.misses if node not in places]
    return places.found, near


class _Finder:
    def __init__(self, scope: Scope, match: Match) -> None:
        self._scope = scope
        self._match = match
        self._searches: dict[Pattern, Search] = {}
        self.places = Places(scope)
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
            self.places.add(place)
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
                refusal = self._refusal_of(name) or self.places.obstacle(place)
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
