"""Kernels for GPUs that authors give: machine code, and how it is launched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite, Launch
from composite.compiler.tvm.cuda import nvrtc
from tests.conftest import RunPython
from tests.gpu.devices import GPU, Devices, build, with_kernels

os.environ |= with_kernels()

SOURCE = """
extern "C" __global__ void scale(const float* x, float* y, int n, float by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * by;
}
extern "C" __global__ void twice(const float* x, float* y, int rows, int columns) {
  const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows && j < columns && gridDim.z == 1) y[i * columns + j] = 2 * x[i * columns + j];
}
"""


@Composite("GpuGivenScale", inputs=["x: float"], attrs=["by: float"], outputs=["y: float"])
def scale(x, by):
    return x * by


@Composite("GpuGivenTwice", inputs=["x: float"], outputs=["y: float"])
def twice(x):
    return x + x


CALL = {"x": ("float32", ("n",)), "by": 0.5}
SCALE = Launch("scale", "(n + 255) // 256", 256, ("x", "y", "n", 0.5))
TWICE = Launch(
    "twice",
    grid=("(columns + 15) // 16", "(rows + 7) // 8"),
    block=(16, 8),
    arguments=("x", "y", "rows", "columns"),
    shared=64 << 10,  # more than a launch gives without being told
)


@pytest.fixture(scope="module")
def cubin(devices: Devices, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cubin") / "kernels.cubin"
    path.write_bytes(nvrtc.image(SOURCE, "sm_80", is_portable=False))
    return path


def test_it_runs_on_the_stream(devices: Devices, cubin: Path) -> None:
    scale.use_kernel(cubin, CALL, device="cuda:sm_80", launches=[SCALE])
    assert scale.kernels[0].record.strategy == "yours: scale, kernels.cubin"
    x = np.arange(1000, dtype=np.float32)
    before = composite.stats(), devices.kernels()
    with tf.device(GPU), composite.options(backend="tvm"):
        y = scale(tf.constant(x), by=0.5)
        assert scale(tf.constant(x[:0]), by=0.5).shape == (0,)
        said = composite.explain(scale, tf.constant(x), by=0.5)
    np.testing.assert_array_equal(y, x * 0.5)
    grown = composite.stats() - before[0]
    assert (grown["kernel_launches"], devices.kernels() - before[1]) == (2, 1)
    assert said.kernel == scale.kernels[0].record.name
    assert "yours: scale, kernels.cubin" in said.reason


def test_grids_and_blocks_in_two_dimensions(devices: Devices, cubin: Path) -> None:
    call = {"x": ("float32", ("rows", "columns"))}
    twice.use_kernel(cubin, call, device="cuda:sm_80", launches=[TWICE])
    x = np.arange(37 * 50, dtype=np.float32).reshape(37, 50)
    before = devices.kernels()
    with tf.device(GPU), composite.options(backend="tvm"):
        np.testing.assert_array_equal(twice(tf.constant(x)), 2 * x)
    assert devices.kernels() == before + 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"launches": [Launch("scale", "(n + 255) // 256", 256, ("x", "y", "n", 0.25))]},
         r"refused: it is not what the body computes: output 0 of .* it is .*, and .* is"),
        ({"launches": [Launch("scale", 1, 256, ("x", "y", "n", 0.5))]},
         "refused: it is not what the body computes"),
        ({"launches": [Launch("none", 1, 1)]}, "refused: none: cuModuleGetFunction answers"),
        ({"launches": [Launch("scale", "m", 1)]}, "refused: the grid of scale is 'm'"),
        ({"launches": []}, "launches= says how it is launched: a list of composite.Launch"),
        ({"launches": [Launch("scale", 1, 2000)]}, "2000 is not from 1 to 1024"),
        ({"device": "cuda:sm_90"},
         "cannot be checked on this machine .* where there is a GPU of cuda:sm_90"),
        ({"device": "cuda:sm_75"}, "need a GPU of level sm_80"),
        ({"device": "GPU"}, "device='GPU'"),
    ],
)  # fmt: skip
def test_what_is_refused(cubin: Path, change: dict[str, Any], message: str) -> None:
    before = list(scale.kernels)
    with pytest.raises(ValueError, match=message):
        scale.use_kernel(cubin, CALL, **{"device": "cuda:sm_80", "launches": [SCALE], **change})
    assert scale.kernels == before


_USE = """
import numpy as np
import tensorflow as tf
from pathlib import Path
import composite
from tests.gpu.devices import Devices
devices = Devices(Path({devices!r}))
ops = composite.load({folder!r})
x = np.arange(300, dtype=np.float32)
with tf.device("/GPU:0"), composite.options(backend="tvm"):
    np.testing.assert_array_equal(ops.scale(tf.constant(x), by=0.5), x * 0.5)
print(devices.kernels())
"""


def test_a_library_carries_it(cubin: Path, tmp_path: Path, run_python: RunPython) -> None:
    assert scale.kernels, "an earlier test gave it"
    folder = composite.build([scale], tmp_path / "lib", name="given", targets=["cuda:sm_80"])
    text = (folder / "manifest.json").read_text(encoding="utf-8")
    assert "yours: scale, kernels.cubin" in text
    environment = {"COMPOSITE_JIT": "0", "COMPOSITE_CUDA_DRIVER": str(build())}
    done = run_python(_USE.format(devices=str(build()), folder=str(folder)), env=environment)
    assert done.stdout.split() == ["1"]
