"""Commands on a GPU: where --device places a call, what they say of it, and what they measure."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner

import composite
from composite.cli import bench
from composite.cli.main import main
from tests.gpu.devices import GPU, Devices, with_kernels
from tests.unmeasured import kernels_serve

os.environ |= with_kernels()

OPS = """
import tensorflow as tf
from composite import Composite


@Composite("GpuCommandsGate", inputs=["x: float"], outputs=["y: float"])
def gate(x):
    return tf.tanh(x * 2.0) + 1.0
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("commands") / "ops.py"
    path.write_text(OPS)
    return path


def said(command: str, file: Path, device: str) -> dict[str, object]:
    arguments = [command, f"{file}:gate", "-s", "x=64,32", "--json", "--device", device]
    arguments += ["--seconds", "0.05"] if command == "bench" else []
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


@pytest.mark.parametrize("command", ["explain", "bench"])
def test_a_call_is_where_it_is_placed(devices: Devices, file: Path, command: str) -> None:
    with kernels_serve():
        on_gpu, on_cpu = said(command, file, "GPU:0"), said(command, file, "cpu:0")
    assert (on_gpu["path"], on_cpu["path"]) == ("kernel", "kernel")
    assert str(on_gpu["target"]).startswith(f"cuda-{devices.level}")
    assert str(on_cpu["target"]).startswith("x86-64")


def test_a_measurement_ends_when_the_device_is_done(devices: Devices) -> None:
    with tf.device(GPU):
        x = tf.constant([1.0, 2.0])
    held = ExitStack()
    held.enter_context(devices.held())
    Timer(0.3, held.close).start()
    assert bench._chunk(lambda: x * 2.0, 1) > 0.2


def test_counters_tell_gpus_apart(devices: Devices) -> None:
    x = np.ones([4], np.float32)

    @composite.Composite("GpuCommandsPlain", inputs=["x: float"], outputs=["y: float"])
    def plain(x):
        return tf.math.lgamma(x)

    counts = {}
    for place in (GPU, "/CPU:0"):
        before = composite.stats()
        with tf.device(place):
            plain(tf.constant(x))
        grown = composite.stats() - before
        counts[place] = (grown["expansion_runs"], grown["gpu_expansion_runs"])
    assert counts == {GPU: (1, 1), "/CPU:0": (1, 0)}


def test_a_device_that_is_not_there(file: Path) -> None:
    done = CliRunner().invoke(main, ["explain", f"{file}:gate", "-s", "x=4", "--device", "GPU:7"])
    assert done.exit_code == 2
    assert "--device: GPU:7 is none of CPU:0, GPU:0" in done.output
