"""What a call takes, and where TensorFlow's profilers show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import ops

import composite
from composite import Composite
from tests.composite.dense_ops import dense


@Composite("CountedLoop", inputs=["x: float", "w: float"], outputs=["y: float"])
def counted_loop(x, w):
    """Products in a loop, and a branch behind it."""
    for _ in tf.range(3):
        x = tf.matmul(x, w)
    x = tf.einsum("ij,jk->ik", x, w)
    if tf.reduce_sum(x) > 0.0:
        x = x + 1.0
    return x


def test_a_call_is_counted() -> None:
    x, w, b = tf.TensorSpec([8, 16]), tf.TensorSpec([4, 16]), tf.TensorSpec([4])
    found = composite.profile(dense, x, w, b, act="RELU")
    assert found.bytes == 4 * (8 * 16 + 4 * 16 + 4 + 8 * 4)
    assert found.flops == 2 * 8 * 16 * 4 + 2 * 8 * 4
    unknown = composite.profile(dense, tf.TensorSpec([None, 16]), w, b, act="")
    assert (unknown.flops, unknown.bytes) == (None, None)


def test_loops_branches_and_sums_of_an_equation() -> None:
    square = tf.TensorSpec([4, 4])
    found = composite.profile(counted_loop, square, square).flops
    products = 2 * 4**3 * 4
    assert found is not None
    assert products + 16 + 16 <= found <= products + 80  # what counts the trips is in it


def test_the_profiler_of_graphs_knows_it() -> None:
    with tf.Graph().as_default() as graph:
        shapes = ([8, 16], [4, 16], [4])
        inputs = [tf.compat.v1.placeholder(tf.float32, shape) for shape in shapes]
        y = dense(*inputs, act="RELU")
        assert ops.get_stats_for_node_def(graph, y.op.node_def, "flops").value == 1088
        options = tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
        options["output"] = "none"
        total = tf.compat.v1.profiler.profile(graph, options=options).total_float_ops
    assert total == 1088


def events(folder: Path) -> list[Any]:
    """The names of what a trace has on the host, and what is told beside them."""
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    (file,) = folder.rglob("*.xplane.pb")
    found = []
    for plane in XSpace.FromString(file.read_bytes()).planes:
        for event in (event for line in plane.lines for event in line.events):
            stats = {
                plane.stat_metadata[stat.metadata_id].name: stat.str_value
                or plane.stat_metadata[stat.ref_value].name
                for stat in event.stats
            }
            found.append((plane.event_metadata[event.metadata_id].name, stats))
    return found


@pytest.mark.slow
def test_a_trace_tells_kernels_from_expansions(tmp_path: Path) -> None:
    x, w, b = (tf.ones(shape) for shape in ([17, 24], [8, 24], [8]))

    def call(backend: Any) -> Any:
        with composite.options(backend=backend):
            return dense(x, w, b, act="RELU")

    call("tvm")  # compiles
    tf.profiler.experimental.start(str(tmp_path))
    results = [call("tvm"), call("tf")]
    tf.profiler.experimental.stop()
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
    told = {name: stats for name, stats in events(tmp_path) if name.startswith(("kern", "expan"))}
    with composite.options(backend="tvm"):
        kernel = f"kernel {composite.explain(dense, x, w, b, act='RELU').kernel}"
    assert told[kernel]["op"] == "TestDense"
    assert "backend" in told["expansion of TestDense"]["why"]
