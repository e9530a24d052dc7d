"""What `composite.accelerate` asks for, and how long its steps take, in processes of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import RunPython

_LAYERS = """
import sys
import tensorflow as tf
import composite

# Layers that differ in their weights alone, around what no region takes in.
weights = [tf.Variable(tf.random.stateless_normal([32, 32], [0, i])) for i in range(4)]

def layers(x):
    for w in weights:
        x = tf.nn.softmax(tf.nn.tanh(tf.matmul(x, w)) + 1.0)
    return x

function = composite.accelerate(layers, tf.ones([16, 32]), min_gain=0.0, deny=["Softmax"])
report = function.report
(region,) = report.partition.regions
stats = composite.stats()
assert region.times == 4, report
assert report.is_complete
"""

_FIRST = """
assert stats["requests"] == 1, stats  # for weights that rest, and none for others
assert stats["compiles"] == 1, stats
assert stats["invalid_graphs"] == 0, stats
made = {"start", "read", "plan", "schedule", "prove", "generate", "link", "queue"}
made |= {"expand", "reference", "check", "measure", "install"}
called = {"trace", "find regions", "warm up", "wait", "compare", "time"}
assert made | called <= set(stats.seconds), stats.seconds
assert set(report.steps) == called, report.steps
assert f"done in {report.steps}" in str(report)
assert "seconds" in repr(stats)
assert (composite.stats() - stats).seconds == {}
composite.stats(reset=True)
assert composite.stats().seconds == {}
"""

_SECOND = """
assert stats["requests"] == 1, stats
assert stats["compiles"] == 0, stats
anew = {"start", "read", "generate", "reference", "check", "measure"} & set(stats.seconds)
assert not anew, stats.seconds
"""


@pytest.mark.slow
def test_equal_parts_are_made_once_and_not_again_in_the_next_process(
    run_python: RunPython, tmp_path: Path
) -> None:
    variables = {"COMPOSITE_CACHE_DIR": str(tmp_path / "cache"), "COMPOSITE_LOG": "info"}
    first = run_python(_LAYERS + _FIRST, env=variables)
    (line,) = [line for line in first.stderr.splitlines() if ": accelerated in " in line]
    assert "composite INFO: layers: accelerated in trace " in line
    assert re.search(r"composite INFO: region \w{8}: (kernel|expansion) in ", first.stderr)
    run_python(_LAYERS + _SECOND, env=variables)


@pytest.mark.slow
def test_variables_that_are_written_to_get_kernels_that_make_no_use_of_rest(
    run_python: RunPython, tmp_path: Path
) -> None:
    code = """
for _ in range(3):
    for w in weights:
        w.assign_add(tf.ones([32, 32]))
    with composite.options(backend="auto"):
        found = function(tf.ones([16, 32]))
    assert composite.wait(timeout=120)
    tf.debugging.assert_near(found, layers(tf.ones([16, 32])), rtol=1e-4)
"""
    done = run_python(
        _LAYERS + code + 'print("requests", composite.stats()["requests"])',
        env={"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert "requests 2" in done.stdout, done.stdout
