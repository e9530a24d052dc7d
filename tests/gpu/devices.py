"""Two GPUs made of threads, which TensorFlow takes for real ones.

`build` compiles device/*.c, `build_nvrtc` nvrtc/*.cc, once for each state of the sources. `Devices`
gives this process the devices, for good: tests do so in processes of their own, see
test_on_device.py. With COMPOSITE_TEST_GPU=real in the environment they use the GPUs that TensorFlow
has (`RealDevices`), as `make gpu` asks where there are any.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import load_library

import composite
from composite.compiler.tvm.target import CudaTarget
from composite.kernels import gpu
from tests.gpu.compiled import NVRTC, compiled, over_headers

SOURCES = sorted(Path(__file__).with_name("device").glob("*.[ch]"))
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-shared", "-fPIC"]
NVRTC_FLAGS = ["-std=c++17", "-O1", "-shared", "-fPIC"]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]

IS_REAL = os.environ.get("COMPOSITE_TEST_GPU") == "real"
GPU = "/GPU:0"
OTHER_GPU = "/GPU:1"


def build() -> Path:
    """The library of the devices, and of their driver."""
    include = ["-isystem", tf.sysconfig.get_include()]
    link = [f"-L{tf.sysconfig.get_lib()}", "-l:libtensorflow_framework.so.2"]
    sources = [source for source in SOURCES if source.suffix == ".c"]
    command = ["cc", *FLAGS, *WARNINGS, *include, *sources, *link, "-lm", "-lpthread", "-ldl"]
    return compiled("libtest_gpu", ".so", SOURCES, command)


def build_nvrtc() -> Path:
    """The library that makes kernels for the devices of CUDA sources."""
    sources = sorted(NVRTC.glob("*.cc"))
    flags = [*NVRTC_FLAGS, f'-DTEST_FLAGS="{" ".join(over_headers())}"', *WARNINGS]
    return compiled("libtest_nvrtc", ".so", sources, ["g++", *flags, *sources])


def with_kernels() -> dict[str, str]:
    """The environment of a process in which kernels of ours run on the devices."""
    if IS_REAL:
        return {}
    return {"COMPOSITE_CUDA_DRIVER": str(build()), "COMPOSITE_NVRTC": str(build_nvrtc())}


def delete_kernels() -> None:
    """Have TensorFlow delete the kernels of eager calls, as those of a function that is gone.

    It waits for no stream.
    """
    context.context().clear_kernel_cache()


class Devices:
    """The devices of this process.

    Attributes:
        level: That of the kernels for them.
    """

    level = "sm_80"

    def __init__(self, library: Path) -> None:
        load_library.load_pluggable_device_library(str(library))
        self._library = ctypes.CDLL(str(library))
        self._library.CountLaunches.restype = ctypes.c_long
        self._library.CountDriverLaunches.restype = ctypes.c_long
        self._library.TakeMemory.restype = ctypes.c_size_t
        self._library.TakeMemory.argtypes = [ctypes.c_int, ctypes.c_size_t]

    def launches(self, op: str, device: int = 0) -> int:
        """How many kernels of an op a device was given so far."""
        count = int(self._library.CountLaunches(op.encode(), device))
        assert count >= 0, f"the devices have no kernel of {op}"
        return count

    def kernels(self, device: int = 0) -> int:
        """How many kernels of ours the driver gave to the streams of a device so far."""
        return int(self._library.CountDriverLaunches(device))

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Let the driver refuse every launch meanwhile."""
        self._library.RefuseLaunches(True)
        try:
            yield
        finally:
            self._library.RefuseLaunches(False)

    @contextmanager
    def allowing(self, blocks: int) -> Iterator[None]:
        """Let the devices run that many blocks at a time meanwhile; else as multiprocessors."""
        self._library.AllowBlocks(blocks)
        try:
            yield
        finally:
            self._library.AllowBlocks(2)

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


class RealDevices(Devices):
    """GPUs that TensorFlow has by itself. What only a test device can do skips the test."""

    def __init__(self) -> None:
        first, *_ = tf.config.list_physical_devices("GPU")
        major, minor = gpu.details(first).get("compute_capability", (8, 0))  # a plugin says nothing
        self.level = CudaTarget.of_device(f"cuda:sm_{major}{minor}").isa

    def launches(self, op: str, device: int = 0) -> int:
        """Nobody counts the kernels of a GPU."""
        del op, device
        _skipped("counts kernels")

    def kernels(self, device: int = 0) -> int:
        """A number that says nothing; see `Counted`."""
        if device >= len(tf.config.list_physical_devices("GPU")):
            pytest.skip("there is one GPU")
        return 0

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """A driver refuses nothing that is right."""
        _skipped("refuses launches")
        yield

    @contextmanager
    def allowing(self, blocks: int) -> Iterator[None]:
        """A GPU has the multiprocessors that it has."""
        del blocks
        _skipped("has other sizes")
        yield

    def memory(self, size: int) -> int:
        """Memory of a GPU is TensorFlow's."""
        del size
        _skipped("gives memory away")

    @contextmanager
    def held(self) -> Iterator[None]:
        """A GPU begins when it is given work."""
        _skipped("waits")
        yield


def _skipped(what: str) -> NoReturn:
    pytest.skip(f"only the test device {what}")


class Counted:
    """What composite.stats and the driver counted since."""

    def __init__(self, devices: Devices, number: int = 0) -> None:
        self._devices, self._number = devices, number
        self._before, self._launches = composite.stats(), devices.kernels(number)

    def __call__(self) -> tuple[int, int, Any]:
        """Calls that a kernel answered, and an expansion; launches that the device was given.

        Of a real GPU nobody counts the last: it equals any number.
        """
        grown = composite.stats() - self._before
        launches = self._devices.kernels(self._number) - self._launches
        launches = mock.ANY if IS_REAL else launches
        assert grown["gpu_kernel_launches"] <= grown["kernel_launches"]
        return grown["gpu_kernel_launches"], grown["gpu_expansion_runs"], launches
