"""tf.vectorized_map over composite ops, and with it the Jacobians of tf.GradientTape.

The one file that uses the private registry of converters of TensorFlow's `parallel_for.pfor`,
written against TF 2.21; tests/composite/vectorize/test_batching.py names what it takes.

A node that is mapped over becomes its expansion for one element, of which each op is converted by
TensorFlow's own rule; so is a derived gradient. An element-wise op takes the batch itself.
Nothing here knows what an op computes.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.python.ops.parallel_for import pfor

from composite.autodiff import backward
from composite.binding import native
from composite.binding.call_request import CallRequest
from composite.binding.log import logger
from composite.binding.records import NodeDef, TensorProto
from composite.compiler import op_traits
from composite.ops import function_op
from composite.ops.op import constant
from composite.vectorize import elementwise
from composite.vectorize.function_graphs import FunctionGraph, graph_of

# An expansion as graphs holds some 0.1 MB.
_LIMIT = 256

# Stateful ops that need run only once for all elements when none of their inputs is mapped over;
# TensorFlow's own converters have them do so. Any other may count how often it runs.
_ONCE = frozenset({"Assert", "PrintV2", "ReadVariableOp", "VariableShape"})


def register(op_name: str) -> None:
    """Gives TensorFlow a converter for a name; the registry's hook for new ones."""
    pfor.RegisterPFor(op_name)(_convert)


def _convert(node: Any) -> Any:
    """The converter: `node` is TensorFlow's record of an op and of its converted inputs.

    Returns a converted tensor for each output; the operation for an op without outputs.
    """
    if node.op_type == function_op.NAME:
        function_op.ensure_defined(node.op)
    request = _request(node)
    asked = request.serialize()
    mapped = tuple(x.is_stacked for x in node.inputs)
    try:
        expansion = _expansion(asked)
    except tf.errors.FailedPreconditionError as error:
        if not native.is_not_yet(error):
            raise
        raise _not_yet(node, error) from None
    if not any(mapped) and all(map(_runs_once, expansion.stateful)):
        return _same_node(node, is_stacked=False)
    count = tf.get_static_value(node.pfor.loop_len_vector)
    if any(mapped) and _takes_a_batch(asked, mapped, None if count is None else int(count[0])):
        return _same_node(node, is_stacked=True)
    return convert_function(node, expansion)


def _runs_once(op: str) -> bool:
    """Whether a stateful op may run once for all elements; of a function, its ops are asked."""
    return op in _ONCE or op_traits.of(op).runs is not None


def _same_node(node: Any, *, is_stacked: bool) -> Any:
    """The op itself, on the converted inputs."""
    dtypes = [y.dtype for y in node.outputs]
    inputs = [x.t for x in node.inputs]
    made = pfor._create_op(node.op_type, inputs, dtypes, node.op.node_def.attr)
    return [pfor.wrap(y, is_stacked) for y in made.outputs] or made


def _request(node: Any) -> CallRequest:
    """What the runtime is asked to expand: the call of one element."""
    inputs = zip(node.op.inputs, node.inputs, strict=True)
    return CallRequest.of_node(
        node.op_type,
        node.op.node_def.attr,
        in_shapes=tuple(_element_shape(x, to) for x, to in inputs),
        constants=tuple(TensorProto() if to.is_stacked else constant(to.t) for to in node.inputs),
    )


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


def _convert_call(node: Any, converter: Any) -> Any:
    """The converter of a call: TensorFlow's own, except for backwards that keep state.

    Those hold what was imported: TensorFlow's needs the FuncGraphs of their Ifs and Whiles.
    """
    name = node.get_attr("f").name
    if backward.NAME not in name:
        return converter(node)
    called = node.op.graph._get_function(name)
    shapes = tuple(_element_shape(x, to) for x, to in zip(node.op.inputs, node.inputs, strict=True))
    return convert_function(node, _function_graph(called, shapes))


@functools.lru_cache(maxsize=_LIMIT)
def _function_graph(called: Any, shapes: tuple[tf.TensorShape, ...]) -> FunctionGraph:
    reached = called.graph.as_graph_def().library.function
    return graph_of(FunctionDefLibrary(function=[called.cached_definition, *reached]), shapes)


for _call in ("PartitionedCall", "StatefulPartitionedCall"):
    pfor._pfor_converter_registry[_call] = functools.partial(
        _convert_call, converter=pfor._pfor_converter_registry[_call]
    )


@functools.lru_cache(maxsize=_LIMIT)
def _expansion(request: bytes) -> FunctionGraph:
    asked = CallRequest.parse(NodeDef.FromString(request))
    return graph_of(_library(asked), asked.in_shapes)


@functools.lru_cache(maxsize=4 * _LIMIT)
def _takes_a_batch(request: bytes, mapped: tuple[bool, ...], count: int | None) -> bool:
    one = CallRequest.parse(NodeDef.FromString(request))
    shapes = one.in_shapes
    inputs = zip(shapes, mapped, strict=True)
    batched = (tf.TensorShape([count]).concatenate(s) if each else s for s, each in inputs)
    batch = replace(one, in_shapes=tuple(batched))
    try:
        return elementwise.takes_a_batch(_library(one), _library(batch), shapes, mapped)
    except tf.errors.OpError:  # the body refuses a batch, or does not know yet
        return False


def _library(asked: CallRequest) -> FunctionDefLibrary:
    return FunctionDefLibrary.FromString(native.call("composite_expand", asked.to_node_def()))


def convert_function(node: Any, function: FunctionGraph) -> Any:
    """Converts a function in place of the node that calls it, by TensorFlow's rules for its ops.

    Its inputs are those of the node. What it does beside its outputs, an assertion, comes first.
    """
    graph = function.graph
    function.add_callees()
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
    if op.outputs:
        return converter._convert_helper(op.outputs[0]).t.op
    return converter._convert_helper(op)


register(function_op.NAME)
