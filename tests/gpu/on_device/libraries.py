"""Libraries with kernels for GPUs: built where there is one, used where nothing can compile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import composite
from composite.aot import manifest
from tests.conftest import RunPython
from tests.gpu.devices import Devices, build, with_kernels

os.environ |= with_kernels()

_SOURCE = """
import tensorflow as tf
from composite import Composite

@Composite("GpuLibraryTwo", inputs=["x: float", "b: float"], outputs=["y: float", "z: float"])
def two(x, b):
    y = tf.tanh(x * 2.0 + b)
    return y, tf.reduce_sum(y * y, 0)
"""

_CALL = {"x": ("float32", ("n", 5)), "b": ("float32", (5,))}

_USE = """
import sys
from pathlib import Path
import numpy as np
import tensorflow as tf
import composite
from tests.gpu.devices import Devices
devices = Devices(Path({devices!r}))
two = composite.load({folder!r}).two
x = np.linspace(-1, 1, 60, dtype=np.float32).reshape(12, 5)
with tf.device("/GPU:0"):
    y, z = two(x, tf.zeros([5]))
    explained = composite.explain(two, tf.constant(x), tf.zeros([5]))
np.testing.assert_allclose(y, np.tanh(x * 2), rtol=1e-5)
np.testing.assert_allclose(z, (np.tanh(x * 2) ** 2).sum(0), rtol=1e-5)
assert devices.kernels() == 2, devices.kernels()
print(composite.stats()["kernel_launches"], explained.details["target"])
assert "tvm" not in sys.modules
"""


def test_a_library_of_both_devices(devices: Devices, tmp_path: Path, run_python: RunPython) -> None:
    source = tmp_path / "ops.py"
    source.write_text(_SOURCE)
    targets = ["cpu", "cuda:sm_80"]
    folder = composite.build(source, tmp_path / "lib", signatures={"two": [_CALL]}, targets=targets)
    kernels = manifest.read(folder)["kernels"]
    assert [kernel["name"][-5:] == "sm_80" for kernel in kernels] == [False, True]
    # The process has no compiler for GPUs, and no place that has kernels.
    environment = {
        "COMPOSITE_JIT": "0",
        "COMPOSITE_NVRTC": "/nowhere",
        "COMPOSITE_CUDA_DRIVER": str(build()),
    }
    done = run_python(_USE.format(devices=str(build()), folder=str(folder)), env=environment)
    assert done.stdout.split() == ["1", "cuda-sm_80"]


def test_a_level_that_is_not_here(devices: Devices, tmp_path: Path) -> None:
    source = tmp_path / "ops.py"
    source.write_text(_SOURCE)
    with pytest.raises(ValueError, match=r"two.*: build it where there is a GPU of cuda:sm_90"):
        composite.build(
            source, tmp_path / "lib", signatures={"two": [_CALL]}, targets=["cuda:sm_90"]
        )


def test_what_is_no_level(tmp_path: Path) -> None:
    source = tmp_path / "ops.py"
    source.write_text(_SOURCE)
    with pytest.raises(ValueError, match="'cuda:sm_9x' is no level of GPUs"):
        composite.build(source, tmp_path / "lib", targets=["cuda:sm_9x"])
    with pytest.raises(ValueError, match="need a GPU of level sm_80"):
        composite.build(source, tmp_path / "lib", targets=["cuda:sm_75"])
