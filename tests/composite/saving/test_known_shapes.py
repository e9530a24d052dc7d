"""Shapes in portable functions: constants where the call knows them, else asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.saving.portable import portable
from tests.composite.saving import saved_ops


@pytest.mark.parametrize(("length", "op"), [(4, "Const"), (None, "Shape")])
def test_a_known_shape_is_a_constant(length: int | None, op: str) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [length])
        saved_ops.saved_twice(x)
    converted = portable(graph.as_graph_def())
    (function,) = converted.library.function
    assert {"Const", "Shape"} & {node.op for node in function.node_def} == {"Const", op}
    np.testing.assert_array_equal(
        ran(converted, np.array([1, 2, 3, 4], np.float32)), [4, 8, 12, 16]
    )


def ran(graph_def: Any, x: Any) -> Any:
    """The second result of the one call in a graph of one placeholder."""
    with tf.Graph().as_default() as graph:
        tf.graph_util.import_graph_def(graph_def, name="")
        with tf.compat.v1.Session(graph=graph) as session:
            given, call = (
                next(op for op in graph.get_operations() if op.type == kind).outputs
                for kind in ("Placeholder", "PartitionedCall")
            )
            return session.run(call[1], {given[0]: x})
