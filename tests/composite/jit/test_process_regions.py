"""COMPOSITE_REGIONS=1, and what goes with it, in processes that declare no op."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunPython

# Two regions where the process denies the product between them.
MODEL = """
import json
import composite
import tensorflow as tf

@tf.function
def model(x):
    y = tf.tanh(x * 3.0) * 2.0
    return tf.exp(tf.sin(tf.linalg.matmul(y, y)) - 1.0)

x = tf.reshape(tf.range(9.0), [3, 3]) / 9.0
for _ in range(3):
    model(x)
    composite.wait()
found = composite.stats()
calls = {name: counts.kernel for name, counts in found.by_region.items()}
print(json.dumps([found["regions"], found["requests"], calls]))
"""
# A kernel is a must: whether one is faster does not matter here.
REGIONS = {"COMPOSITE_REGIONS": "1", "COMPOSITE_BACKEND": "tvm"}
TWO = REGIONS | {"COMPOSITE_REGIONS_DENY": "MatMul"}


def _run(run_python: RunPython, env: dict[str, str], *, bare: bool = False) -> list[Any]:
    """What the model's process prints. It has imported TensorFlow before, unless it is bare."""
    done = run_python(MODEL, env=env, bare=bare)
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_without_it_there_are_none(run_python: RunPython) -> None:
    assert _run(run_python, {}) == [0, 0, {}]


@pytest.mark.parametrize("bare", [True, False])
def test_regions_have_kernels(run_python: RunPython, bare: bool) -> None:
    regions, requests, calls = _run(run_python, REGIONS, bare=bare)
    assert (regions, requests, list(calls.values())) == (1, 1, [3])


@pytest.mark.parametrize(
    ("env", "count"),
    [
        ({}, 2),
        ({"COMPOSITE_REGIONS_FUEL": "1"}, 1),
        ({"COMPOSITE_REGIONS_ALLOW": "Tanh,Mul,Const"}, 1),
        ({"COMPOSITE_REGIONS_DENY": "MatMul,Exp"}, 2),
        ({"COMPOSITE_REGIONS_DENY": "MatMul,Tanh"}, 1),
        ({"COMPOSITE_REGIONS_MIN_OPS": "4"}, 0),
    ],
)
def test_which_regions_there_are(run_python: RunPython, env: dict[str, str], count: int) -> None:
    regions, requests, calls = _run(run_python, TWO | env)
    assert (regions, requests, list(calls.values())) == (count, count, [3] * count)


def test_regions_are_dumped(run_python: RunPython, tmp_path: Path) -> None:
    _run(run_python, TWO | {"COMPOSITE_REGIONS_DUMP": str(tmp_path / "dump")})
    assert len(list((tmp_path / "dump").glob("*.pb"))) == 2


def test_kernels_are_asked_for_without_a_must(run_python: RunPython) -> None:
    regions, requests, calls = _run(run_python, {"COMPOSITE_REGIONS": "1"})
    assert (regions, requests, len(calls)) == (1, 1, 1)


def test_nothing_is_loaded_for_the_import_alone(run_python: RunPython) -> None:
    code = """
import sys, threading
import composite
assert not {"tensorflow", "tvm", "numpy", "composite.jit.worker"} & set(sys.modules)
assert threading.active_count() == 1
assert "libcomposite_runtime" not in open("/proc/self/maps").read()
"""
    run_python(code, env=REGIONS, bare=True)


def test_tensorflow_can_still_be_configured(run_python: RunPython) -> None:
    code = """
import composite
import tensorflow as tf
tf.config.threading.set_inter_op_parallelism_threads(2)
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
assert len(tf.config.list_logical_devices("CPU")) == 2
"""
    run_python(code, env=REGIONS, bare=True)


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"COMPOSITE_JIT": "0"}, "this process compiles no kernels (COMPOSITE_JIT=0, or"),
        ({"COMPOSITE_REGIONS": "yes"}, "'yes' in the environment is not one of '0', '1'"),
    ],
)
def test_a_process_that_makes_no_kernels_has_no_regions(
    run_python: RunPython, env: dict[str, str], why: str
) -> None:
    done = run_python(MODEL, env={"COMPOSITE_REGIONS": "1"} | env)
    assert json.loads(done.stdout.splitlines()[-1]) == [0, 0, {}]
    assert "COMPOSITE_REGIONS has no effect: " in done.stderr
    assert why in done.stderr
