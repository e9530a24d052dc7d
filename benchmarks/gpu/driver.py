"""NVIDIA's driver by ctypes: machine code, memory, launches and times, with nothing else installed.

Not for: several GPUs or several streams.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.gpu.bundle import Call, Step
from benchmarks.gpu.numbers import memory_dtype

Array = npt.NDArray[Any]

LIBRARY = "libcuda.so.1"
_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76  # CUdevice_attribute
_MOST_SHARED = 8  # CUfunction_attribute
_SHARED_OF_ANY = 48 << 10  # bytes that a launch may give without it
_RELAXED = 2  # CUstreamCaptureMode
_POISON = 0xFF
"""What outputs and workspaces hold before a call: NaN, in floats."""


class DriverError(RuntimeError):
    """There is no driver or GPU, or a call of the driver failed; the message says which."""


class Driver:
    """The first GPU of the machine.

    Attributes:
        name: The GPU's.
        version: The newest CUDA that the driver knows.
        level: Its level, such as "sm_90".
        multiprocessors: How many it has.
    """

    def __init__(self, library: str = LIBRARY) -> None:
        """Open the driver; DriverError if there is none, or no GPU."""
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise DriverError(f"there is no driver for NVIDIA's GPUs: {error}") from error
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        name, version = ctypes.create_string_buffer(256), ctypes.c_int()
        self._call("cuDeviceGetName", name, len(name), device)
        self._call("cuDriverGetVersion", ctypes.byref(version))
        self.name = name.value.decode()
        self.version = f"{version.value // 1000}.{version.value % 1000 // 10}"
        counts = [self._attribute(one, device) for one in (_MULTIPROCESSORS, _MAJOR, _MINOR)]
        self.multiprocessors, major, minor = counts
        self.level = f"sm_{major}{minor}"
        self._modules: dict[bytes, ctypes.c_void_p] = {}
        self._stream = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(self._stream), 0)

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status == 0:
            return
        text = ctypes.c_char_p()
        self._library.cuGetErrorString(status, ctypes.byref(text))
        raise DriverError(f"{function} failed: {(text.value or b'?').decode()} ({status})")

    def _attribute(self, number: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def function(self, code: bytes, name: str) -> ctypes.c_void_p:
        """A function of machine code, or of PTX."""
        module = self._modules.get(code)
        if module is None:
            module = ctypes.c_void_p()
            self._call("cuModuleLoadData", ctypes.byref(module), code)
            self._modules[code] = module
        found = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
        return found

    def allocate(self, size: int) -> Memory:
        """Memory of the GPU, which is freed with what is returned."""
        return Memory(self._call, size)

    def upload(self, array: Array) -> Memory:
        """An array in the GPU's memory."""
        memory = self.allocate(array.nbytes)
        if array.nbytes:
            self._call("cuMemcpyHtoD_v2", memory.address, ctypes.c_void_p(array.ctypes.data),
                       ctypes.c_size_t(array.nbytes))  # fmt: skip
        return memory

    def download(self, memory: Memory, shape: Sequence[int], dtype: str) -> Array:
        """What the GPU's memory holds, once all launches have ended."""
        array = np.empty(shape, memory_dtype(dtype))
        self.wait()
        if array.nbytes:
            self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), memory.address,
                       ctypes.c_size_t(array.nbytes))  # fmt: skip
        return array

    def wait(self) -> None:
        """Wait for all launches; DriverError if one failed."""
        self._call("cuCtxSynchronize")

    def launch(self, code: bytes, step: Step, memory: Mapping[str, Memory]) -> None:
        """Launch a function, after those that were launched before."""
        values = [
            ctypes.c_int64(one) if isinstance(one, int) else memory[one].address
            for one in step.arguments
        ]
        addresses = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        blocks = min(step.blocks, self.multiprocessors) if step.meets else step.blocks
        if blocks:
            function = self.function(code, step.function)
            if step.shared > _SHARED_OF_ANY:
                self._call("cuFuncSetAttribute", function, _MOST_SHARED, step.shared)
            sizes = (blocks, 1, 1, step.threads, 1, 1, step.shared)
            if step.meets:
                self._call("cuLaunchCooperativeKernel", function, *sizes, self._stream, addresses)
            else:
                self._call("cuLaunchKernel", function, *sizes, self._stream, addresses, None)

    def place(self, call: Call, inputs: Sequence[Array]) -> dict[str, Memory]:
        """The arrays of a call in the GPU's memory, by their names."""
        memory = {f"in{i}": self.upload(array) for i, array in enumerate(inputs)}
        sizes = {f"work{i}": size for i, size in enumerate(call.workspaces)}
        for i, (shape, dtype) in enumerate(call.outputs):
            sizes[f"out{i}"] = int(np.prod(shape)) * np.dtype(memory_dtype(dtype)).itemsize
        for name, size in sizes.items():
            memory[name] = self.allocate(size)
            if size:
                poison = ctypes.c_ubyte(_POISON), ctypes.c_size_t(size)
                self._call("cuMemsetD8_v2", memory[name].address, *poison)
        return memory

    def together(self, run: Callable[[], None], count: int) -> Callable[[], None]:
        """What has the GPU do so many runs, as a graph: without the host in between."""
        graph, whole = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuStreamBeginCapture_v2", self._stream, _RELAXED)
        try:
            for _ in range(count):
                run()
        finally:
            self._call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        self._call("cuGraphInstantiateWithFlags", ctypes.byref(whole), graph, ctypes.c_uint64(0))
        self._call("cuGraphDestroy", graph)
        return _Graph(self._call, whole, self._stream)

    def milliseconds(self, run: Callable[[], None]) -> float:
        """How long the GPU takes for what a function launches."""
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            self._call("cuEventCreate", ctypes.byref(event), 0)
        self._call("cuEventRecord", events[0], self._stream)
        run()
        self._call("cuEventRecord", events[1], self._stream)
        self._call("cuEventSynchronize", events[1])
        taken = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(taken), *events)
        for event in events:
            self._call("cuEventDestroy_v2", event)
        return taken.value


class _Graph:
    """Launches that were recorded."""

    def __init__(
        self, call: Callable[..., None], graph: ctypes.c_void_p, stream: ctypes.c_void_p
    ) -> None:
        self._call, self._graph, self._stream = call, graph, stream

    def __call__(self) -> None:
        """Launch them."""
        self._call("cuGraphLaunch", self._graph, self._stream)

    def __del__(self) -> None:
        """Give it back."""
        self._call("cuGraphExecDestroy", self._graph)


class Memory:
    """Some of a GPU's memory."""

    def __init__(self, call: Callable[..., None], size: int) -> None:
        self.address = ctypes.c_uint64()
        self._call = call
        call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(max(size, 16)))

    def __del__(self) -> None:
        """Give it back."""
        if self.address.value:
            self._call("cuMemFree_v2", self.address)
