"""Runs kernels for another kind of CPU on NumPy arrays in an emulator, to check them before use.

Not for: kernels that this machine can run (host.py), and times, which an emulator cannot measure.
"""

from __future__ import annotations

import functools
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from composite.compiler.tvm.link import CROSS_DRIVER

Array = np.ndarray[Any, Any]

EMULATOR = "qemu-aarch64"
_PROGRAM = Path(__file__).with_name("call_kernel.c")
_SYSTEM = "/usr/aarch64-linux-gnu"  # where Debian installs its libraries
_MACHINE = slice(18, 20)  # e_machine in the header of an ELF file
_AARCH64 = (183).to_bytes(2, "little")
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLPack's codes by NumPy's kinds
_BFLOAT = 4
_LONGEST = 600  # of a call, in seconds


def missing() -> str:
    """What has to be installed to make kernels for 64-bit ARM; "" if nothing is missing."""
    found = [name for name in (CROSS_DRIVER, EMULATOR) if shutil.which(name)]
    if len(found) == 2:
        return ""
    return (
        f"kernels for aarch64 are linked by {CROSS_DRIVER} and checked under {EMULATOR}; on Debian "
        "or Ubuntu: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
    )


def is_needed(library: Path) -> bool:
    """Whether the code of a library is for another kind of CPU than this machine's."""
    with library.open("rb") as file:
        return file.read(_MACHINE.stop)[_MACHINE] == _AARCH64


def call(library: Path, kernel: str, arrays: Sequence[Array], tasks: int) -> None:
    """Calls a kernel of a library, which fills its outputs. The arguments are those of host.call.

    Raises:
        IndexError: If the kernel leaves these inputs to the expansion.
        RuntimeError: If the call cannot be made, or the kernel fails or writes outside of its
            arrays.
    """
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        file = Path(folder) / "arguments"
        file.write_bytes(struct.pack("<i", len(arrays)) + b"".join(map(_described, arrays)))
        command = [EMULATOR, "-L", _SYSTEM, str(_program()), str(library), kernel, str(tasks)]
        done = subprocess.run(
            [*command, str(file)], capture_output=True, text=True, check=False, timeout=_LONGEST
        )
        if done.returncode == 1:
            kind, _, message = done.stdout.strip().partition("\n")
            raise (IndexError if kind == "IndexError" else RuntimeError)(message)
        if done.returncode:
            reason = done.stderr.strip() or f"exit status {done.returncode}"
            raise RuntimeError(f"{kernel} cannot be run under {EMULATOR}: {reason}")
        results, at = file.read_bytes(), 0
        for array in arrays:
            own = np.frombuffer(results, array.dtype, array.size, at)
            array[...] = own.reshape(array.shape)
            at += array.nbytes


def _described(array: Array) -> bytes:
    code = _BFLOAT if array.dtype.name == "bfloat16" else _CODES[array.dtype.kind]
    head = struct.pack("<BBi", code, 8 * array.itemsize, array.ndim)
    return head + struct.pack(f"<{array.ndim}q", *array.shape) + array.tobytes()


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="composite-emulated-")


@functools.cache
def _program() -> Path:
    """The program that calls kernels, compiled once per process."""
    program = Path(_folder().name) / "call_kernel"
    command = [CROSS_DRIVER, "-O1", "-rdynamic", str(_PROGRAM), "-o", str(program)]
    done = subprocess.run(
        [*command, "-ldl", "-lpthread"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{CROSS_DRIVER} could not compile {_PROGRAM.name}: {done.stderr}")
    return program
