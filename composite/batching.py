"""tf.vectorized_map over composite ops, and with it the jacobians of tf.GradientTape.

The one file that uses private Python APIs of TensorFlow for it, written against TF 2.21:
`parallel_for.pfor` with its registry of converters, and the graphs and functions of `tf.function`
that its converters of If, While and calls look into. tests/composite/test_batching.py names the
version.

A node that is mapped over becomes its expansion for one element, of which each op is converted by
TensorFlow's own rule. Nothing here knows what an op computes.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.ops.parallel_for import pfor
from tensorflow.python.util import tf_stack

from composite import call, elementwise, functions, native
from composite.gradient import PROGRAM
from composite.log import logger
from composite.op import constant
from composite.records import NodeDef, TensorProto, attr_value

# An expansion as graphs holds some 0.1 MB.
_LIMIT = 256

# Stateful ops that need run only once for all elements when none of their inputs is mapped over;
# TensorFlow's own converters have them do so. Any other may count how often it runs.
_ONCE = frozenset({"Assert", "PrintV2", "ReadVariableOp", "VariableShape"})
_CALLS = frozenset({"If", "While", "Case", "StatefulPartitionedCall"})
_LOOPS = frozenset({"While", "StatelessWhile"})
_CHOICES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})

_lock = threading.Lock()
_registered: set[str] = set()


def register(op_name: str) -> None:
    """Gives TensorFlow a converter for this op; once for each name."""
    with _lock:
        if op_name in _registered:
            return
        _registered.add(op_name)
    pfor.RegisterPFor(op_name)(_convert)


def _convert(node: Any) -> Any:
    """The converter: `node` is TensorFlow's record of an op and of its converted inputs.

    Returns a converted tensor for each output; the operation for an op without outputs.
    """
    request = _request(node)
    asked = request.SerializeToString(deterministic=True)
    mapped = tuple(x.is_stacked for x in node.inputs)
    try:
        expansion = _expansion(asked)
    except tf.errors.FailedPreconditionError as error:
        if not native.is_not_yet(error):
            raise
        raise _not_yet(node, error) from None
    if not any(mapped) and expansion.once:
        return _same_node(node, is_stacked=False)
    count = tf.get_static_value(node.pfor.loop_len_vector)
    if any(mapped) and _takes_a_batch(asked, mapped, None if count is None else int(count[0])):
        return _same_node(node, is_stacked=True)
    return convert_function(node, expansion)


def _same_node(node: Any, *, is_stacked: bool) -> Any:
    """The op itself, on the converted inputs."""
    dtypes = [y.dtype for y in node.outputs]
    inputs = [x.t for x in node.inputs]
    made = pfor._create_op(node.op_type, inputs, dtypes, node.op.node_def.attr)
    return [pfor.wrap(y, is_stacked) for y in made.outputs] or made


def _request(node: Any) -> NodeDef:
    """What the runtime is asked to expand: the call of one element."""
    request = NodeDef(op=node.op_type)
    for name, value in node.op.node_def.attr.items():
        if name == PROGRAM or not name.startswith("_"):
            request.attr[name].CopyFrom(value)
    shapes = [_element_shape(x, to) for x, to in zip(node.op.inputs, node.inputs, strict=True)]
    constants = [TensorProto() if to.is_stacked else constant(to.t) for to in node.inputs]
    request.attr["_in_shapes"].CopyFrom(attr_value(shapes))
    request.attr["_constants"].CopyFrom(attr_value(constants))
    return request


def _element_shape(tensor: Any, converted: Any) -> tf.TensorShape:
    """The shape in one element: what the loop's body knows, and what its conversion knows."""
    shape = converted.t.shape
    if tensor.dtype == tf.variant or converted.is_sparse_stacked or shape.rank is None:
        return tensor.shape
    return tensor.shape.merge_with(shape[1:] if converted.is_stacked else shape)


def _not_yet(node: Any, error: tf.errors.FailedPreconditionError) -> Exception:
    """For TensorFlow to run the op in a loop, if the caller lets it, or to raise as ValueError."""
    message = (
        f"{node.op_type} cannot be vectorized with these shapes: {error.message}; give its input a "
        "static shape there (tf.ensure_shape, or an input_signature)"
    )
    if node.pfor.fallback_to_while_loop:
        logger.warning("%s; until then it runs once for each element", message)
    return pfor.ConversionNotImplementedError(message)


class Graph(NamedTuple):
    """A function as TensorFlow's converters look at one."""

    graph: Any  # FuncGraph
    callees: list[Any]  # AtomicFunctions: all that it reaches
    once: bool  # whether it is enough to run it once where nothing that it reads is mapped over


