"""CUDA source to machine code, by NVRTC: no driver, no GPU and no CUDA toolkit is needed.

NVRTC is a library of NVIDIA's that the package nvidia-cuda-nvrtc-cu12 brings; COMPOSITE_NVRTC in
the environment names another one. It is looked for when the first source is compiled.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ENVIRONMENT = "COMPOSITE_NVRTC"

_PACKAGE = "nvidia.cuda_nvrtc"
_LIBRARY = "libnvrtc.so.12"
_OPTIONS = (
    "--std=c++17",
    # IEEE arithmetic: nothing contracted but what the source says, subnormal numbers kept.
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--no-source-include",
    "--diag-suppress=550,1046",  # values that nothing reads; constants that are rounded
)
_WHOLE = {"sm_90": "sm_90a"}
"""The name under which NVRTC allows all instructions of a level; every GPU of 9.0 has them."""
_USAGE = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads.*?Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)


class NvrtcError(RuntimeError):
    """NVRTC is missing or refused a source; the message says why."""


@dataclass(frozen=True)
class Usage:
    """What a function takes of a multiprocessor.

    Attributes:
        registers: Registers of a thread.
        spilled: Bytes that a thread stores because registers are short.
        stack: Bytes of a thread's stack: arrays that are indexed by what only the run knows.
        shared: Bytes of a block's shared memory.
    """

    registers: int
    spilled: int
    stack: int
    shared: int


@dataclass(frozen=True)
class Cubin:
    """Machine code for a level of GPUs, and what each function in it takes."""

    level: str
    data: bytes
    usage: dict[str, Usage]


def cubin(source: str, level: str) -> Cubin:
    """Return machine code for a level such as "sm_90"; NvrtcError if NVRTC refuses."""
    whole = _WHOLE.get(level, level)
    options = (*_OPTIONS, f"--gpu-architecture={whole}", "--ptxas-options=-v")
    data, log = _compile(source, options, "CUBIN")
    return Cubin(level, data, _usage(log))


def ptx(source: str, level: str, *, is_portable: bool = True) -> str:
    """Return PTX; NvrtcError if NVRTC refuses.

    The driver of any later GPU compiles it, unless it is not to be portable: then it has the
    instructions that only GPUs of the level have.
    """
    whole = level if is_portable else _WHOLE.get(level, level)
    option = f"--gpu-architecture={whole.replace('sm_', 'compute_')}"
    data, _ = _compile(source, (*_OPTIONS, option), "PTX")
    return data.rstrip(b"\0").decode()


def available() -> bool:
    """Return whether NVRTC is installed."""
    return _path() is not None


def image(source: str, level: str, *, is_portable: bool) -> bytes:
    """Return what the driver loads: a cubin, or PTX where it is to be portable."""
    return ptx(source, level).encode() if is_portable else cubin(source, level).data


def _path() -> Path | None:
    if named := os.environ.get(ENVIRONMENT):
        return Path(named)
    try:
        spec = importlib.util.find_spec(_PACKAGE)
    except ModuleNotFoundError:  # no package of NVIDIA's at all
        return None
    folders = [] if spec is None else [*(spec.submodule_search_locations or ())]
    paths = (Path(folder) / "lib" / _LIBRARY for folder in folders)
    return next((path for path in paths if path.exists()), None)


@cache
def _library() -> ctypes.CDLL:
    path = _path()
    if path is None:
        raise NvrtcError(
            "machine code for GPUs needs NVRTC: pip install nvidia-cuda-nvrtc-cu12==12.9.86"
        )
    library = ctypes.CDLL(str(path))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _compile(source: str, options: Sequence[str], form: str) -> tuple[bytes, str]:
    """Return what NVRTC makes of a source, CUBIN or PTX, and what it says."""
    library, program = _library(), ctypes.c_void_p()
    text = source.encode()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None))
    try:
        listed = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        status = library.nvrtcCompileProgram(program, len(options), listed)
        log = _text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if status != 0:
            raise NvrtcError(f"NVRTC refused the source of a kernel:\n{log}")
        return _text(program, form), log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: ctypes.c_void_p, form: str) -> bytes:
    library, size = _library(), ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{form}Size")(program, ctypes.byref(size)))
    room = ctypes.create_string_buffer(size.value)
    _check(getattr(library, f"nvrtcGet{form}")(program, room))
    return room.raw


def _check(status: int) -> None:
    if status != 0:
        raise NvrtcError(f"NVRTC failed: {_library().nvrtcGetErrorString(status).decode()}")


def _usage(log: str) -> dict[str, Usage]:
    found = {}
    for match in _USAGE.finditer(log):
        shared = re.search(r"(\d+) bytes smem", match["rest"])
        found[match["name"]] = Usage(
            int(match["registers"]),
            int(match["stores"]) + int(match["loads"]),
            int(match["stack"]),
            int(shared[1]) if shared else 0,
        )
    return found
