"""How long regions take to be found in a large graph, and their kernels to be ready.

The kernels are those of an encoder of 12 layers, in a process with an empty cache and in the next.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

import composite
from benchmarks.rows import Row, emit
from benchmarks.timing import QUICK
from benchmarks.works.models import encoder, inputs
from composite.acceleration import graph

NODES = 2000
LAYERS = 2 if QUICK else 12
_ENCODER = "encoder"


def large_function(nodes: int) -> Any:
    """A traced function of about so many nodes: dense layers, each with a norm."""

    def body(x: Any, weights: Any) -> Any:
        start = tf.compat.v1.get_default_graph()
        while len(start.get_operations()) < nodes:
            x = tf.nn.gelu(tf.matmul(x, weights) + 1.0, approximate=True)
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            x = (x - mean) * tf.math.rsqrt(variance + 1e-3)
        return x

    matrix = tf.TensorSpec([16, 16])
    return tf.function(body, autograph=False).get_concrete_function(matrix, matrix)


def found(nodes: int = NODES) -> Row:
    """Milliseconds to find the regions of a function."""
    function = large_function(nodes)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        regions = graph.partition(function).regions
        seconds.append(time.perf_counter() - start)
    return Row(
        f"regions of {nodes} nodes",
        1e3 * float(np.min(seconds)),
        "ms",
        at_most=50.0,
        detail=f"{sum(one.times for one in regions)} regions; the function is copied and read, too",
    )


def ready() -> Row:
    """Seconds from the first run of an encoder, traced before, until it has its kernels."""
    model = encoder(LAYERS, width=256, heads=4, length=64)
    words = inputs(model, 8)
    with composite.options(regions=True):
        infer = tf.function(lambda x: model(x, training=False), autograph=False)
        traced = infer.get_concrete_function(words)
        start = time.perf_counter()
        traced(words)
        composite.wait()
        seconds = time.perf_counter() - start
        before = composite.stats()
        traced(words)
        counts = (composite.stats() - before).by_region.values()
    calls, kernels = sum(c.calls for c in counts), sum(c.kernel for c in counts)
    return Row("", seconds, "s", detail=f"then kernels serve {kernels} of {calls} regions")


def rows() -> Iterator[Row]:
    """The graph, then both processes."""
    yield found()
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"COMPOSITE_CACHE_DIR": cache}
        for which, bound in (("first", 20.0), ("second", 1.0)):
            command = [sys.executable, "-m", "benchmarks.subjects.regions", _ENCODER]
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            seconds, detail = done.stdout.strip().splitlines()[-1].split(" ", 1)
            what = f"kernels of an encoder of {LAYERS} layers ready, {which} process"
            yield Row(what, float(seconds), "s", at_most=bound, detail=detail)


if __name__ == "__main__":
    if sys.argv[1:] == [_ENCODER]:
        one = ready()
        print(one.value, one.detail)
    else:
        emit(rows())
