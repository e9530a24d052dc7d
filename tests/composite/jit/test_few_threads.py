"""Many nodes that must have kernels, in a process that has hardly a thread to wait in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import sys, threading
import tensorflow as tf
import composite
from composite import Composite

@Composite("FewWave", inputs=["x: float"], outputs=["y: float"])
def wave(x):
    return tf.tanh(x) / (x * x + 1.0)

@Composite("FewNorm", inputs=["x: float"], outputs=["y: float"])
def norm(x):
    return x / (tf.reduce_sum(tf.abs(x), axis=-1, keepdims=True) + 1.0)

@Composite("FewSoft", inputs=["x: float"], outputs=["y: float"])
def soft(x):
    return tf.nn.softmax(x * 2.0)

@Composite("FewProduct", inputs=["x: float"], outputs=["y: float"])
def product(x):
    return tf.nn.relu(tf.matmul(x, x, transpose_b=True))

@Composite("FewTurned", inputs=["x: float"], outputs=["y: float"])
def turned(x):
    return tf.transpose(x) + 1.0

OPS = (wave, norm, soft, product, turned)
SHAPES = [(3, 104), (300, 5), (66, 27)]
INPUTS = [tf.random.stateless_normal(SHAPES[i % 3], [1, i]) for i in range(10)]

@tf.function
def nodes():
    return [op(x) for x in INPUTS for op in OPS]

results = []

def call():
    with composite.options(backend="tvm"):
        results.append(nodes())

callers = int(sys.argv[1])
threads = [threading.Thread(target=call) for _ in range(callers)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(results) == callers
expected = [op.python_function(x) for x in INPUTS for op in OPS]
for result in results:
    for y, right in zip(result, expected, strict=True):
        tf.debugging.assert_near(y, right, rtol=1e-4, atol=1e-4)
stats = composite.stats()
assert stats["kernel_launches"] == 50 * callers, stats
assert stats["expansion_runs"] == 0, stats
assert stats["answered"] > 0, stats
"""


@pytest.mark.parametrize(("intra", "callers"), [(1, 4), (2, 1)])
def test_nodes_wait_for_their_kernels_and_none_for_ever(
    run_python: Any, tmp_path: Path, intra: int, callers: int
) -> None:
    """Kernels are compiled and measured while all threads that run nodes wait for one."""
    cache = {"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")}
    run_python(SCRIPT, str(callers), intra=intra, inter=1, env=cache, timeout=240)
