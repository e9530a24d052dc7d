"""Parts of a graph and its functions, found and replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import tensorflow as tf

from composite.editing.finding import find
from composite.editing.match import Match
from composite.editing.pattern import patterns
from composite.editing.places import NearMiss, Place
from composite.editing.replacement import Replacement
from composite.editing.report import Replaced, ReplacementReport
from composite.editing.scope import Edge, Handle, Scope, handles_of_calls
from composite.editing.splicing import Splicing
from composite.editing.traced import Traced
from composite.ops import call, function_op, functions

_OPEN = (tf.resource, tf.variant, tf.string)
# Ops that run functions without state, and those that run any.
_WITH_STATE = {
    "PartitionedCall": "StatefulPartitionedCall",
    "StatelessCase": "Case",
    "StatelessIf": "If",
    "StatelessWhile": "While",
}


Report_co = TypeVar("Report_co", covariant=True)
Handles = Mapping[str, Mapping[int, Handle]]


class Outcome(NamedTuple, Generic[Report_co]):
    """What became of a graph.

    Attributes:
        report: what was replaced.
        handles: what is known of the variables that functions are given, by function and argument.
    """

    report: Report_co
    handles: Handles


class Editor(Protocol[Report_co]):
    """What changes a graph: a replacement, or several."""

    def __call__(
        self, graph_def: Any, *, name: str, keep: bool = False, handles: Handles | None = None
    ) -> Outcome[Report_co]:
        """Changes a GraphDef and the functions of its library.

        Args:
            graph_def: is changed.
            name: what the report calls the graph.
            keep: whether other nodes of the graph itself stay, though nobody takes them.
            handles: the variables that functions are given by others than nodes of the graph, by
                the function and the argument.

        Raises:
            ValueError: what is to be put somewhere cannot stand there. The graph may be changed by
                then.
        """


class Stand(Protocol):
    """What stands in the places that were found."""

    def at(self, scope: Scope, place: Place) -> tuple[Traced, list[Edge]]:
        """Its graph for a place, and what that takes. ValueError: it cannot stand there."""


Find = Callable[[Scope], tuple[list[Place], list[NearMiss]]]


def edit(match: Match, function: Callable[..., Any]) -> Editor[ReplacementReport]:
    """What replaces all that a Match means by a function."""

    def edited(
        graph_def: Any, *, name: str, keep: bool = False, handles: Handles | None = None
    ) -> Outcome[ReplacementReport]:
        graphs = []
        if match.pattern is not None:
            graphs = patterns(match.pattern, match.inputs, _dtypes(graph_def))
        stand = Replacement(function)
        changed = changed_by(
            graph_def, lambda scope: find(scope, match, graphs), stand, keep=keep, handles=handles
        )
        report = ReplacementReport(
            name, str(match), stand.name, tuple(changed.replaced), tuple(changed.near)
        )
        return Outcome(report, changed.handles())

    return edited


def changed_by(
    graph_def: Any, find: Find, stand: Stand, *, keep: bool, handles: Handles | None
) -> Changed:
    """Replaces what is found in a GraphDef and its functions; see Editor."""
    changed = Changed(graph_def, find, stand)
    changed.scopes(handles or {})
    changed.replace(keep=keep)
    return changed


class Changed:
    """A graph in which parts are replaced.

    Attributes:
        replaced: what was.
        near: what nearly.
    """

    def __init__(self, graph_def: Any, find: Find, stand: Stand) -> None:
        self._graph_def = graph_def
        self._find = find
        self._stand = stand
        self._scopes: list[Scope] = []
        self.replaced: list[Replaced] = []
        self.near: list[NearMiss] = []

    def scopes(self, handles: Mapping[str, Mapping[int, Handle]]) -> None:
        """Reads the graph and its functions, each behind its callers."""
        library = {f.signature.name: f for f in self._graph_def.library.function}
        by_name: dict[str, Scope] = {}
        for name in _callers_first(library):
            if not function_op.is_canonical(name):  # else it is named by what it computes
                by_name[name] = Scope(library[name], library)
        self._scopes = [Scope(self._graph_def, library), *by_name.values()]
        _tell(by_name, handles)
        for scope in self._scopes:
            _tell(by_name, handles_of_calls(scope))

    def replace(self, *, keep: bool) -> None:
        """Finds all places, traces what takes them, and writes the scopes that change."""
        added: dict[str, Any] = {}
        splicings = [self._splicing(scope, added) for scope in self._scopes]
        changed = [(scope, s) for scope, s in zip(self._scopes, splicings, strict=True) if s]
        for scope, splicing in changed:
            splicing.apply(keep=keep and not scope.is_function)
            scope.write(added.values())
        known = {f.signature.name for f in self._graph_def.library.function}
        new = [function for name, function in added.items() if name not in known]
        if new:
            self._graph_def.library.function.extend(new)
        if changed:
            _declare_state(self._graph_def)

    def handles(self) -> dict[str, dict[int, Handle]]:
        """What is known of the variables that functions are given."""
        return {
            scope.name: {scope.arguments.index(name): h for name, h in scope.handles.items()}
            for scope in self._scopes
        }

    def _splicing(self, scope: Scope, added: dict[str, Any]) -> Splicing | None:
        places, near = self._find(scope)
        self.near += near
        if not places:
            return None
        splicing = Splicing(scope)
        for place in places:
            traced, inputs = self._stand.at(scope, place)
            splicing.put(place, traced, inputs)
            added.update(traced.library)
            self.replaced.append(_replaced(scope, place))
        return splicing


def _tell(scopes: Mapping[str, Scope], handles: Mapping[str, Mapping[int, Handle]]) -> None:
    """Tells functions what is known of the variables that they are given."""
    for name, found in handles.items():
        if (called := scopes.get(name)) is not None:
            for index, handle in found.items():
                called.handles.setdefault(called.arguments[index], handle)


def _replaced(scope: Scope, place: Place) -> Replaced:
    ops = tuple(scope.nodes[name].op for name in place.nodes)
    return Replaced(scope.name, place.nodes, ops)


def _callers_first(library: Mapping[str, Any]) -> list[str]:
    """The functions of a library, each behind those that call it."""
    done: dict[str, None] = {}

    def visit(name: str) -> None:
        for called in functions.reachable(name, library)[1:]:
            if called not in done:
                visit(called)
        done[name] = None

    for name in library:
        if name not in done:
            visit(name)
    return list(done)[::-1]


def _dtypes(graph_def: Any) -> list[int]:
    """The dtypes of tensors that a graph's nodes compute with, in the order of TensorFlow."""
    nodes = functions.nodes(graph_def)
    found = {value.type for node in nodes for value in node.attr.values() if value.type}
    return sorted(t for t in found if tf.as_dtype(t) not in _OPEN)


def _declare_state(graph_def: Any) -> None:
    """Has functions that got an op with state say so, and their callers run them as such."""
    library = {f.signature.name: f for f in graph_def.library.function}
    stateful = {name for name, f in library.items() if f.signature.is_stateful}
    growing = True
    while growing:
        growing = False
        for name, function in library.items():
            if name not in stateful and any(_keeps(node, stateful) for node in function.node_def):
                function.signature.is_stateful = True
                stateful.add(name)
                growing = True
    for nodes in (graph_def.node, *(f.node_def for f in library.values())):
        for node in nodes:
            if _keeps(node, stateful):
                node.op = _WITH_STATE.get(node.op, node.op)


def _keeps(node: Any, stateful: set[str]) -> bool:
    """Whether a node keeps state, or runs a function that does."""
    named = {f.name for value in node.attr.values() for f in functions.named_by(value)}
    if node.op in _WITH_STATE or node.op in _WITH_STATE.values():
        return bool(named & stateful)
    definition = call.op_def(node.op)
    return node.op in stateful or (definition is not None and definition.is_stateful)
