"""COMPOSITE_RECORD: what a run asks for, and that building from it gives those kernels."""

import json

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.aot import build_options
from composite.jit import recording
from tests.composite import dense_ops


@pytest.mark.slow
def test_each_kernel_that_is_asked_for_is_a_line_once(tmp_path, monkeypatch):
    path = tmp_path / "calls.jsonl"
    path.write_text('{"op": "Other", "call": {"x": ["int32", [1]]}}\n')
    monkeypatch.setenv(recording.ENVIRONMENT, str(path))
    w, b = np.ones((6, 11), np.float32), np.ones(6, np.float32)
    for rows in (3, 3, 4, 5):  # the second size makes the dim a symbol
        dense_ops.dense(np.ones((rows, 11), np.float32), w, b, act="TANH")
        composite.wait()
    found = build_options.read(path)
    shapes = {"filter_": ["float32", [6, 11]], "bias": ["float32", [6]], "act": "TANH"}
    assert found["TestDense"] == [
        {"input_": ["float32", [3, 11]], **shapes},
        {"input_": ["float32", ["s0", 11]], **shapes},
    ]
    assert len(found["Other"]) == 1

    out = composite.build(
        dense_ops.dense, tmp_path / "lib", name="recorded",
        signatures={"TestDense": found["TestDense"]},
    )  # fmt: skip
    kernels = json.loads((out / "manifest.json").read_text())["kernels"]
    assert [kernel["shapes"] for kernel in kernels] == ["3x11, 6x11, 6", "s0x11, 6x11, 6"]


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv(recording.ENVIRONMENT, str(tmp_path / "missing" / "calls"))
    x = tf.ones([3, 17])
    with composite.options(backend="tvm"):
        dense_ops.dense(x, tf.ones([2, 17]), tf.ones([2]))
    assert "COMPOSITE_RECORD=" in caplog.text


_ENDS = """
import tensorflow as tf
from tests.composite.dense_ops import dense

for act in ("", "RELU", "RELU6", "TANH"):
    dense(tf.ones([3, 8]), tf.ones([4, 8]), tf.ones([4]), act=act)
"""


def test_a_script_that_just_ends_has_recorded_each_call(tmp_path, run_python):
    path = tmp_path / "calls.jsonl"
    run_python(_ENDS, env={recording.ENVIRONMENT: str(path)})
    calls = build_options.read(path)["TestDense"]
    assert sorted(call["act"] for call in calls) == ["", "RELU", "RELU6", "TANH"]
