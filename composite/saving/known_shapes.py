"""Shapes that are known where an op is called, as constants of the function that stands for it.

An expansion asks its tensors for their shapes, since it serves calls of many. `tf.shape` gives a
constant where it can: it is no user of the tensor, which TensorFlow fuses with what comes before.
Not for: functions of branches and loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from composite.ops import functions


def fold(library: Any, shapes: Sequence[tf.TensorShape]) -> None:
    """Makes constants of the Shape nodes of function[0], in place, for inputs of these shapes."""
    function = library.function[0]
    if not any(node.op == "Shape" for node in function.node_def):
        return
    source = functions.body(library)
    for node, shape in zip(source.graph_def.node, shapes, strict=False):  # inputs come first
        node.attr["shape"].shape.CopyFrom(shape.as_proto())
    graph = functions.imported(source.graph_def)
    for node in function.node_def:
        if node.op != "Shape":
            continue
        shape = graph.get_operation_by_name(node.name).inputs[0].shape
        if shape.is_fully_defined():
            _set_constant(node, shape)


def _set_constant(node: Any, shape: tf.TensorShape) -> None:
    dtype = node.attr["out_type"].type
    node.op = "Const"
    node.input[:] = [x for x in node.input if x.startswith("^")]
    node.attr.clear()
    node.attr["dtype"].type = dtype
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(shape.as_list(), dtype))
