"""Puts the graph of a replacement in the place of nodes.

The nodes of a place that give its results keep their names, so that whoever fetches them, or waits
for them, finds the replacement's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensorflow.core.framework.node_def_pb2 import NodeDef

from composite.editing.places import Place
from composite.editing.scope import Edge, Scope, edge
from composite.editing.traced import Traced

_COLOCATED = b"loc:@"


class Splicing:
    """Changes of a scope: all are collected, then done at once."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._added: dict[str, Any] = {}
        self._moved: dict[Edge, Edge] = {}
        self._instead: dict[str, list[str]] = {}  # of nodes that go: which are awaited then
        self._replaced: set[str] = set()
        self._spare: list[str] = []  # go if nobody takes them

    def put(self, place: Place, traced: Traced, inputs: Sequence[Edge]) -> None:
        """Notes that a graph, given these inputs, is to stand in a place."""
        names = _names(place.root, traced, {*self._scope.nodes, *self._added})
        kept = list(dict.fromkeys(of.node for of in place.outputs)) or [place.root]
        numbers = [of.output for of in place.outputs]
        in_order = numbers == sorted(numbers)
        is_one = len(kept) == 1 and not traced.awaited and in_order
        first = traced.outputs[0].node if traced.outputs else None
        given = dict(zip(traced.inputs, inputs, strict=True))
        if is_one and first in names and traced.outputs == _all_of(first, len(traced.outputs)):
            names[first] = place.root  # one node gives all: it takes the name
        made = _copies(self._scope, place, traced, names, given)
        results = [given.get(of.node) or Edge(names[of.node], of.output) for of in traced.outputs]
        for name in kept:
            theirs = [k for k, of in enumerate(place.outputs) if of.node == name]
            theirs.sort(key=lambda k: place.outputs[k].output)  # fetches name them by number
            if name not in made:
                of_them = [place.outputs[k] for k in theirs]
                made[name] = self._result(name, of_them, [results[k] for k in theirs])
                made[name].input.extend(f"^{names[one]}" for one in traced.awaited)
            self._moved |= {place.outputs[k]: Edge(name, i) for i, k in enumerate(theirs)}
        awaited = _awaited(self._scope, place)
        for node in made.values():
            node.device = node.device or self._scope.nodes[place.root].device
            if node.op != "Const":
                node.input.extend(f"^{name}" for name in awaited)
        self._added |= made
        self._replaced.update(place.nodes)
        self._instead |= {node: kept for node in place.nodes if node not in kept}
        self._spare += place.between

    def _result(self, name: str, outputs: Sequence[Edge], results: Sequence[Edge]) -> Any:
        """A node of the name that results had, which hands on what stands for them."""
        if not results:
            return NodeDef(name=name, op="NoOp")
        op = "Identity" if len(results) == 1 else "IdentityN"
        node = NodeDef(name=name, op=op, input=[str(of) for of in results])
        types = [self._scope.tensor(of).dtype.as_datatype_enum for of in outputs]
        if op == "Identity":
            node.attr["T"].type = types[0]
        else:
            node.attr["T"].list.type.extend(types)
        return node

    def apply(self, *, keep: bool) -> None:
        """Changes the scope. `keep`: other nodes stay, though nobody takes them: some may fetch."""
        scope = self._scope
        if not keep:
            for name in self._replaced:
                del scope.nodes[name]
        scope.nodes.update(self._added)
        for node in scope.nodes.values():
            self._rewire(node)
        scope.results[:] = [self._moved.get(of, of) for of in scope.results]
        for key, name in scope.awaited_results.items():
            scope.awaited_results[key] = self._instead.get(name, [name])[0]
        spare = [] if keep else list(dict.fromkeys(self._spare))
        while spare:
            taken = {*scope.consumers(), *(of.node for of in scope.results)}
            if not (left := [name for name in spare if name not in taken]):
                return
            for name in left:
                del scope.nodes[name]
            spare = [name for name in spare if name in taken]

    def _rewire(self, node: Any) -> None:
        taken = [edge(x) for x in node.input if not x.startswith("^")]
        awaited: dict[str, None] = {}
        for name in (x[1:] for x in node.input if x.startswith("^")):
            awaited |= dict.fromkeys(self._instead.get(name, [name]))
        inputs = [str(self._moved.get(of, of)) for of in taken]
        node.input[:] = inputs + [f"^{name}" for name in awaited]
        if "_class" in node.attr:
            names = node.attr["_class"].list.s
            names[:] = [self._colocated(name) for name in names]

    def _colocated(self, name: bytes) -> bytes:
        instead = self._instead.get(name.removeprefix(_COLOCATED).decode())
        return _COLOCATED + instead[0].encode() if instead else name


def _all_of(node: str | None, count: int) -> list[Edge]:
    return [Edge(node or "", k) for k in range(count)]


def _names(root: str, traced: Traced, taken: set[str]) -> dict[str, str]:
    """Names for the nodes that a graph's results need, by those that they have."""
    needed: list[str] = []
    pending = [of.node for of in traced.outputs] + list(traced.awaited)
    while pending:
        name = pending.pop()
        if name not in needed and name not in traced.inputs:
            needed.append(name)
            awaited = [x[1:] for x in traced.nodes[name].input if x.startswith("^")]
            pending += [of.node for of in traced.operands(name)] + awaited
    names: dict[str, str] = {}
    for name in traced.nodes:  # in their order there
        if name in needed:
            names[name] = _unique(f"{root}/{name}", {*taken, *names.values()})
    return names


def _unique(name: str, taken: set[str]) -> str:
    number, found = 0, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def _copies(
    scope: Scope,
    place: Place,
    traced: Traced,
    names: Mapping[str, str],
    given: Mapping[str, Edge],
) -> dict[str, Any]:
    """The nodes of a graph under other names; what it is given takes its inputs' place."""
    made: dict[str, Any] = {}
    anchor = _anchor(scope, place, names) if scope.has_frames and place.sources else None
    for name, node in ((n, traced.nodes[n]) for n in names):
        copy = NodeDef()
        copy.CopyFrom(node)
        copy.name = names[name]
        taken = (
            given.get(of.node) or Edge(names[of.node], of.output) for of in traced.operands(name)
        )
        awaited = [names[x[1:]] for x in node.input if x.startswith("^")]
        if anchor is not None and not traced.operands(name):
            awaited.append(anchor.name)
        copy.input[:] = [str(of) for of in taken] + [f"^{one}" for one in awaited]
        copy.attr.pop("_class", None)
        made[copy.name] = copy
    return made if anchor is None else {anchor.name: anchor, **made}


def _anchor(scope: Scope, place: Place, names: Mapping[str, str]) -> Any:
    """A node that runs whenever an input is there: what has no operands runs after it.

    In a loop or branch that is written as nodes, a constant must not run before, or beside, it.
    """
    first = place.sources[0]
    anchor = NodeDef(op="Identity", input=[str(first)])
    anchor.name = _unique(f"{place.root}/input", {*scope.nodes, *names.values()})
    anchor.attr["T"].type = scope.tensor(first).dtype.as_datatype_enum
    return anchor


def _awaited(scope: Scope, place: Place) -> list[str]:
    """The nodes outside that a place's own wait for."""
    inside = {*place.nodes, *place.between}
    nodes: Iterable[str] = (n for n in inside if scope.nodes[n].op != "Const")
    return sorted({name for node in nodes for name in scope.awaited(node)} - inside)
