"""Kernels for 64-bit ARM: calls under an emulator, and the library that such a machine loads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.aot import stated_calls
from composite.compiler import tvm as backend
from composite.compiler.tvm.machine import AARCH64
from composite.compiler.tvm.target import Target
from composite.kernels import emulated, host, produce, verify
from examples.digits import ops

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "without_tensorflow"
ARM = Target.of(AARCH64, 2)
RUN = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
CALL = {
    "input_": ("float32", ("batch", 64)),
    "filter_": ("float32", (10, 64)),
    "bias": ("float32", (10,)),
    "act": "RELU",
}

pytestmark = pytest.mark.slow
needs_emulator = pytest.mark.skipif(bool(emulated.missing()), reason=emulated.missing())


@composite.Composite(
    "EmulatedTaken",
    inputs=["x: T", "i: int32"],
    derived_attrs=["T: {float, bfloat16}"],
    outputs=["y: T"],
)
def taken(x: Any, i: Any) -> Any:
    return tf.gather(x, i) * tf.cast(2.0, x.dtype)


@composite.Composite(
    "EmulatedRows", inputs=["x: T"], derived_attrs=["T: {float, double}"], outputs=["y: T"]
)
def rows(x: Any) -> Any:
    return tf.nn.softmax(x)


@composite.Composite(
    "EmulatedOther", inputs=["x: T"], derived_attrs=["T: {float, double}"], outputs=["y: T"]
)
def other(x: Any) -> Any:
    return tf.nn.softmax(x) * 1.01


def made(op: Any, folder: Path, **call: Any) -> tuple[Any, Any, Path]:
    """A request, its kernel for ARM, and the library of that."""
    (request,) = stated_calls.requests(op, call)
    kernel = produce.compile_object(request, ARM, "arm")
    backend.link(kernel, folder / "arm.so", runtime=None)
    return request, kernel, folder / "arm.so"


@needs_emulator
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_call_fills_the_outputs_and_tells_its_error(dtype: str, tmp_path: Path) -> None:
    *_, library = made(taken, tmp_path, x=(dtype, ("n", 5)), i=("int32", (3,)))
    assert emulated.is_needed(library)
    x = np.arange(20, dtype=np.float32).reshape(4, 5).astype(tf.as_dtype(dtype).as_numpy_dtype)
    y = np.zeros([3, 5], x.dtype)
    host.call(library, "arm", [x, np.array([3, 0, 1], np.int32), y], tasks=2)
    np.testing.assert_array_equal(y, x[[3, 0, 1]] * 2)
    with pytest.raises(host.Refused):
        host.call(library, "arm", [x, np.array([3, 0, 4], np.int32), y])
    with pytest.raises(RuntimeError, match="other cannot be run under qemu-aarch64: .*no such"):
        host.call(library, "other", [x, np.array([3, 0, 1], np.int32), y])


@needs_emulator
def test_kernels_are_checked_as_those_of_this_machine(tmp_path: Path) -> None:
    request, kernel, library = made(rows, tmp_path, x=("float32", (4, "n")))
    accuracy = produce.check(request, kernel, library)
    assert 0 < accuracy.error < 1e-4
    (another,) = stated_calls.requests(other, {"x": ("float32", (4, "n"))})
    with pytest.raises(verify.Mismatch, match="is off by"):
        produce.check(another, kernel, library)


@needs_emulator
def test_a_library_for_both(tmp_path: Path) -> None:
    """The C program of the example prints the numbers of its page on both CPUs."""
    out = composite.build(
        [ops.fused_fully_connected], tmp_path / "library", name="digits_ops",
        signatures={"fused_fully_connected": [CALL]}, targets=["cpu", AARCH64],
    )  # fmt: skip
    build = ROOT / "build" / "aarch64" / "standalone"  # where little is left to compile
    cross = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
             "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++", "-G", "Ninja"]  # fmt: skip
    source = ROOT / "composite" / "runtime" / "standalone"
    run("cmake", "-S", source, "-B", build, *cross)
    run("cmake", "--build", build)
    run("aarch64-linux-gnu-gcc", "-std=c99", EXAMPLE / "call.c", "-o", tmp_path / "call",
        f"-I{ROOT}", f"-L{build}", "-lcomposite_standalone", f"-Wl,-rpath,{build}")  # fmt: skip
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    expected = "".join(line + "\n" for line in re.findall(r"^    ([\d ]+)$", page, re.MULTILINE))
    assert run(*RUN, tmp_path / "call", out) == expected
    here = run(sys.executable, "-m", "examples.without_tensorflow.call", out, cwd=ROOT)
    assert here == expected
    (out / "libdigits_ops_kernels.aarch64.so").write_bytes(b"")
    said = subprocess.run(
        [*RUN, tmp_path / "call", out], capture_output=True, text=True, check=False
    )
    assert (said.returncode, "is not what manifest.json says" in said.stderr) == (1, True)


def run(*command: Any, cwd: Path | None = None) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="checked under qemu-aarch64; .* apt-get install"):
        composite.build([rows], tmp_path / "out", name="rows", targets=[AARCH64])
    assert not (tmp_path / "out").exists()
