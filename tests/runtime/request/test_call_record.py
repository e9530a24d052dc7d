"""COMPOSITE_RECORD: what a run asks for, and that building from it gives those kernels."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context, execute

from composite.aot import build_options
from tests.conftest import RunPython
from tests.runtime import kernel_support as k

ENVIRONMENT = "COMPOSITE_RECORD"

_CALLS = """
import os, signal
import tensorflow as tf
from tensorflow.python.eager import context, execute
from tests.composite.dense_ops import dense

for act in ("", "RELU", "RELU6", "TANH"):
    dense(tf.ones([3, 8]), tf.ones([4, 8]), tf.ones([4]), act=act)
"""


_BUILDS = """
import json, sys
from pathlib import Path
import numpy as np
import composite
from composite.aot import build_options
from tests.composite.dense_ops import dense

record, out = sys.argv[1:]
w, b = np.ones((6, 11), np.float32), np.ones(6, np.float32)
for rows in (3, 3, 4, 5):  # the second size makes the dim a symbol
    dense(np.ones((rows, 11), np.float32), w, b, act="TANH")
    composite.wait()
calls = build_options.read(Path(record))["TestDense"]
built = composite.build(dense, out, name="recorded", signatures={"TestDense": calls})
kernels = json.loads((built / "manifest.json").read_text())["kernels"]
assert [kernel["shapes"] for kernel in kernels] == ["3x11, 6x11, 6", "s0x11, 6x11, 6"], kernels
"""


@pytest.mark.slow
def test_each_kernel_that_is_asked_for_is_a_line_once(
    tmp_path: Path, run_python: RunPython
) -> None:
    """Of the file, too; and a library that is built from it has those kernels."""
    path = tmp_path / "calls.jsonl"
    path.write_text('{"op": "Other", "call": {"x": ["int32", [1]]}}')  # its line has no end
    for _ in range(2):
        run_python(_BUILDS, str(path), str(tmp_path / "out"), env={ENVIRONMENT: str(path)})
    found = build_options.read(path)
    shapes = {"filter_": ["float32", [6, 11]], "bias": ["float32", [6]], "act": "TANH"}
    assert found["TestDense"] == [
        {"input_": ["float32", [3, 11]], **shapes},
        {"input_": ["float32", ["s0", 11]], **shapes},
    ]
    assert len(found["Other"]) == 1


def test_a_process_that_is_killed_has_recorded_each_call(
    tmp_path: Path, run_python: RunPython
) -> None:
    """Right after its calls, with requests that nobody has taken yet."""
    path = tmp_path / "calls.jsonl"
    killed = "os.kill(os.getpid(), signal.SIGKILL)\n"
    done = run_python(_CALLS + killed, env={ENVIRONMENT: str(path)}, check=False)
    assert done.returncode == -signal.SIGKILL
    calls = build_options.read(path)["TestDense"]
    assert [call["act"] for call in calls] == ["", "RELU", "RELU6", "TANH"]


def test_gradients_are_left_out(tmp_path: Path, run_python: RunPython) -> None:
    path = tmp_path / "calls.jsonl"
    of_gradients = """
x = tf.ones([3, 8])
with tf.GradientTape() as tape:
    tape.watch(x)
    y = dense(x, tf.ones([4, 8]), tf.ones([4]), act="TANH")
