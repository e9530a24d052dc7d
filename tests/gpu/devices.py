"""Two GPUs made of threads, which TensorFlow takes for real ones.

`build` compiles device/*.c, once for each state of the sources. `load` gives this process the
devices, for good: tests do so in processes of their own, see test_on_device.py.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf
from tensorflow.python.framework import load_library

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(Path(__file__).with_name("device").glob("*.[ch]"))
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-shared", "-fPIC"]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]

GPU = "/GPU:0"
OTHER_GPU = "/GPU:1"


def build() -> Path:
    """The library of the devices. Several processes may build it at once."""
    state = hashlib.sha256(f"{FLAGS} {tf.__version__}".encode())
    for source in SOURCES:
        state.update(source.read_bytes())
    library = ROOT / "build" / "gpu" / f"libtest_gpu_{state.hexdigest()[:16]}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        mine = library.with_suffix(f".{os.getpid()}")
        sources = [source for source in SOURCES if source.suffix == ".c"]
        include = ["-isystem", tf.sysconfig.get_include()]
        link = [
            f"-L{tf.sysconfig.get_lib()}",
            "-l:libtensorflow_framework.so.2",
            "-lm",
            "-lpthread",
        ]
        command = ["cc", *FLAGS, *WARNINGS, *include, *sources, *link, "-o", mine]
        subprocess.run(command, check=True)
        mine.rename(library)
    return library


class Devices:
    """The devices of this process."""

    def __init__(self, library: Path) -> None:
        load_library.load_pluggable_device_library(str(library))
        self._library = ctypes.CDLL(str(library))
        self._library.CountLaunches.restype = ctypes.c_long
        self._library.TakeMemory.restype = ctypes.c_size_t
        self._library.TakeMemory.argtypes = [ctypes.c_int, ctypes.c_size_t]

    def launches(self, op: str, device: int = 0) -> int:
        """How many kernels of an op a device was given so far."""
        count = int(self._library.CountLaunches(op.encode(), device))
        assert count >= 0, f"the devices have no kernel of {op}"
        return count

    def memory(self, size: int) -> int:
        """The address of new memory of the first device."""
        return int(self._library.TakeMemory(0, size))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no stream begin a kernel meanwhile."""
        self._library.HoldKernels(True)
        try:
            yield
        finally:
            self._library.HoldKernels(False)
