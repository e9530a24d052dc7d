"""The operations of composites' nodes, as TensorFlow's profiler of graphs asks for them.

With `RegisterStatistics` of TensorFlow's own ops, private in TF 2.21: tf.compat.v1.profiler has no
other way. tests/composite/profiling/test_counting.py pins it.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops

from composite.binding.call_request import CallRequest
from composite.ops.op import constant
from composite.profiling import counting

_FLOPS = "flops"


def register(op_name: str) -> None:
    """Has the profiler count an op, unless TensorFlow counts it itself."""
    try:
        ops.RegisterStatistics(op_name, _FLOPS)(_statistics)
    except KeyError:  # a composition of an op of TensorFlow's
        return


def _statistics(graph: Any, node: Any) -> Any:
    op = graph.get_operation_by_name(node.name)
    request = CallRequest.of_node(
        op.type,
        op.node_def.attr,
        in_shapes=tuple(x.shape for x in op.inputs),
        constants=tuple(constant(x) for x in op.inputs),
    )
    try:
        return ops.OpStats(_FLOPS, counting.counted(request).flops)
    except tf.errors.OpError:  # where a dim is missing, the profiler has no number
        return ops.OpStats(_FLOPS)
