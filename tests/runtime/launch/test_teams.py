"""Loops that meet at barriers, beside others: in one built library, and called all at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.aot import stated_calls
from composite.binding import native
from composite.compiler import tvm as backend
from composite.kernels import host, produce
from examples.lstm.ops import lstm

BATCH, STEPS, UNITS = 4, 16, 64
CALL = {
    "x": ("float32", (BATCH, STEPS, UNITS)),
    "h0": ("float32", (BATCH, UNITS)),
    "c0": ("float32", (BATCH, UNITS)),
    "kernel": ("float32", (UNITS, 4 * UNITS)),
    "recurrent_kernel": ("float32", (UNITS, 4 * UNITS)),
    "bias": ("float32", (4 * UNITS,)),
    "mask": [],
    "return_sequences": True,
}
SIZE = 256


@composite.Composite(
    "TeamsDense", inputs=["x: T", "w: T"], derived_attrs=["T: {float}"], outputs=["y: T"]
)
def dense(x: Any, w: Any) -> Any:
    return tf.nn.relu(x @ w)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    matrix = ("float32", (SIZE, SIZE))
    return composite.build(
        [lstm, dense], tmp_path_factory.mktemp("built") / "lib", name="teams_lib",
        signatures={"lstm": [CALL], "dense": [{"x": matrix, "w": matrix}]},
    )  # fmt: skip


_ENVIRONMENT = {"COMPOSITE_JIT": "0", "COMPOSITE_BACKEND": "tvm"}

_START = f"""
import sys
import numpy as np
import tensorflow as tf
import composite
ops = composite.load(sys.argv[1])
random = np.random.default_rng(0)
shapes = [({BATCH}, {STEPS}, {UNITS}), *[({BATCH}, {UNITS})] * 2, *[({UNITS}, {4 * UNITS})] * 2,
          ({4 * UNITS},)]
inputs = [tf.constant(random.standard_normal(shape) / 4, tf.float32) for shape in shapes]
matrix = tf.constant(random.standard_normal(({SIZE}, {SIZE})), tf.float32)

def lstm(x=inputs[0]):
    return ops.lstm(x, *inputs[1:], [], return_sequences=True)

def dense(x=matrix):
    return ops.dense(x, matrix)

def close(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)

with composite.options(backend="tf"):
    expected = {{lstm: lstm(), dense: [dense()]}}
"""

_ONE_BY_ONE = """
def launched(op):
    before = composite.stats()
    close(tf.nest.flatten(op()), expected[op])
    counts = composite.stats() - before
    assert counts["kernel_launches"] == 1 and counts["expansion_runs"] == 0, counts
    return counts["parallel_launches"], counts["team_launches"]

parallel, teams = launched(dense)
assert parallel > 0 and teams == 0, (parallel, teams)
parallel, teams = launched(lstm)
assert parallel >= teams > 0, (parallel, teams)
"""


def test_only_kernels_with_a_barrier_are_launched_as_teams(
    library: Path, run_python: Callable[..., Any]
) -> None:
    code = _START + _ONE_BY_ONE
    run_python(code, str(library), intra=2, env=_ENVIRONMENT)


_AT_ONCE = """
import threading
CALLERS, ROUNDS = 32, 4
alone = [y.numpy() for y in lstm()]

def same():
    for found, wanted in zip(lstm(), alone, strict=True):
        np.testing.assert_array_equal(found, wanted)

def other():
    close([dense()], expected[dense])

def plain():
    close([tf.nn.relu(tf.matmul(matrix, matrix))], expected[dense])

@tf.function
def graph(sequences, matrices):  # an argument for each node, lest equal nodes become one
    return [lstm(x) for x in sequences], [dense(x) for x in matrices]

def nodes():
    layers, products = graph([inputs[0]] * CALLERS, [matrix] * 4)
    for layer in layers:
        for found, wanted in zip(layer, alone, strict=True):
            np.testing.assert_array_equal(found, wanted)
    for product in products:
        close([product], expected[dense])

nodes()  # traced once, not by all at once
failures = []

def repeat(call):
    try:
        for _ in range(ROUNDS):
            call()
    except BaseException as error:
        failures.append(error)

