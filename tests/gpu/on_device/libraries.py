"""Libraries with kernels for GPUs: built with and without one, used where nothing can compile."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.aot import building, manifest
from composite.aot.build_options import Options
from composite.kernels import gpu, produce
from tests.conftest import RunPython
from tests.gpu.devices import GPU, Devices, build, with_kernels
from tests.unmeasured import kernels_serve

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
mapped = Path("/proc/self/maps").read_text()
assert {driver!r} in mapped  # what launches the kernels
for name in ("libtvm", "libcudart", "nvrtc", "MLIR", "torch_mlir"):
    assert name not in mapped, [line for line in mapped.splitlines() if name in line]
"""


def test_a_library_of_both_devices(devices: Devices, tmp_path: Path, run_python: RunPython) -> None:
    source = tmp_path / "ops.py"
    source.write_text(_SOURCE)
    targets = ["cpu", "cuda:sm_80"]
    folder = composite.build(source, tmp_path / "lib", signatures={"two": [_CALL]}, targets=targets)
    kernels = manifest.read(folder)["kernels"]
    assert [kernel["name"].rpartition("_")[2] for kernel in kernels][1:] == ["80", "80"]
    assert [kernel["unchecked"] for kernel in kernels] == [False, False, True]
    # The process has no compiler for GPUs, and no place that has kernels.
    environment = {
        "COMPOSITE_JIT": "0",
        "COMPOSITE_NVRTC": "/nowhere",
        "COMPOSITE_CUDA_DRIVER": str(build()),
    }
    done = run_python(
        _USE.format(devices=str(build()), folder=str(folder), driver=build().name), env=environment
    )
    assert done.stdout.split() == ["1", "cuda-sm_80"]


_DIFFERENCE = """
from composite import Composite

@Composite("{name}", inputs=["x: float", "y: float"], outputs=["z: float"])
def difference(x, y):
    return x * 2.0 - y
"""

_PAIR = {"x": ("float32", ("n", 5)), "y": ("float32", ("n", 5))}


def _built_elsewhere(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library with a kernel for the level of the devices, built as if they were not there."""
    source = folder / f"{name.lower()}.py"
    source.write_text(_DIFFERENCE.format(name=name))
    with monkeypatch.context() as patch:
        patch.setattr(gpu, "is_here", lambda device: False)
        options = Options(signatures={"difference": [_PAIR]}, targets=("cuda:sm_80",))
        built = building.run(source, folder / "lib", options)
    kernels = manifest.read(built.folder)["kernels"]
    assert [(kernel["unchecked"], kernel["error"]) for kernel in kernels] == [(True, None)] * 2
    (note,) = built.notes
    assert all(kernel["name"] in note for kernel in kernels)
    assert json.loads((built.folder / "timings.json").read_text())["kernels"] == {}
    return built.folder


def test_a_kernel_is_checked_and_measured_where_it_is_loaded(
    devices: Devices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_python: RunPython
) -> None:
    """The first call asks; TVM and NVRTC are not there. Another process finds it in the cache.

    A later GPU takes the PTX.
    """
    folder = _built_elsewhere(tmp_path, "GpuLibraryElsewhere", monkeypatch)
    use = """
import sys
sys.modules["tvm"] = None  # as where it is not installed
from pathlib import Path
import numpy as np
import tensorflow as tf
import composite
from composite.kernels import produce, verdicts
from tests.gpu.devices import Devices
measures = sys.argv[1] == "first"
if measures:  # its times are of no interest, and its verdict is to be that of the kernel
    times = verdicts.decisions.Times(1.0, 2.0, 0.5, 0.5, 0.5)
    won = verdicts.Decision(60, (verdicts.decisions.Point(60, times, kernel_wins=True),))
    verdicts.decisions.decide = lambda *_: won
else:
    produce.checked = verdicts.measured = None
devices = Devices(Path({devices!r}))
difference = composite.load({folder!r}).difference
x = np.linspace(-1, 1, 60, dtype=np.float32).reshape(12, 5)
def call():
    with tf.device("/GPU:0"):
        np.testing.assert_array_equal(difference(x, tf.ones([12, 5])), x * 2 - 1)
        return composite.explain(difference, tf.constant(x), tf.ones([12, 5]))
call()
assert composite.stats()["kernel_launches"] == 0
assert composite.wait(60)
found = call()
assert devices.kernels() > 0
print(composite.stats()["kernel_launches"], found.kernel.split("_", 2)[2], found.error is not None)
"""
    environment = {"COMPOSITE_NVRTC": "/nowhere", "COMPOSITE_CUDA_DRIVER": str(build())}
    code = use.format(devices=str(build()), folder=str(folder))
    later = environment | {"TEST_GPU_MAJOR": "9"}
    for turn, machine, form in [
        ("first", environment, "sm_80"),
        ("second", environment, "sm_80"),
        ("first", later, "compute_80"),
    ]:
        done = run_python(code, turn, env=machine)
        assert done.stdout.split() == ["1", form, "True"], done.stderr
    off = code.replace("call()\n", "print(call().reason)\nsys.exit()\n", 1)
    done = run_python(off, "second", env=environment | {"COMPOSITE_JIT": "0"})
    assert "built where no such GPU was" in done.stdout


def test_a_kernel_that_is_wrong_where_it_is_loaded(
    devices: Devices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call gets its results, and where there is a compiler it makes another one."""
    made = produce.compile_image

    def swapped(*arguments: Any, **options: Any) -> Any:
        record, image = made(*arguments, **options)
        exchange = {"in0": "in1", "in1": "in0"}
        (launch,) = record.launch_arguments
        launch = " ".join(exchange.get(one, one) for one in launch.split())
        return replace(record, launch_arguments=(launch,)), image

    with monkeypatch.context() as patch:
        patch.setattr(produce, "compile_image", swapped)
        folder = _built_elsewhere(tmp_path, "GpuLibraryWrong", monkeypatch)
    difference = composite.load(folder).difference
    with tf.device(GPU), kernels_serve():
        x = tf.ones([12, 5])
        difference(x, x * 0.5)
        assert composite.wait(60)
        reason = composite.explain(difference, x, x).reason
        difference(x, x * 0.5)
        assert composite.wait(60)
        np.testing.assert_array_equal(difference(x, x * 0.5), np.full([12, 5], 1.5))
        explained = composite.explain(difference, x, x)
    assert explained.path == "kernel"
    assert explained.kernel not in {k["name"] for k in manifest.read(folder)["kernels"]}
    assert "first asks" in reason


def test_a_level_that_is_not_here(devices: Devices, tmp_path: Path) -> None:
    source = tmp_path / "ops.py"
    source.write_text(_SOURCE)
    folder = composite.build(
        source, tmp_path / "lib", signatures={"two": [_CALL]}, targets=["cuda:sm_90"]
    )
    assert [kernel["unchecked"] for kernel in manifest.read(folder)["kernels"]] == [True] * 2
    with tf.device(GPU):  # it may come, but not on this GPU
        explained = composite.explain(composite.load(folder).two, tf.ones([12, 5]), tf.ones([5]))
    assert "sm_90" not in (explained.kernel or "")


def test_what_is_no_level(tmp_path: Path) -> None:
    source = tmp_path / "ops.py"
    source.write_text(_SOURCE)
    with pytest.raises(ValueError, match="'cuda:sm_9x' is no level of GPUs"):
        composite.build(source, tmp_path / "lib", targets=["cuda:sm_9x"])
    with pytest.raises(ValueError, match="need a GPU of level sm_80"):
        composite.build(source, tmp_path / "lib", targets=["cuda:sm_75"])
