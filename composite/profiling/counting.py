"""`composite.profile`: the operations and bytes of a call, counted from its expansion.

Not for: time, which is measured. What runs in a step is in TensorFlow's own traces, where each node
has an event "kernel <name>" or "expansion of <op>" (composite/runtime/run/node_trace.h).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.binding import native
from composite.binding.call_request import CallRequest
from composite.compiler import op_traits
from composite.compiler.op_traits import Runs, cost
from composite.ops import functions
from composite.ops.op import CompositeOp


@dataclass(frozen=True)
class Profile:
    """What a call takes.

    Attributes:
        flops: operations on elements: a product of matrices counts a multiplication and an
            addition for each term, `tf.exp` the vector instructions that it takes (about 20),
            what only moves data nothing. None where a size, or how often a loop runs, is unknown.
        bytes: of its inputs and results, each once: what a kernel has to move. None where a size
            is unknown.
    """

    flops: int | None
    bytes: int | None


def profile(op: CompositeOp, *args: Any, **attrs: Any) -> Profile:
    """Counts what a call of an op takes, without running it.

    Args:
        op: a composite op.
        *args: the inputs of the call; one may be a tf.TensorSpec.
        **attrs: its attributes, and inputs by their names.

    Returns:
        The operations and bytes. Those of a loop are its body's times its largest number of trips,
        those of a branch the most that one of its functions takes. What follows a branch of tensors
        is unknown where TensorFlow infers no shape for its results.

    Raises:
        TypeError, ValueError: the arguments do not match; errors of the body as `op.expand` has
            them.
    """
    return counted(op.request(*args, **attrs))


def counted(request: CallRequest) -> Profile:
    """What a call takes. tf.errors.OpError: it cannot be expanded."""
    reply = native.call("composite_expand", request.to_node_def())
    library = FunctionDefLibrary.FromString(reply)
    by_name = {f.signature.name: f for f in library.function}
    body = functions.body(library)
    graph = _graph(body, request.in_shapes)
    ends = [graph.get_tensor_by_name(f"{name}:0") for name in body.inputs]
    ends += [graph.get_tensor_by_name(name) for name in body.outputs]
    sizes = [_bytes(tensor) for tensor in ends]
    known = [size for size in sizes if size is not None]
    return Profile(_flops(graph, by_name), sum(known) if len(known) == len(sizes) else None)


def _graph(body: functions.Body, shapes: Sequence[tf.TensorShape]) -> tf.Graph:
    """A function's nodes, with the shapes that follow from those of its arguments."""
    placeholders = {node.name: node for node in body.graph_def.node}
    for name, shape in zip(body.inputs, shapes, strict=False):
        placeholders[name].attr["shape"].shape.CopyFrom(tf.TensorShape(shape).as_proto())
    return functions.imported(body.graph_def)


def _flops(graph: tf.Graph, library: dict[str, Any]) -> int | None:
    total = 0
    for op in graph.get_operations():
        flops = _flops_of(op, library)
        if flops is None:
            return None
        total += flops
    return total


def _flops_of(op: Any, library: dict[str, Any]) -> int | None:
    values = [op.node_def.attr[name] for name in sorted(op.node_def.attr)]
    named = [f.name for value in values for f in functions.named_by(value)]
    traits = op_traits.of(op.type)
    if named:
        return _flops_of_functions(op, named, traits.runs, library)
    if op.type in ("Placeholder", "Const") or not op.outputs:
        return 0
    if op.type == "Einsum":
        return _einsum(op)
    shapes = [_dims(x.shape) for x in op.inputs]
    found = cost.operations(traits, shapes, [_dims(y.shape) for y in op.outputs], op.get_attr)
    return None if found is None else int(found)


def _flops_of_functions(
    op: Any, named: list[str], runs: Runs | None, library: dict[str, Any]
) -> int | None:
    inputs = op.inputs[1:] if runs is Runs.BRANCH else op.inputs
    shapes = [x.shape for x in inputs]
    found = [_flops(_graph(functions.body_of(library[n], library), shapes), library) for n in named]
    each = [flops for flops in found if flops is not None]
    if len(each) != len(found):
        return None
    if runs is Runs.BRANCH:
        return max(each)
    if runs is not Runs.LOOP:
        return sum(each)
    trips = tf.get_static_value(op.inputs[1])  # while_v2's: a counter, the most trips, variables
    return None if trips is None or trips < 0 else int(trips) * sum(each)


def _einsum(op: Any) -> int | None:
    """Two operations for each combination of its indices, one where it has one operand."""
    operands = op.get_attr("equation").decode().partition("->")[0].split(",")
    sizes: dict[str, int | None] = {}
    for labels, x in zip(operands, op.inputs, strict=True):
        dims = _dims(x.shape)
        if dims is None or "." in labels:
            return None
        sizes |= zip(labels, dims, strict=True)
    known = [size for size in sizes.values() if size is not None]
    return len(operands) * math.prod(known) if len(known) == len(sizes) else None


def _bytes(tensor: Any) -> int | None:
    dims = _dims(tensor.shape)
    if dims is None or None in dims or not tensor.dtype.size:
        return None
    return math.prod(dim or 0 for dim in dims) * int(tensor.dtype.size)


def _dims(shape: tf.TensorShape) -> list[int | None] | None:
    return None if shape.rank is None else shape.as_list()