before = composite.stats()
calls = [same] * CALLERS + [other] * 4 + [plain] * 4 + [nodes]
callers = [threading.Thread(target=repeat, args=(call,)) for call in calls]
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
assert not failures, failures[0]
counts = composite.stats() - before
assert counts["kernel_launches"] == 2 * ROUNDS * (CALLERS + 4), counts
assert counts["expansion_runs"] == 0, counts
assert counts["team_launches"] > 0, counts
"""


@pytest.mark.parametrize("threads", [2, 1])
def test_thirty_two_layers_at_once_beside_other_ops(
    library: Path, threads: int, run_python: Callable[..., Any]
) -> None:
    code = _START + _AT_ONCE
    run_python(code, str(library), intra=threads, inter=4, env=_ENVIRONMENT, timeout=120)


_BESIDE_OTHERS = """
import os, subprocess, time
forever = [sys.executable, "-c", "while True: pass"]
others = [subprocess.Popen(forever) for _ in range(os.cpu_count())]
try:
    end = time.monotonic() + 1
    while time.monotonic() < end:  # until the first loss
        lstm()
    before = composite.stats()
    while time.monotonic() < end + 3:
        lstm()
    counts = composite.stats() - before
    assert counts["short_teams"] > 0.95 * counts["team_launches"] > 0, counts
finally:
    for other in others:
        other.kill()
"""


@pytest.mark.slow
def test_a_busy_machine_runs_loops_on_the_callers_thread(
    library: Path, run_python: Callable[..., Any]
) -> None:
    """A thread that waits at a barrier would wait for a time slice of another process."""
    run_python(_START + _BESIDE_OTHERS, str(library), intra=2, env=_ENVIRONMENT)


@composite.Composite(
    "TeamsWalk", inputs=["at: int32", "following: int32", "rows: T", "w: T"],
    derived_attrs=["T: {float}"], outputs=["y: T"],
)  # fmt: skip
def walk(at: Any, following: Any, rows: Any, w: Any) -> Any:
    """Each trip reads rows where the trip before said."""
    steps = tf.shape(following)[0]
    h = tf.gather(rows, at)
    ys = tf.TensorArray(h.dtype, size=steps, element_shape=h.shape)
    for t in range(steps):
        at = tf.gather(following, at)
        h = tf.tanh(h @ w + tf.gather(rows, at))
        ys = ys.write(t, h)
    return ys.stack()


@pytest.fixture(scope="module")
def walking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    specs = {
        "at": ("int32", (BATCH,)), "following": ("int32", (STEPS,)),
        "rows": ("float32", (STEPS, 2 * UNITS)), "w": ("float32", (2 * UNITS, 2 * UNITS)),
    }  # fmt: skip
    # Two cores, whatever this machine has: for one there would be no barrier.
    target = backend.Target.of(backend.Target.host().isa, 2)
    kernel = produce.compile_object(stated_calls.requests(walk, specs)[0], target, "walk")
    assert kernel.barriers
    path = tmp_path_factory.mktemp("walking") / "walk.so"
    backend.link([kernel], path, native.library_path())
    return path


@pytest.mark.parametrize("tasks", [1, 2, 3, 4])
@pytest.mark.parametrize("row", [0, BATCH - 1])
def test_no_trip_is_run_on_what_a_failed_one_did_not_write(
    walking: Path, row: int, tasks: int
) -> None:
    random = np.random.default_rng(0)
    rows = random.standard_normal((STEPS, 2 * UNITS)).astype(np.float32)
    w = (random.standard_normal((2 * UNITS, 2 * UNITS)) / 16).astype(np.float32)
    at = np.zeros(BATCH, np.int32)
    at[row] = 1
    following = np.zeros(STEPS, np.int32)
    following[1:4] = 2, 3, 2**30  # the third trip is given an index that is no row
    y = np.full((STEPS, BATCH, 2 * UNITS), np.nan, np.float32)
    with pytest.raises(RuntimeError, match="walk raised IndexError: an index is out of range"):
        host.call(walking, "walk", [at, following, rows, w, y], tasks=tasks)
    assert not np.isnan(y[:2]).any()
    assert np.isnan(y[3:]).all()
