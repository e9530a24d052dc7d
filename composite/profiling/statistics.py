"""The operations of composites' nodes, as TensorFlow's profiler of graphs asks for them.

With `RegisterStatistics` of TensorFlow's own ops, private in TF 2.21: tf.compat.v1.profiler has no
other way. tests/composite/profiling/test_counting.py pins it.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops

from composite.ops.op import call_of
from composite.profiling import counting

_FLOPS = "flops"


def register(op_name: str) -> None:
    """Has the profiler count an op, unless TensorFlow counts it itself."""
    try:
        ops.RegisterStatistics(op_name, _FLOPS)(_statistics)
    except KeyError:  # a composition of an op of TensorFlow's
        return


def _statistics(graph: Any, node: Any) -> Any:
    request = call_of(graph.get_operation_by_name(node.name))
    try:
        return ops.OpStats(_FLOPS, counting.counted(request).flops)
    except tf.errors.OpError:  # where a dim is missing, the profiler has no number
        return ops.OpStats(_FLOPS)
