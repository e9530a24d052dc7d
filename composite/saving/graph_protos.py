"""Graphs as protos, of any origin: with stock ops, or with the bodies that ops have today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.op_def_pb2 import OpDef
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

from composite.binding.log import logger
from composite.ops import call, functions
from composite.saving import portable, updating


def to_portable(graph: Any) -> Any:
    """A graph in which each composite is a call of a function of TensorFlow's own ops.

    What `composite.save(..., ops="portable")` does to a SavedModel, for graphs of other origin: of
    a frozen model, a checkpoint's `.meta` file, or a dataset.

    Args:
        graph: a GraphDef or a MetaGraphDef. It is not changed.

    Returns:
        A proto of the same type. Nodes keep their names, so that inputs and outputs are found where
        they were. Any TensorFlow 2.21 imports it; one that has the ops runs them as nodes.

    Raises:
        TypeError: if it is something else.
        ValueError: if a node cannot be expanded: this process does not know its op, or the version
            that it means, or a dim or a value that its body asks for is missing. The message names
            the node.
    """
    return _converted(graph, portable.portable)


def updated(graph: Any) -> Any:
    """A GraphDef or a MetaGraphDef with today's versions of its composites; see `updating`."""

    def update(graph_def: Any) -> Any:
        newer, updates = updating.updated(graph_def)
        for one in updates:
            logger.info("node %s: %s %s is %s now", one.node, one.op, one.older, one.newer)
        return newer

    return _converted(graph, update)


def _converted(graph: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(graph, GraphDef):
        return convert(graph)
    if not isinstance(graph, MetaGraphDef):
        raise TypeError(f"a GraphDef or a MetaGraphDef is needed, not {type(graph).__name__}")
    result = MetaGraphDef()
    result.CopyFrom(graph)
    result.graph_def.CopyFrom(convert(graph.graph_def))
    name_ops(result)
    return result


def name_ops(meta_graph: Any) -> None:
    """Has the list of the ops that a loader needs follow the graph."""
    graph_def = meta_graph.graph_def
    own = {function.signature.name for function in graph_def.library.function}
    known = {op.name: op for op in meta_graph.meta_info_def.stripped_op_list.op}
    names = sorted({node.op for node in functions.nodes(graph_def)} - own)
    ops = [known[name] if name in known else _stripped(call.op_def(name)) for name in names]
    del meta_graph.meta_info_def.stripped_op_list.op[:]
    meta_graph.meta_info_def.stripped_op_list.op.extend(ops)


def _stripped(definition: Any) -> Any:
    """An OpDef without its documentation."""
    result = OpDef()
    result.CopyFrom(definition)
    for described in (result, *result.input_arg, *result.output_arg, *result.attr):
        described.ClearField("description")
    result.ClearField("summary")
    return result
