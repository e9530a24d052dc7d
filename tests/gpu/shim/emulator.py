"""Runs CUDA kernels without a GPU: g++ compiles their sources over threads.h, one call for many."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from composite.compiler.tvm.cuda.build import CudaKernel
from composite.compiler.tvm.cuda.launch import ALIGNMENT, Argument, Launch
from composite.compiler.tvm.cuda.preamble import PREAMBLE
from composite.compiler.tvm.ir import dims
from tests.gpu.compiled import FLAGS, SHIM, over_headers
from tests.gpu.shim import ring_functions

# What a kernel calls whose threads are not independent of each other.
_MEETING = ("partner", "warp", "begin", "load", "mma", "meet", "wgmma")
_MEETS = ("__syncthreads", *(f"composite_{n}" for n in _MEETING))
_GUARD = 64
MULTIPROCESSORS = 2
_TOGETHER = 4
"""Few blocks, so that small grids go round as well."""


def functions_of(kernel: CudaKernel) -> str:
    """The source of a kernel without what all of them begin with."""
    assert kernel.source.startswith(PREAMBLE)
    return kernel.source.removeprefix(PREAMBLE)


class Emulator:
    """Kernels that run on threads of the host; their names must differ."""

    def __init__(
        self, kernels: Sequence[CudaKernel], folder: Path, *, over_ring: bool = False
    ) -> None:
        """`over_ring`: the kernels were written for it, and floats are its elements."""
        texts = ['#include "threads.h"\n', PREAMBLE]
        for kernel in kernels:
            text = functions_of(kernel)
            texts.append(text)
            for launch in kernel.plan.launches:
                (body,) = re.findall(rf"{launch.function}\([^)]*\) {{\n(.*?)\n}}", text, re.DOTALL)
                meets = any(one in body for one in _MEETS)
                texts.append(f"COMPOSITE_LAUNCH({launch.function}, {str(meets).lower()})\n")
        kind = "ring" if over_ring else "kernels"
        source, library = folder / f"{kind}.cc", folder / f"{kind}.so"
        source.write_text("".join(texts))
        flags = over_headers()
        if over_ring:
            (folder / "ring_functions.h").write_text(ring_functions.header("".join(texts)))
            flags = (*FLAGS, "-DCOMPOSITE_RING", f"-I{folder}", f"-I{SHIM}")
        command = ["g++", *flags, "-shared", "-o", str(library), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        self._library = ctypes.CDLL(str(library))

    def run(
        self,
        kernel: CudaKernel,
        arrays: Sequence[np.ndarray],
        in_shapes: Sequence[Sequence[int | str]],
        dtypes: Sequence[Any],
        *,
        reverse: bool = False,
        multiprocessors: int = MULTIPROCESSORS,
    ) -> list[np.ndarray]:
        """Run a kernel; nothing but aligned arguments begins at a multiple of anything."""
        sizes = {
            d: n
            for shape, array in zip(in_shapes, arrays, strict=True)
            for d, n in zip(shape, array.shape, strict=True)
            if isinstance(d, str)
        }
        memory: dict[Argument, np.ndarray] = {}
        for i, array in enumerate(arrays):
            memory[Argument("in", i)] = _placed(array, Argument("in", i) in kernel.plan.aligned)
        for i, (text, dtype) in enumerate(zip(kernel.out_shapes, dtypes, strict=True)):
            shape = [dims.evaluate(d, sizes, int) for d in text.split(",") if d]
            empty = np.full(shape, 77, dtype)
            memory[Argument("out", i)] = _placed(empty, Argument("out", i) in kernel.plan.aligned)
        for i, size in enumerate(kernel.plan.workspaces):
            room = np.full(dims.evaluate(size, sizes, int), 0xFF, np.uint8)
            memory[Argument("work", i)] = _placed(room, True)
        for launch in kernel.plan.launches:
            blocks = launch.blocks(sizes, multiprocessors)
            blocks = min(blocks, multiprocessors * _TOGETHER)
            if blocks:
                self._launch(launch, memory, sizes, blocks, reverse)
        for array in memory.values():
            _check_guards(array)
        return [memory[Argument("out", i)] for i in range(len(dtypes))]

    def _launch(
        self,
        launch: Launch,
        memory: dict[Argument, np.ndarray],
        sizes: dict[str, int],
        blocks: int,
        reverse: bool,
    ) -> None:
        symbols = sorted(sizes, key=lambda name: int(name[1:]))
        values = [
            ctypes.c_int64(sizes[symbols[a.index]])
            if a.kind == "size"
            else ctypes.c_void_p(memory[a].ctypes.data)
            for a in launch.arguments
        ]
        addresses = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        function = getattr(self._library, f"launch_{launch.function}")
        function.restype = ctypes.c_char_p
        flags = (ctypes.c_bool(launch.resident), ctypes.c_bool(reverse))
        wrong = function(addresses, blocks, launch.threads, launch.dynamic, *flags)
        assert wrong is None, f"{launch.function}: {wrong.decode()}"


def _placed(array: np.ndarray, aligned: bool) -> np.ndarray:
    """A copy between guards, one element off any alignment unless it is to be aligned."""
    raw = np.full(array.nbytes + 2 * _GUARD + ALIGNMENT * 4, 0xA5, np.uint8)
    start = (-raw.ctypes.data) % ALIGNMENT + _GUARD + (0 if aligned else array.itemsize)
    view = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def _check_guards(view: np.ndarray) -> None:
    raw = view
    while isinstance(raw.base, np.ndarray):
        raw = raw.base
    start = view.ctypes.data - raw.ctypes.data
    assert (raw[:start] == 0xA5).all(), "written in front of an array"
    assert (raw[start + view.nbytes :] == 0xA5).all(), "written behind an array"


def as_float64(array: Any) -> np.ndarray:
    """Elements to compare."""
    array = np.asarray(array)
    wide = array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16
    return array.astype(np.float64) if wide else array
