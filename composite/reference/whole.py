"""Runs an expansion as one graph: far faster than node by node where a loop has many trips.

It runs on threads of its own. One of TensorFlow's inter-op threads may be what waits for the kernel
that is checked (evaluate.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.ops import functions
from composite.reference.evaluate import is_saturated

Array = np.ndarray[Any, Any]

_THREADS = 2


def gives_the_same(source: functions.Body) -> bool:
    """Whether a body as one graph has the results of `evaluate`, bit for bit."""
    graph = source.graph_def
    functions_too = [graph.node, *(f.node_def for f in graph.library.function)]
    return not any(is_saturated(node) for nodes in functions_too for node in nodes)


class Whole:
    """Runs a body any number of times."""

    def __init__(self, source: functions.Body) -> None:
        """Imports the body to a graph of its own."""
        graph = tf.Graph()
        with graph.as_default():
            tf.graph_util.import_graph_def(source.graph_def, name="")
        self._inputs = [f"{name}:0" for name in source.inputs]
        self._outputs = source.outputs
        self._session = tf.compat.v1.Session(graph=graph, config=_config())

    def run(self, inputs: Sequence[Any]) -> list[Array]:
        """The outputs for these inputs, as arrays; OpError as the ops raise it."""
        given = dict(zip(self._inputs, inputs, strict=True))
        return list(self._session.run(self._outputs, given))


def _config() -> tf.compat.v1.ConfigProto:
    """Threads of its own, no GPU, and a graph that nothing rewrites."""
    config = tf.compat.v1.ConfigProto(
        device_count={"GPU": 0},
        use_per_session_threads=True,
        inter_op_parallelism_threads=_THREADS,
    )
    options = config.graph_options
    options.rewrite_options.disable_meta_optimizer = True
    options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    return config
