"""A Python function as a small graph whose inputs are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.node_def_pb2 import NodeDef

from composite.editing.scope import Edge, edge
from composite.ops import function_digest, function_op, functions


@dataclass(frozen=True)
class Traced:
    """The graph of a function.

    Attributes:
        nodes: by name; those of the inputs are there as well.
        inputs: the names of the inputs' nodes, in order.
        outputs: its results, behind all Identity nodes.
        specs: dtypes and shapes of the results.
        awaited: nodes that have to run, whether their results are taken or not.
        library: the functions that its nodes call.
    """

    nodes: Mapping[str, Any]
    inputs: list[str]
    outputs: list[Edge]
    specs: list[tf.TensorSpec]
    awaited: list[str]
    library: Mapping[str, Any]

    def operands(self, name: str) -> list[Edge]:
        """The outputs that a node takes, behind all Identity nodes."""
        return [self.resolved(edge(x)) for x in self.nodes[name].input if not x.startswith("^")]

    def resolved(self, of: Edge) -> Edge:
        """What an output is a copy of, but for copies that wait for something."""
        while self.nodes[of.node].op == "Identity" and len(self.nodes[of.node].input) == 1:
            of = edge(self.nodes[of.node].input[0])
        return of


def trace(function: Callable[..., Any], inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Traced:
    """The graph that a function makes of these inputs: tf.TensorSpecs, lists of them, or values.

    ValueError if it uses a variable or a symbolic tensor that is none of its inputs.
    """
    flat = tf.nest.flatten(list(inputs))
    specs = [x for x in flat if isinstance(x, tf.TensorSpec)]

    def traced(*open_inputs: Any) -> Any:
        given = iter(open_inputs)
        filled = [next(given) if isinstance(x, tf.TensorSpec) else tf.constant(x) for x in flat]
        result = function(*tf.nest.pack_sequence_as(list(inputs), filled), **attrs)
        return [tf.convert_to_tensor(y) for y in tf.nest.flatten(result)]

    concrete = tf.function(traced).get_concrete_function(*specs)
    graph_def = concrete.graph.as_graph_def()
    nodes = {node.name: node for node in graph_def.node}
    for outer, inner in concrete.graph.captures:
        nodes[inner.op.name] = _constant(inner.op.name, outer, function)
    library = {f.signature.name: f for f in graph_def.library.function}
    _rename(nodes, library)
    result = Traced(
        nodes,
        [x.op.name for x in concrete.graph.inputs[: len(specs)]],
        [],
        [tf.TensorSpec(y.shape, y.dtype) for y in concrete.outputs],
        [op.name for op in concrete.graph.control_outputs],
        {f.signature.name: f for f in library.values()},
    )
    for y in concrete.outputs:  # each an Identity, which may wait for what `awaited` has
        result.outputs.append(result.resolved(edge(y.op.inputs[0].name)))
    return result


def _constant(name: str, outer: Any, function: Any) -> Any:
    """A tensor that a function holds, as a node."""
    if not hasattr(outer, "numpy") or functions.is_handle(outer.dtype):
        word = getattr(function, "__name__", function)
        raise ValueError(
            f"{word} uses {outer!r}, which is none of its inputs: make it an input, or a constant"
        )
    node = NodeDef(name=name, op="Const")
    node.attr["dtype"].type = outer.dtype.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(outer))
    return node


def _rename(nodes: Mapping[str, Any], library: Mapping[str, Any]) -> None:
    """Names functions by what they compute: others that a graph has must not be meant."""
    names = {}
    for name in library:
        if function_op.is_canonical(name):
            names[name] = name  # which says so already
            continue
        reached = functions.reachable(name, library)
        digest = function_digest.digest(FunctionDefLibrary(function=[library[n] for n in reached]))
        names[name] = f"{name.rstrip('0123456789').rstrip('_')}_{digest[:16]}"
    functions.rename(library.values(), names)
    functions.rename_in_nodes(nodes.values(), names)