tape.gradient(y, x)
"""
    run_python(_CALLS + of_gradients, env={ENVIRONMENT: str(path)})
    assert list(build_options.read(path)) == ["TestDense"]


def every_kind(op: str) -> Any:
    kinds = {
        "text": "string", "real": "float", "whole": "int", "flag": "bool", "kind": "type",
        "sizes": "shape", "texts": "list(string)", "reals": "list(float)", "kinds": "list(type)",
    }  # fmt: skip
    return k.program(
        op,
        {
            "inputs": ["x: T", "ys: N * float"],
            "attrs": ["T: type", "N: int", *(f"{name}: {kind}" for name, kind in kinds.items())],
            "outputs": ["z: T"],
        },
        [k.call_node("0", "Relu", ["x"], ["features"])],
        {"z": "0"},
    )


ATTRS = {
    "text": 'a "quoted" \\ text,\nÄ', "real": 0.1, "whole": -3, "flag": True, "kind": tf.half,
    "sizes": [2, -1], "texts": ["a", "b"], "reals": [1.0, 1e-30], "kinds": [tf.float32, tf.int32],
}  # fmt: skip


@pytest.mark.usefixtures("kernel_ops")
def test_every_kind_of_attribute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unique: Callable[[str], str]
) -> None:
    op, path = unique("RtRecord"), tmp_path / "calls"
    k.register(every_kind(op))
    monkeypatch.setenv(ENVIRONMENT, str(path))
    flat: list[Any] = ["T", tf.float32.as_datatype_enum, "N", 2]
    for name, value in ATTRS.items():
        flat += [name, value]
    with k.Worker(lambda _: ("not_covered", "it is Sunday")) as worker:
        x = tf.ones([2, 1])
        eager_execute(op, [x, x, tf.ones([])], flat)
        worker.wait()
    (call,) = map(dict, build_options.read(path)[op])
    spec = ["float32", [2, 1]]
    assert call["x"] == spec
    assert call["ys"] == [spec, ["float32", []]]
    assert np.float32(call.pop("real")) == np.float32(0.1)
    assert np.float32(call.pop("reals")[1]) == np.float32(1e-30)
    assert {name: call[name] for name in call if name not in {"x", "ys"}} == {
        "text": ATTRS["text"], "whole": -3, "flag": True, "kind": "float16", "sizes": [2, None],
        "texts": ["a", "b"], "kinds": ["float32", "int32"],
    }  # fmt: skip


def eager_execute(op: str, inputs: list[Any], flat: list[Any]) -> Any:
    return execute.execute(op.encode(), 1, inputs, tuple(flat), context.context())[0]


@pytest.mark.usefixtures("kernel_ops")
def test_what_has_no_form_in_json_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unique: Callable[[str], str]
) -> None:
    op, path = unique("RtRecordBytes"), tmp_path / "calls"
    program = k.program(
        op,
        {"inputs": ["x: float"], "attrs": ["text: string"], "outputs": ["y: float"]},
        [k.call_node("0", "Relu", ["x"], ["features"])],
        {"y": "0"},
    )
    k.register(program)
    monkeypatch.setenv(ENVIRONMENT, str(path))
    with k.Worker(lambda _: ("not_covered", "it is Sunday")) as worker:
        k.call(op, {"x": tf.ones([2])}, text=b"\xff")
        k.call(op, {"x": tf.ones([2])}, text=b"fine")
        worker.wait()
    assert [call["text"] for call in build_options.read(path)[op]] == ["fine"]
    assert len(worker.requests) == 2


@pytest.mark.usefixtures("kernel_ops")
def test_constants_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unique: Callable[[str], str]
) -> None:
    op, path = unique("RtRecordConstants"), tmp_path / "calls"
    digest = k.register(k.dense(op))
    monkeypatch.setenv(ENVIRONMENT, str(path))
    inputs = k.dense_inputs(4, 64, 64)
    stamps = {"_composite_program": digest}

    @tf.function(autograph=False)
    def model(x: Any) -> Any:
        w = tf.constant(inputs["w"].numpy())
        return k.call(op, {"x": x, "w": w, "b": inputs["b"]}, **stamps)

    with k.Worker(lambda _: ("not_covered", "it is Sunday")) as worker:
        model(inputs["x"])
        worker.wait()
    assert build_options.read(path)[op][0]["w"] == ["float32", [64, 64], "constant"]


@pytest.mark.usefixtures("kernel_ops")
def test_threads_share_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unique: Callable[[str], str]
) -> None:
    ops, path = [unique("RtRecordThread") for _ in range(8)], tmp_path / "calls"
    for op in ops:
        k.register(k.dense(op))
    monkeypatch.setenv(ENVIRONMENT, str(path))

    def calls(op: str) -> None:
        for rank_one in (3, 4):
            k.call(op, k.dense_inputs(4, rank_one))

    with k.Worker(lambda _: ("not_covered", "it is Sunday")) as worker:
        threads = [threading.Thread(target=calls, args=(op,)) for op in ops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        worker.wait()
    found = build_options.read(path)
    assert {op: len(found[op]) for op in ops} == dict.fromkeys(ops, 2)


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path: Path, run_python: RunPython) -> None:
    path = tmp_path / "missing" / "calls"
    done = run_python(_CALLS, env={ENVIRONMENT: str(path), "TF_CPP_MIN_LOG_LEVEL": "1"})
    lines = [line for line in done.stderr.splitlines() if "COMPOSITE_RECORD=" in line]
    assert len(lines) == 1
    assert "cannot be written: No such file" in lines[0]
