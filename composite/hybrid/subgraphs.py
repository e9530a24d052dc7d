"""What TensorFlow runs in one call, as bytes: a MetaGraphDef whose signature names its values.

Not for: running it (runtime.py), which needs nothing of the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

from composite.binding.records import serialize
from composite.editing.scope import Edge
from composite.hybrid.graph import Graph
from composite.hybrid.runtime import SIGNATURE
from composite.hybrid.values import Value, Values
from composite.ops import functions

_INSIDE = 1 << 16  # bytes of a constant that is in the graph; others are passed


@dataclass(frozen=True)
class Subgraph:
    """Nodes of one call.

    Attributes:
        inputs: the values that it is passed.
        outputs: those that others take.
        content: the graph.
    """

    inputs: list[Edge]
    outputs: list[Edge]
    content: bytes

    @property
    def digest(self) -> str:
        """By which the process keeps the function that is made of it."""
        return hashlib.sha256(self.content).hexdigest()[:32]


def subgraph(
    graph: Graph, values: Values, inside: Sequence[str], taken: set[Edge], shared: set[str]
) -> Subgraph:
    """The nodes `inside`, whose outputs in `taken` others need.

    Constants in `shared`, which kernels read, and large ones are passed.
    """
    made = MetaGraphDef()
    made.graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
    own = set(inside)
    given: dict[Edge, str] = {}

    def reference(value: Edge) -> str:
        if value.node in own:
            return str(value)
        if value.node in graph.constants and not is_passed(graph, value.node, shared):
            own.add(value.node)
            made.graph_def.node.add().CopyFrom(graph.constants[value.node])
            return str(value)
        if value not in given:
            given[value] = f"composite_input_{len(given)}"
            node = made.graph_def.node.add(name=given[value], op="Placeholder")
            node.attr["dtype"].type = values.of(value).dtype.as_datatype_enum
        return given[value]

    for name in inside:
        node = made.graph_def.node.add()
        node.CopyFrom(graph.node(name))
        waits = [x for x in node.input if x.startswith("^") and x[1:] in inside]
        node.input[:] = [*map(reference, graph.operands(name)), *waits]
        node.attr.pop("_class", None)  # of nodes that may be elsewhere
    outputs = [of for of in sorted(taken) if of.node in inside]
    _name_values(made, values, list(given.items()), outputs)
    _add_functions(made.graph_def, graph)
    return Subgraph(list(given), outputs, serialize(made))


def of_region(graph: Graph, values: Values, name: str) -> Subgraph:
    """The ops of a region's node, for calls that its kernel leaves to TensorFlow."""
    library = {f.signature.name: f for f in graph.library}
    source = functions.body_of(library[graph.region(name)], library)
    made = MetaGraphDef(graph_def=source.graph_def)
    reached = functions.reachable(graph.region(name), library)[1:]
    del made.graph_def.library.function[:]
    made.graph_def.library.function.extend(library[n] for n in reached)
    inputs = graph.operands(name)
    signature = made.signature_def[SIGNATURE]
    for k, (value, placeholder) in enumerate(zip(inputs, source.inputs, strict=True)):
        _note_input(signature.inputs[str(k)], f"{placeholder}:0", values.of(value))
    outputs = [Edge(name, k) for k in range(len(source.outputs))]
    for k, (value, tensor) in enumerate(zip(outputs, source.outputs, strict=True)):
        signature.outputs[str(k)].name = tensor
        signature.outputs[str(k)].dtype = values.of(value).dtype.as_datatype_enum
    return Subgraph(inputs, outputs, serialize(made))


def is_passed(graph: Graph, constant: str, shared: set[str]) -> bool:
    """Whether a constant is an argument of calls, rather than a node of their graphs."""
    value = graph.constants[constant].attr["value"].tensor
    size = np.prod([dim.size for dim in value.tensor_shape.dim], dtype=np.int64)
    dtype = tf.as_dtype(value.dtype)
    if dtype in (tf.string, tf.variant, tf.resource):
        return False
    is_large = int(size) * dtype.size >= _INSIDE
    return is_large or (constant in shared and int(size) * dtype.size >= 1 << 10)


def _name_values(
    made: MetaGraphDef, values: Values, inputs: list[tuple[Edge, str]], outputs: list[Edge]
) -> None:
    signature = made.signature_def[SIGNATURE]
    for k, (value, name) in enumerate(inputs):
        _note_input(signature.inputs[str(k)], f"{name}:0", values.of(value))
    for k, value in enumerate(outputs):
        one = signature.outputs[str(k)]
        one.name = f"{value.node}:{value.output}"
        one.dtype = values.of(value).dtype.as_datatype_enum


def _note_input(made: Any, tensor: str, value: Value) -> None:
    made.name, made.dtype = tensor, value.dtype.as_datatype_enum
    sizes = value.dims and [d if isinstance(d, int) else None for d in value.dims]
    made.tensor_shape.CopyFrom(tf.TensorShape(sizes).as_proto())


def _add_functions(graph_def: GraphDef, graph: Graph) -> None:
    """Adds the functions that nodes run, and those that these run."""
    library = {f.signature.name: f for f in graph.library}
    found: dict[str, None] = {}
    for node in graph_def.node:
        for name in functions.called_by(node, library):
            found |= dict.fromkeys(functions.reachable(name, library))
    graph_def.library.function.extend(library[name] for name in found)
