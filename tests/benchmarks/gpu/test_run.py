"""`make gpu` with threads of the host as its GPU: what it checks, times, and says."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import bundle, make, numbers, page, probes
from benchmarks.gpu.driver import Driver, DriverError
from benchmarks.gpu.run import Outcome, outcomes
from benchmarks.gpu.works import GpuWork, dense, lstm, normal, recurrent, softmax, works
from composite.compiler.tvm.cuda.build import CudaKernel
from composite.compiler.tvm.cuda.launch import Launch, LaunchPlan
from composite.compiler.tvm.cuda.preamble import PREAMBLE
from composite.compiler.tvm.target import CudaTarget
from tests.gpu.shim.emulator import Emulator

FOLDER = Path(__file__).parent
DENSE: list[list[int | str]] = [["s0", 48], [48, 40], [40]]
ROWS: list[list[int | str]] = [["s0", 96]]
LAYER, draw = recurrent(24, 4)
WORKS = [
    GpuWork(
        "dense", dense, DENSE, "bfloat16", normal(DENSE), checked=[{"s0": 1}], timed={"s0": 70},
        tolerance=0.06, flops=lambda sizes: 2.0 * sizes["s0"] * 48 * 40,
    ),
    GpuWork(
        "lstm", lstm, LAYER, "float32", draw, checked=[{"s0": 1, "s1": 0}],
        timed={"s0": 3, "s1": 4}, tolerance=1e-5,
    ),
    GpuWork("softmax", softmax, ROWS, "float16", normal(ROWS), timed={"s0": 9}, tolerance=1e-3),
]  # fmt: skip


PROBES = CudaKernel(
    name="probe",
    source=PREAMBLE + probes.KERNELS,
    plan=LaunchPlan(
        tuple(Launch(f"probe_{name}", "1", 1, 256, 0, ()) for name in ("copy", "multiply")), (), ()
    ),
    out_shapes=[],
    minimums=[],
    strategy="",
    target=CudaTarget.level("sm_80"),
    knobs=(),
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    library = tmp_path_factory.mktemp("driver") / "fake_cuda.so"
    source = str(FOLDER / "fake_driver.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-w", source, "-o", str(library), "-ldl"], check=True)
    return Driver(str(library))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose machine code is that of the host."""
    path = tmp_path_factory.mktemp("bundle")
    code = str(path / "kernels.so").encode()
    make.make(WORKS, path, ["sm_80"], image=lambda *_: code)
    target = CudaTarget.level("sm_80")
    Emulator([*(make.write(work, target) for work in WORKS), PROBES], path)
    bundle.code_file(path, probes.KEY, "sm_80").write_bytes(code)
    return path


def test_kernels_are_right_and_timed(driver: Driver, folder: Path) -> None:
    found = list(outcomes(WORKS, folder, driver))
    assert [(one.work, one.strategy, one.wrong) for one in found] == [
        ("dense", "tensor_product", ""),
        ("lstm", "tiled_product+recurrence+elementwise", ""),
        ("softmax", "rows", ""),
    ]
    assert all(0 < one.error < one.bound and one.seconds > 0 for one in found)
    assert found[2].bytes == 2 * 9 * 96 * 2
    limits = {"bytes a second": 1e9, "operations a second": 1e12}
    text = page.page({"GPU": driver.name}, limits, found, {"memcheck": "nothing found"})
    assert "| GPU | threads of the host |" in text
    assert "| dense | tensor_product | " in text and "% of products |" in text
    assert "% of memory |" in text


def test_what_is_not_timed_is_checked_at_its_small_sizes(driver: Driver, folder: Path) -> None:
    times = [call.timed for call in bundle.load(folder, "sm_80")[0][0].calls]
    assert times == [False, True]
    (folder / "dense.1.npz").rename(folder / "away")
    try:
        found = list(outcomes(WORKS, folder, driver, timed=False))
    finally:
        (folder / "away").rename(folder / "dense.1.npz")
    assert [(one.wrong, one.seconds) for one in found] == [("", 0.0)] * len(WORKS)


def test_a_wrong_result_is_said_and_not_timed(driver: Driver, folder: Path) -> None:
    exact = bundle.load_exact(folder, "softmax", 0)
    try:
        bundle.save_exact(folder, "softmax", 0, [(p, v + 1.0) for p, v in exact])
        *_, wrong = outcomes(WORKS, folder, driver)
    finally:
        bundle.save_exact(folder, "softmax", 0, exact)
    assert wrong.wrong.startswith("an error of") and wrong.seconds == 0
    assert f"**{wrong.wrong}**" in page.page({}, {}, [wrong], {})


def test_a_driver_that_fails_or_is_missing_says_what(driver: Driver) -> None:
    with pytest.raises(DriverError, match="cuModuleLoadData failed"):
        driver.function(b"/nowhere\0", "none")
    with pytest.raises(DriverError, match="there is no driver"):
        Driver("libnone_of_this_name.so.1")


def test_errors_are_of_what_is_not_alike() -> None:
    exact = np.array([1.0, np.nan, np.inf, 200.0])
    assert numbers.worst(exact, exact) == 0
    assert numbers.worst(np.array([1.0, np.nan, np.inf, 201.0]), exact) == pytest.approx(1 / 200)
    for other in ([np.nan, np.nan, np.inf, 200.0], [1.0, 0.0, np.inf, 200.0]):
        assert numbers.worst(np.array(other), exact) == np.inf
    odd = np.array([1.00390625, -3e38, 3.4e38, np.nan, 1e-40])
    bits = numbers.stored(odd, "bfloat16")
    assert [*numbers.widened(bits, "bfloat16")[:1]] == [1.0]  # halfway, to even
    assert np.isinf(numbers.widened(bits, "bfloat16")[2])
    assert np.isnan(numbers.widened(bits, "bfloat16")[3])


def test_each_work_has_a_name_of_its_own_and_gives_what_its_shapes_say() -> None:
    every = works()
    assert len({one.key for one in every}) == len(every)
    small = [one for one in every if "4096" not in one.name]
    for one in small:
        sizes = one.checked[0] if one.checked else one.timed
        for array, shape in zip(one.inputs(sizes), one.shapes, strict=True):
            assert [*array.shape] == [sizes[d] if isinstance(d, str) else d for d in shape]


def test_what_has_no_kernel_is_listed() -> None:
    text = page.page({}, {}, [Outcome("a loop", "", wrong="no kernel: it loops")], {})
    assert "## Without a kernel" in text and "- a loop: no kernel: it loops" in text


def test_the_limits_of_a_device_are_measured(driver: Driver, folder: Path) -> None:
    limits = probes.measure(driver, folder, size=1 << 16, turns=1)
    assert limits.keys() == {"bytes a second", "operations a second"}
    assert min(limits.values()) > 0


def test_a_machine_without_a_gpu_says_so_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> Driver:
        return Driver("libnone_of_this_name.so.1")

    monkeypatch.setattr(command, "Driver", missing)
    assert command.main([]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("make gpu: nothing to do, for there is no driver")


def test_kernels_that_nothing_here_can_make_are_asked_for(
    driver: Driver,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(command, "Driver", lambda: driver)
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert command.main([]) == 2
    assert "make gpu-bundle" in capsys.readouterr().out
