"""A host for kernels in a few lines of ctypes: no TVM and no TF runtime between test and kernel.

It fills the kernel's pointer slots as the runtime does, with a launch that runs the tasks one
after the other in reverse order, as many as the test says: a kernel must be right for any number,
whichever thread runs which. Tasks that meet at barriers have a thread each.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from composite.compiler import tvm as backend

_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLPack's type codes, by NumPy kind


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _Any(ctypes.Structure):
    _fields_ = (
        ("type_index", ctypes.c_int32),
        ("padding", ctypes.c_int32),
        ("value", ctypes.c_void_p),
    )


class _Env(ctypes.Structure):
    _fields_ = (("sync", ctypes.c_void_p), ("num_task", ctypes.c_int32))


_TASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(_Env), ctypes.c_void_p)
_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, _TASK, ctypes.c_void_p, ctypes.c_int)
_BARRIER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(_Env))
_ALLOC = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_int
)
_FREE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)


class Loaded:
    """A linked kernel that can be called on NumPy arrays."""

    def __init__(self, kernel: backend.Kernel, path: Path, tasks: int) -> None:
        import tvm_ffi

        package = Path(tvm_ffi.__file__).parent
        found = next(package.rglob("libtvm_ffi.so"))
        ctypes.CDLL(str(found), ctypes.RTLD_GLOBAL)
        self.kernel = kernel
        self.tasks = tasks
        self.launches = 0
        self._live: dict[int, Any] = {}
        self._library = ctypes.CDLL(str(path))
        self._meeting = threading.Barrier(tasks)
        self._raised: list[Exception] = []  # by what the kernel calls
        self._slots = (
            _BARRIER(self._noting(lambda *_: self._meeting.wait() * 0, -1)),
            _LAUNCH(self._noting(self._launch, -1)),
            _ALLOC(self._noting(self._alloc, None)),
            _FREE(self._noting(self._free, -1)),
        )
        names = ("ParallelBarrier", "ParallelLaunch", "AllocWorkspace", "FreeWorkspace")
        self._meets = False
        for name, function in zip(names, self._slots, strict=True):
            try:
                slot = ctypes.c_void_p.in_dll(self._library, f"__TVMBackend{name}")
            except ValueError:
                continue  # this kernel needs none
            self._meets |= name == "ParallelBarrier"
            slot.value = ctypes.cast(function, ctypes.c_void_p).value

    def _noting(self, function: Callable[..., Any], failed: Any) -> Callable[..., Any]:
        """What ctypes calls: an exception is kept for `_call`, and the kernel is told `failed`."""

        def noting(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except Exception as error:  # noqa: BLE001 - ctypes would print it and return anything
                self._raised.append(error)
                return failed

        return noting

    def _launch(self, task: Any, data: int, _: int) -> int:
        self.launches += 1
        env = _Env(None, self.tasks)
        if self._meets:
            with ThreadPoolExecutor(self.tasks) as pool:
                run = lambda i: task(i, ctypes.byref(env), data)  # noqa: E731
                return -1 if any(pool.map(run, range(self.tasks))) else 0
        for i in reversed(range(self.tasks)):
            if task(i, ctypes.byref(env), data):
                return -1
        return 0

    def _alloc(self, _type: int, _id: int, size: int, _code: int, _bits: int) -> int:
        memory = np.full(size + 64, 0xFF, np.uint8)  # NaN: what is read must have been written
        address = int(memory.ctypes.data) + 4  # and no alignment may be assumed
        self._live[address] = memory
        return address

    def _free(self, _type: int, _id: int, address: int) -> int:
        del self._live[address]
        return 0

    def __call__(
        self,
        arrays: Sequence[np.ndarray],
        shapes: Sequence[tuple[int, ...]],
        dtypes: Sequence[np.dtype],
    ) -> list[np.ndarray]:
        """Run the kernel; every array, in and out, starts one element off any alignment."""
        inputs = [_misaligned(a) for a in arrays]
        outputs = [_misaligned(np.full(s, 77, d)) for s, d in zip(shapes, dtypes, strict=True)]
        self.write(inputs, outputs)
        return outputs

    def write(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Run the kernel on arrays where they lie."""
        self._call(self.kernel.name, [*inputs, *outputs, *self._pack(inputs)])

    def _pack(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Make what the kernel takes after its outputs."""
        made = []
        for i, packed in enumerate(self.kernel.packed):
            room = _misaligned(np.full(packed.elements, np.nan, packed.dtype))
            self._call(f"{self.kernel.name}_pack{i}", [inputs[packed.source], room])
            made.append(room)
        return made

    def _call(self, name: str, arrays: Sequence[np.ndarray]) -> None:
        tensors = [_describe(a) for a in arrays]
        arguments = (_Any * len(tensors))()
        for slot, tensor in zip(arguments, tensors, strict=True):
            slot.type_index = 7
            slot.value = ctypes.cast(ctypes.pointer(tensor), ctypes.c_void_p)
        function = getattr(self._library, f"__tvm_ffi_{name}")
        status = function(None, arguments, len(tensors), ctypes.byref(_Any()))
        assert not self._raised, self._raised
        assert status == 0, f"{name} refused its arguments"
        assert not self._live, "workspace was not given back"


def _misaligned(array: np.ndarray) -> np.ndarray:
    raw = np.zeros(array.nbytes + 128, np.uint8)
    start = (-raw.ctypes.data) % 64 + array.itemsize
    view = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def _describe(array: np.ndarray) -> _DLTensor:
    code = 4 if array.dtype == ml_dtypes.bfloat16 else _CODES[array.dtype.kind]
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    return _DLTensor(
        array.ctypes.data, 1, 0, array.ndim, code, array.itemsize * 8, 1, shape, None, 0
    )
