"""What `make gpu` asks of nodes on real GPUs, on test devices that TensorFlow has by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.gpu import integration
from tests.gpu.devices import build, build_nvrtc


@pytest.fixture(autouse=True)
def _devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPOSITE_CUDA_DRIVER", str(build()))
    monkeypatch.setenv("COMPOSITE_NVRTC", str(build_nvrtc()))


def verdict(name: str) -> str:
    return integration.verdict(name, "-p", "tests.gpu.as_tensorflows")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "passed", "skipped"), [("host_memory", 9, 2), ("commands", 4, 1)])
def test_what_needs_no_test_device_runs(name: str, passed: int, skipped: int) -> None:
    assert verdict(name).startswith(f"{passed} passed, {skipped} skipped in")


@pytest.mark.slow
def test_a_failure_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPOSITE_NVRTC", "/nowhere.so")
    said = verdict("commands")
    assert said.startswith("**")
    assert " failed" in said


def test_files_are_there() -> None:
    folder = Path(integration.__file__).parents[2] / "tests" / "gpu" / "on_device"
    assert all((folder / f"{name}.py").is_file() for name in integration.FILES)


def test_a_tensorflow_without_gpus_is_told() -> None:
    assert not integration.available()
