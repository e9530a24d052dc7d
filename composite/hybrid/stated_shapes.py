"""Shapes that the code of a model states, where TensorFlow infers less: `set_shape`.

They are known to the graphs that were traced, and to those of a loaded model, but not to their
nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from composite.compiler import op_traits
from composite.ops import call

Shapes = Mapping[tuple[str, str], list[tf.TensorShape]]
"""Those of all outputs, by the names and ops of nodes: some nodes become others of their names."""


def stated(graph: Any, prefix: str = "") -> Shapes:
    """Of a FuncGraph and of functions that it calls, whose nodes are named as inlined ones."""
    found: dict[tuple[str, str], list[tf.TensorShape]] = {}
    inner = call.graphs_of(graph)
    for op in graph.get_operations():
        found[prefix + op.name, op.type] = [output.shape for output in op.outputs]
        if op_traits.of(op.type).runs is op_traits.Runs.CALL:
            called = inner.get(op.node_def.attr["f"].func.name)
            found |= {} if called is None else stated(called, f"{prefix}{op.name}/")
    return found


def state(graph_def: Any, shapes: Shapes) -> None:
    """Has TensorFlow take these shapes for those of a GraphDef's nodes, where it infers less."""
    for node in graph_def.node:
        known = shapes.get((node.name, node.op), ())
        if any(shape.rank is not None for shape in known):
            protos = [shape.as_proto() for shape in known]
            node.attr["_output_shapes"].list.shape.extend(protos)
