"""A frozen function whose regions are nodes, as values that follow from values."""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import tensorflow as tf

from composite.editing.scope import Edge, edge
from composite.hybrid.captures import KEPT
from composite.hybrid.transfer import is_shared
from composite.ops import function_op, functions

# Copies of a value as it is.
_COPIES = frozenset({"Identity", "PreventGradient", "Snapshot", "StopGradient"})


@dataclass(frozen=True)
class Graph:
    """The nodes that the outputs need, or wait for.

    Attributes:
        nodes: by name, each after those that it needs; constants, inputs and what is kept are not
            among them.
        kept: nodes that run once, in an order of theirs; nothing depends on them but by outputs.
        constants: those without control inputs, by name.
        inputs: the names of the inputs' nodes, in order.
        outputs: the results, behind all copies.
        library: the functions that nodes may run.
    """

    nodes: dict[str, Any]
    kept: dict[str, Any]
    constants: dict[str, Any]
    inputs: list[str]
    outputs: list[Edge]
    library: list[Any]
    _all: dict[str, Any]

    def operands(self, name: str) -> list[Edge]:
        """The values that a node takes, behind all copies."""
        return [self.resolved(edge(x)) for x in self._all[name].input if not x.startswith("^")]

    def before(self, name: str) -> list[str]:
        """The nodes that a node has to wait for."""
        waits = [x[1:] for x in self._all[name].input if x.startswith("^")]
        found = dict.fromkeys([*(of.node for of in self.operands(name)), *waits])
        return [one for one in found if one in self.nodes]

    def resolved(self, of: Edge) -> Edge:
        """What an output is a copy of, but for copies that wait for something."""
        while (node := self._all[of.node]).op in _COPIES and len(node.input) == 1:
            of = edge(node.input[0])
        return of

    def node(self, name: str) -> Any:
        """A node, an input or a constant."""
        return self._all[name]

    def region(self, name: str) -> str:
        """The function of a region's node; "" for any other node."""
        node = self._all[name]
        called: str = node.attr["f"].func.name if node.op == function_op.NAME else ""
        return called if function_op.is_region(called) else ""


def graph_of(library: Any, others: Any) -> Graph:
    """Of function[0]; `others` are functions that its nodes may run."""
    by_name = {f.signature.name: f for f in [*others.function, *library.function]}
    main = library.function[0]
    source = functions.body_of(main, by_name)
    every = {node.name: node for node in source.graph_def.node}
    inputs = set(source.inputs)
    bare = Graph({}, {}, {}, source.inputs, [], list(source.graph_def.library.function), every)
    ends = [_end(bare, edge(x)) for x in source.outputs]
    outputs, awaited = [of for of, _ in ends], [x for _, waits in ends for x in waits]
    results = {of.node for of in outputs}
    constants = {
        name: node
        for name, node in every.items()
        if node.op == "Const"
        and not (node.input or KEPT in node.attr)
        and (_is_held(node) or name not in results)
    }
    needed: dict[str, list[str]] = {}
    waiting = [*results, *awaited]
    while waiting:
        name = waiting.pop()
        if name in needed or name in constants or name in inputs:
            continue
        waits = [x[1:] for x in every[name].input if x.startswith("^")]
        needed[name] = [*(of.node for of in bare.operands(name)), *waits]
        waiting += needed[name]
    order = TopologicalSorter({n: needed[n] for n in every if n in needed}).static_order()
    ordered = {name: every[name] for name in order if name in needed}
    kept = {name: node for name, node in ordered.items() if KEPT in node.attr}
    nodes = {name: node for name, node in ordered.items() if name not in kept}
    return Graph(nodes, kept, constants, source.inputs, outputs, bare.library, every)


def _is_held(constant: Any) -> bool:
    """Whether a module can hold a constant."""
    return is_shared(tf.as_dtype(constant.attr["dtype"].type))


def _end(graph: Graph, of: Edge) -> tuple[Edge, list[str]]:
    """What an output of the function is a copy of, and the nodes that a call waits for."""
    waits: list[str] = []
    while True:
        of = graph.resolved(of)
        node = graph.node(of.node)
        if node.op not in _COPIES:
            return of, waits
        waits += [x[1:] for x in node.input if x.startswith("^")]
        of = edge(node.input[0])