@functools.lru_cache(maxsize=_LIMIT)
def _expansion(request: bytes) -> Graph:
    asked = NodeDef.FromString(request)
    return graph_of(_library(asked), _shapes(asked))


@functools.lru_cache(maxsize=4 * _LIMIT)
def _takes_a_batch(request: bytes, mapped: tuple[bool, ...], count: int | None) -> bool:
    one, batch = NodeDef.FromString(request), NodeDef.FromString(request)
    shapes = _shapes(one)
    inputs = zip(shapes, mapped, strict=True)
    batched = [tf.TensorShape([count]).concatenate(s) if each else s for s, each in inputs]
    batch.attr["_in_shapes"].CopyFrom(attr_value(batched))
    try:
        return elementwise.takes_a_batch(_library(one), _library(batch), shapes, mapped)
    except tf.errors.OpError:  # the body refuses a batch, or does not know yet
        return False


def _library(asked: NodeDef) -> FunctionDefLibrary:
    return FunctionDefLibrary.FromString(native.call("composite_expand", asked))


def _shapes(asked: NodeDef) -> list[tf.TensorShape]:
    return [tf.TensorShape(shape) for shape in asked.attr["_in_shapes"].list.shape]


def convert_function(node: Any, function: Graph) -> Any:
    """Converts a function in the place of the node that calls it, by TensorFlow's rules for its ops.

    Its inputs are those of the node. What it does beside its outputs, an assertion, comes first.
    """
    graph = function.graph
    for callee in function.callees:  # an If whose inputs are not mapped over is copied as it is
        _add_function(ops.get_default_graph(), callee)
    converter = pfor.PFor(
        loop_var=node.pfor.loop_var,
        loop_len=node.pfor.loop_len_vector[0],
        pfor_ops=graph.get_operations(),
        fallback_to_while_loop=node.pfor.fallback_to_while_loop,
        all_indices=node.pfor.all_indices,
        all_indices_partitioned=node.pfor.all_indices_partitioned,
        pfor_config=node.pfor.pfor_config,
        warn=node.pfor._warn,
    )
    for argument, converted in zip(graph.inputs, node.inputs, strict=True):
        converter._add_conversion(argument, converted)
    effects = [_converted_effect(converter, op) for op in graph.control_outputs]
    outputs = [converter._convert_helper(y) for y in graph.outputs]
    if not effects:
        return outputs or tf.no_op()
    with tf.control_dependencies(effects):
        return [y._replace(t=tf.identity(y.t)) for y in outputs] or tf.no_op()


def _converted_effect(converter: Any, op: Any) -> Any:
    if not op.outputs:
        return converter._convert_helper(op)
    return [converter._convert_helper(y) for y in op.outputs][0].t.op


def graph_of(library: FunctionDefLibrary, shapes: Sequence[tf.TensorShape]) -> Graph:
    """function[0] of a library, and those it reaches, as graphs that know their shapes."""
    by_name = {function.signature.name: function for function in library.function}
    callees: list[Any] = []
    with tf.Graph().as_default():  # not a part of whatever is being traced
        graph = _func_graph(library.function[0], by_name, shapes, callees)
    names = {node.op for function in library.function for node in function.node_def}
    stateful = {name for name in names if _is_stateful(name)}
    return Graph(graph, callees, stateful <= _ONCE | _CALLS)


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
            for called in value.list.func or [value.func]:
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
    # A name of its own, since the shapes are: it goes from the process with the graphs that hold it.
    name = f"{function.signature.name}_{ops.uid()}"
    callees.append(atomic_function.from_func_graph(name, graph, {}))
    return callees[-1]


def _function_attrs(op: Any) -> list[tuple[str, Any]]:
    definition = op.op_def
    if definition is None:  # a function's name as an op's
        return []
    names = [attr.name for attr in definition.attr if attr.type in ("func", "list(func)")]
    return [(name, op.node_def.attr[name]) for name in names]


def _argument_shapes(op: Any) -> list[tf.TensorShape]:
    if op.type in _LOOPS:
        return [y.shape for y in op.outputs]
    return [x.shape for x in op.inputs[1 if op.type in _CHOICES else 0 :]]


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
        if node.op in _LOOPS | _CHOICES and not node.attr["output_shapes"].list.shape:
            op = graph.get_operation_by_name(node.name)
            found = (_carried_shapes if node.op in _LOOPS else _chosen_shapes)(op, library)
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
    names = [f.name for _, value in _function_attrs(choice) for f in value.list.func or [value.func]]
    shapes = _argument_shapes(choice)
    given = [_output_shapes(library[name], library, shapes) for name in names]
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
