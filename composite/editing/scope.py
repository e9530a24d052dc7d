"""The nodes of a graph, or of a function, in one form: read, rewired and written back.

Not for: what is looked for in it, and what it becomes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.compiler import op_traits
from composite.ops import functions


class Edge(NamedTuple):
    """An output of a node."""

    node: str
    output: int

    def __str__(self) -> str:
        return f"{self.node}:{self.output}" if self.output else self.node


class Handle(NamedTuple):
    """What is known of the variable that a resource stands for."""

    dtype: int
    shape: Any  # TensorShapeProto


def edge(reference: str) -> Edge:
    """The output that a GraphDef names "node" or "node:k"."""
    node, _, output = reference.partition(":")
    return Edge(node, int(output or 0))


class Scope:
    """A graph, or a function of its library.

    Attributes:
        name: the function's, or "" for the graph itself.
        nodes: by name, in order; inputs are named as in a GraphDef.
        arguments: of the nodes, those that stand for a function's arguments, in their order.
        results: what a function returns.
        awaited_results: the nodes that a call of it waits for, by what they are called there.
        library: the functions that it may call, by name.
        handles: what is known of the variables behind arguments, by argument.
    """

    def __init__(self, source: Any, library: Mapping[str, Any]) -> None:
        """Of a GraphDef or a FunctionDef, which `write` changes."""
        self._source = source
        self.library = library
        self.handles: dict[str, Handle] = {}
        if isinstance(source, GraphDef):
            self.name = ""
            graph_def, results = source, []
            self.arguments: tuple[str, ...] = ()
            self.awaited_results: dict[str, str] = {}
        else:
            self.name = source.signature.name
            body = functions.body_of(source, {n: library[n] for n in self._reached(source)})
            graph_def, results = body.graph_def, body.outputs
            self.arguments = tuple(body.inputs)
            self.awaited_results = dict(source.control_ret)
        self.nodes: dict[str, Any] = {node.name: node for node in graph_def.node}
        self.results = [edge(name) for name in results]
        self._graph_def = graph_def

    def _reached(self, function: Any) -> list[str]:
        return functions.reachable(function.signature.name, self.library)

    @property
    def is_function(self) -> bool:
        """Whether it is a function, not the graph."""
        return bool(self.name)

    def __str__(self) -> str:
        return f"function {self.name}" if self.name else "the graph"

    @functools.cached_property
    def has_frames(self) -> bool:
        """Whether loops or branches are nodes of it, as TF1 writes them."""
        ops = {node.op for node in self.nodes.values()}
        return bool(ops & {"Enter", "RefEnter", "Switch", "RefSwitch"})

    @functools.cached_property
    def graph(self) -> tf.Graph:
        """These nodes as they were read, with shapes and constants as TensorFlow infers them."""
        return functions.imported(self.described())

    def sized(self, size: Callable[[int], int]) -> tf.Graph:
        """`graph` where dims of inputs that are not known have sizes, told by their axis.

        ValueError: there can be no inputs of such sizes.
        """
        described = self.described()
        for node in described.node:
            if node.op == "Placeholder":
                for axis, dim in enumerate(node.attr["shape"].shape.dim):
                    dim.size = size(axis) if dim.size < 0 else dim.size
        return functions.imported(described)

    def described(self) -> GraphDef:
        """The nodes with what is known of the arguments."""
        copy = GraphDef()
        copy.CopyFrom(self._graph_def)
        for index, node in enumerate(copy.node[: len(self.arguments)]):
            self._describe_argument(node, index)
        return copy

    def _describe_argument(self, node: Any, index: int) -> None:
        """Gives the stand-in for an argument what the function notes of it."""
        noted = self._source.arg_attr[index].attr["_output_shapes"].list.shape
        handle = self.handles.get(node.name)
        if handle is not None:  # the shapes of what is read follow from it
            node.op = "VarHandleOp"
            node.attr["dtype"].type = handle.dtype
            node.attr["shape"].shape.CopyFrom(handle.shape)
        elif noted:
            node.attr["shape"].shape.CopyFrom(noted[0])

    def tensor(self, of: Edge) -> Any:
        """A tensor of `graph`."""
        return self.graph.get_operation_by_name(of.node).outputs[of.output]

    def operands(self, name: str) -> list[Edge]:
        """The outputs that a node takes."""
        return [edge(x) for x in self.nodes[name].input if not x.startswith("^")]

    def awaited(self, name: str) -> list[str]:
        """The nodes that a node waits for."""
        return [x[1:] for x in self.nodes[name].input if x.startswith("^")]

    def resolved(self, of: Edge) -> Edge:
        """What an output is a copy of: Identity nodes hand on what they take."""
        while self.nodes[of.node].op == "Identity":
            of = edge(self.nodes[of.node].input[0])
        return of

    def consumers(self) -> dict[str, list[tuple[str, int]]]:
        """Of each node that is taken or awaited: by which nodes, and which output; -1 awaits."""
        found: dict[str, list[tuple[str, int]]] = {}
        for name in self.nodes:
            for of in self.operands(name):
                found.setdefault(of.node, []).append((name, of.output))
            for awaited in self.awaited(name):
                found.setdefault(awaited, []).append((name, -1))
        return found

    def from_the_results(self) -> list[str]:
        """The names of all nodes, each behind those that take what it gives."""
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for name in self.nodes:
            taken = [of.node for of in self.operands(name)] + self.awaited(name)
            sorter.add(name, *(n for n in taken if not self.is_back_edge(n)))
        return list(sorter.static_order())[::-1]

    def is_back_edge(self, name: str) -> bool:
        """Whether what a node gives is for the next turn of a loop."""
        return self.nodes[name].op in {"NextIteration", "RefNextIteration"}

    def write(self, made: Iterable[Any]) -> None:
        """Writes the nodes to the proto that they were read from; `made` are new functions."""
        kept = [node for name, node in self.nodes.items() if name not in self.arguments]
        if not self.is_function:
            copies = [type(node).FromString(node.SerializeToString()) for node in kept]
            del self._source.node[:]
            self._source.node.extend(copies)
            return
        signatures = {f.signature.name: f.signature for f in (*self.library.values(), *made)}
        names: dict[str, str] = {f"{one}:0": one for one in self.arguments}
        for node in kept:
            outputs = functions.output_names(node, signatures)
            names |= {mine: theirs for theirs, mine in outputs.items()}

        def named(of: Edge) -> str:
            return names[f"{of.node}:{of.output}"]

        del self._source.node_def[:]
        for node in kept:
            added = self._source.node_def.add()
            added.CopyFrom(node)
            added.input[:] = [x if x.startswith("^") else named(edge(x)) for x in node.input]
        for arg, of in zip(self._source.signature.output_arg, self.results, strict=True):
            self._source.ret[arg.name] = named(of)
        self._source.control_ret.update(self.awaited_results)


def handles_of_calls(scope: Scope) -> dict[str, dict[int, Handle]]:
    """What is known of the variables that a scope hands to functions: by name and argument."""
    found: dict[str, dict[int, Handle]] = {}
    for name, node in scope.nodes.items():
        called = [node.op] if node.op in scope.library else []
        called += [f.name for value in node.attr.values() for f in functions.named_by(value)]
        operands = scope.operands(name) if called else []
        if op_traits.of(node.op).runs is op_traits.Runs.BRANCH:
            operands = operands[1:]
        for index, of in enumerate(operands):
            handle = _handle(scope, scope.resolved(of).node)
            if handle is not None:
                for function in called:
                    found.setdefault(function, {})[index] = handle
    return found


def _handle(scope: Scope, name: str) -> Handle | None:
    node = scope.nodes[name]
    if node.op == "VarHandleOp":
        return Handle(node.attr["dtype"].type, node.attr["shape"].shape)
    return scope.handles.get(name)
