"""FunctionDefs as the graphs of tf.function, as deep as they call one another.

TensorFlow's converters for tf.vectorized_map look into the functions that an If or a While names,
and there for FuncGraphs, which functions have that were traced, and none that came as protos.
Written against the private APIs of TF 2.21, which tests/composite/vectorize/test_function_graphs.py
names.

Not for importing an expansion into what is being traced: functions.py does that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.util import tf_stack

from composite.binding.records import attr_value
from composite.compiler import op_traits
from composite.compiler.op_traits import Runs
from composite.ops import call, function_op, functions


class FunctionGraph(NamedTuple):
    """A function as TensorFlow's converters look at one.

    Attributes:
        graph: a FuncGraph with inputs, outputs and control outputs.
        callees: AtomicFunctions, all that it reaches.
        stateful: the types of the stateful ops that it reaches.
    """

    graph: Any
    callees: list[Any]
    stateful: frozenset[str]

    def add_callees(self) -> None:
        """Adds the callees to the current graph: a node of this one may be copied there."""
        for callee in self.callees:
            _add_function(ops.get_default_graph(), callee)


def graph_of(library: FunctionDefLibrary, shapes: Sequence[tf.TensorShape]) -> FunctionGraph:
    """function[0] of a library, and those it reaches, as graphs that know their shapes."""
    by_name = {function.signature.name: function for function in library.function}
    callees: list[Any] = []
    with tf.Graph().as_default():  # not a part of whatever is being traced
        graph = _func_graph(library.function[0], by_name, shapes, callees)
    names = {node.op for function in library.function for node in function.node_def}
    return FunctionGraph(graph, callees, frozenset(filter(_is_stateful, names)))


def _is_stateful(op_name: str) -> bool:
    definition = call.op_def(op_name)
    return definition is None or bool(definition.is_stateful)


def _func_graph(
    function: FunctionDef,
    library: Mapping[str, FunctionDef],
    shapes: Sequence[tf.TensorShape],
    callees: list[Any],
) -> Any:
    """One function as a FuncGraph, those that it calls added to `callees` and to it."""
    graph = _imported(function, library, shapes)
    for op in graph.get_operations():
        for attr, value in _function_attrs(op):
            for called in functions.named_by(value):
                if called.name in library:
                    made = _callee(library[called.name], op, library, callees)
                    _add_function(graph, made)
                    called.name = made.name
            op._set_attr(attr, value)
    return graph


def _callee(
    function: FunctionDef, op: Any, library: Mapping[str, FunctionDef], callees: list[Any]
) -> Any:
    graph = _func_graph(function, library, _argument_shapes(op), callees)
    # A name of its own, since the shapes are; the process forgets it with the graphs that hold it.
    name = f"{function.signature.name}_{ops.uid()}"
    callees.append(atomic_function.from_func_graph(name, graph, {}))
    return callees[-1]


def _function_attrs(op: Any) -> list[tuple[str, Any]]:
    definition = op.op_def
    if definition is None or op.type == function_op.NAME:  # by its function's name it is known
        return []
    names = [attr.name for attr in definition.attr if attr.type in ("func", "list(func)")]
    return [(name, op.node_def.attr[name]) for name in names]


def _argument_shapes(op: Any) -> list[tf.TensorShape]:
    runs = op_traits.of(op.type).runs
    if runs is Runs.LOOP:
        return [y.shape for y in op.outputs]
    return [x.shape for x in op.inputs[1 if runs is Runs.BRANCH else 0 :]]


def _imported(
    function: FunctionDef, library: Mapping[str, FunctionDef], shapes: Sequence[tf.TensorShape]
) -> Any:
    """A function as a FuncGraph that knows its shapes, those that its Ifs and Whiles give as well.

    An expansion states none for those, and TensorFlow's converter of loops needs ranks.
    """
    source = functions.body_of(function, {function.signature.name: function, **library})
    source.graph_def.ClearField("library")
    for node, shape in zip(source.graph_def.node, shapes, strict=False):
        node.attr["shape"].shape.CopyFrom(shape.as_proto())
    for node in source.graph_def.node:
        node.attr.pop("_class", None)  # "beside the forward node", which is not in this function
    graph = _graph(function, source)
    for node in source.graph_def.node:
        runs = op_traits.of(node.op).runs
        if runs in (Runs.LOOP, Runs.BRANCH) and not node.attr["output_shapes"].list.shape:
            op = graph.get_operation_by_name(node.name)
            found = (_carried_shapes if runs is Runs.LOOP else _chosen_shapes)(op, library)
            node.attr["output_shapes"].CopyFrom(attr_value(found))
            graph = _graph(function, source)  # what follows can know more now
    return graph


def _graph(function: FunctionDef, source: functions.Body) -> Any:
    graph = func_graph.FuncGraph(function.signature.name)
    with graph.as_default():
        tf.graph_util.import_graph_def(source.graph_def, name="")
    graph.inputs = [graph.get_tensor_by_name(f"{name}:0") for name in source.inputs]
    graph.outputs = [graph.get_tensor_by_name(name) for name in source.outputs]
    effects = sorted(function.control_ret.values())
    graph.control_outputs = [graph.get_operation_by_name(name) for name in effects]
    stack = tf_stack.extract_stack()
    for op in graph.get_operations():  # pfor shows it when an op cannot be converted
        pywrap_tf_session.TF_SetOpStackTrace(op._c_op, stack)
    return graph


def _chosen_shapes(choice: Any, library: Mapping[str, FunctionDef]) -> list[tf.TensorShape]:
    """The shapes that an If or Case gives, whichever branch it takes."""
    shapes = _argument_shapes(choice)
    given = [
        _output_shapes(library[branch.name], library, shapes)
        for _, value in _function_attrs(choice)
        for branch in functions.named_by(value)
    ]
    return [_common(*ys) for ys in zip(*given, strict=True)]


def _output_shapes(
    function: FunctionDef, library: Mapping[str, FunctionDef], shapes: Sequence[tf.TensorShape]
) -> list[tf.TensorShape]:
    return [y.shape for y in _imported(function, library, shapes).outputs]


def _common(*shapes: tf.TensorShape) -> tf.TensorShape:
    return shapes[0].most_specific_common_supertype(shapes[1:])


def _carried_shapes(loop: Any, library: Mapping[str, FunctionDef]) -> list[tf.TensorShape]:
    """The shapes that the variables of a loop have in every iteration.

    Those that it is entered with, as far as the body gives the same for them.
    """
    body = library[loop.node_def.attr["body"].func.name]
    shapes = [x.shape for x in loop.inputs]
    while True:
        given = _output_shapes(body, library, shapes)
        common = [_common(*both) for both in zip(shapes, given, strict=True)]
        if common == shapes:
            return shapes
        shapes = common


def _add_function(graph: Any, function: Any) -> None:
    if not graph._is_function(function.name):
        graph._add_function(function)
