"""Runs the tests of on_device/, each file in a process of its own, which has two GPUs.

The devices stay in a process, and other tests are not about GPUs. So pytest collects these files
only when they are named.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.conftest import ROOT, RunPython
from tests.gpu.devices import build, with_kernels

FILES = sorted(Path(__file__).with_name("on_device").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_on_device(file: Path, run_python: RunPython) -> None:
    build()
    # Before anything is imported: an op that is declared may start the compiler.
    variables = with_kernels() if "with_kernels()" in file.read_text() else {}
    code = f"""
import sys, pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", {str(ROOT)!r}, {str(file)!r}]))
"""
    done = run_python(code, env=variables, check=False, timeout=300)
    if done.returncode != 0:
        pytest.fail(f"status {done.returncode}\n{done.stdout}\n{done.stderr}", pytrace=False)
    assert " passed" in done.stdout


def test_the_host_cannot_read_what_lies_on_a_device(run_python: RunPython) -> None:
    code = f"""
import ctypes
from pathlib import Path
from tests.gpu.devices import Devices
devices = Devices(Path({str(build())!r}))
address = devices.memory(4)
print("it has an address", address != 0, flush=True)
ctypes.string_at(address, 4)
print("and was read")
"""
    done = run_python(code, check=False)
    assert done.stdout == "it has an address True\n"
    assert done.returncode == -signal.SIGSEGV
