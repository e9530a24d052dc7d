"""Calls of stock ops where nodes of composites would be, made while a graph is traced.

`composite.options(portable=True)` asks for them: for workers of a cluster that do not have the ops,
and for what has rules for TensorFlow's own ops alone. How a node becomes such a call is in
`portable`; this module applies it to one node of a graph that is being built.

These calls do not say which node they stand for, as those of a saved model do: this process has the
op, and would have the node back before it sends the graph to a worker that does not.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding.records import BACKEND, CHECKED, PORTABLE, AttrValue
from composite.ops import call, function_op, functions
from composite.ops.op import stand_in
from composite.saving import checked
from composite.saving.portable import CONTENT, STANDS_FOR, portable

# The functions of a cluster (see `call.cluster`), by the name that `portable` gives the first, and
# by whether they check their numbers. A graph takes no second function of a name that differs from
# the first in its places alone.
_made: dict[tuple[bytes, str, bool], FunctionDefLibrary] = {}
_lock = threading.Lock()


def enable() -> None:
    """Has nodes that are to be portable made here."""
    call.make_portable_by(_in_place_of)


def _in_place_of(
    graph: Any, op_name: str, inputs: Sequence[Any], attrs: Mapping[str, AttrValue], name: str
) -> Any:
    """A call in the place of a node.

    ValueError: a dim or a value that the body asks for is not known, or a kernel is insisted on.
    """
    if BACKEND in attrs and attrs[BACKEND].s == b"tvm":
        raise ValueError(
            f'{op_name} was called with backend="tvm", which insists on a kernel, and as a '
            "portable call (portable=True or check_numerics=True), which has none: choose one"
        )
    own = {one: value for one, value in attrs.items() if one != PORTABLE}
    with tf.Graph().as_default() as scratch:
        node = call.node(scratch, op_name, [stand_in(x) for x in inputs], own, name)
    graph_def = scratch.as_graph_def()
    if op_name == function_op.NAME:
        graph_def.library.function.extend(call.functions_of(graph))
    stock = portable(graph_def)
    for one in functions.nodes(stock):
        one.attr.pop(STANDS_FOR, None)
        one.attr.pop(CONTENT, None)
    made = next(one for one in stock.node if one.name == node.name)
    checks = attrs[PORTABLE].s == CHECKED
    library = _known(made.attr["f"].func.name, stock.library, checks=checks)
    versions = {"producer": tf.version.GRAPH_DEF_VERSION}
    tf.graph_util.import_graph_def(GraphDef(versions=versions, library=library), name="")
    made.attr["f"].func.name = library.function[0].signature.name
    op = call.node(graph, made.op, inputs, dict(made.attr), name)
    for output, like in zip(op.outputs, node.outputs, strict=True):
        output.set_shape(like.shape)
    return op


def _known(name: str, library: Any, *, checks: bool) -> FunctionDefLibrary:
    """A function of a library and what it reaches, which the eager runtime knows by their names.

    DTensor looks for them there. Workers are sent a function when it is added, so that those of
    another cluster need others, whose names nobody has added. With `checks` it checks its numbers.
    """
    key = call.cluster(), name, checks
    with _lock:
        if key not in _made:
            of_name = {f.signature.name: f for f in library.function}
            reached = functions.reachable(name, of_name)
            made = FunctionDefLibrary(function=[of_name[one] for one in reached])
            functions.rename(made.function, {one: f"{one}_{len(_made)}" for one in reached})
            if checks:
                checked.check(made)
            call.add_functions(made)
            _made[key] = made
        return _made[key]
