"""Calls a compiled kernel on NumPy arrays, outside TensorFlow: for checking it before it is used.

The kernel gets as many threads as its caller says, one by default, and no TVM. Production calls
go through the runtime (tvm_abi.h), whose structs these repeat;
tests/composite/kernels/test_verify.py calls kernels compiled by TVM and by a C compiler this way.
"""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from composite.binding import native

_CPU = 1
_TENSOR_PTR = 7
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_BFLOAT = 4


class _DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Any(ctypes.Structure):
    _fields_ = [
        ("type_index", ctypes.c_int32),
        ("zero_padding", ctypes.c_uint32),
        ("pointer", ctypes.c_void_p),
    ]


class _Group(ctypes.Structure):
    _fields_ = [("sync", ctypes.c_void_p), ("tasks", ctypes.c_int32)]


_TASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(_Group), ctypes.c_void_p)
_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, _TASK, ctypes.c_void_p, ctypes.c_int)
_BARRIER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(_Group))
_ALLOC = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_int
)
_FREE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)

_libc = ctypes.CDLL(None)
_libc.aligned_alloc.restype = ctypes.c_void_p
_libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]


class _Team(threading.local):
    """How many threads the loops of kernels get that this thread calls."""

    size = 1


_team = _Team()
_barriers: dict[int, threading.Barrier] = {}  # of the loops that run, by _Group.sync


@_LAUNCH
def _launch(task: Any, closure: Any, _tasks: int) -> int:
    size = _team.size
    meeting = threading.Barrier(size)
    group = _Group(id(meeting), size)  # the kernel divides its loop by the group's size
    _barriers[id(meeting)] = meeting
    results = [0] * size

    def run(number: int) -> None:
        results[number] = int(task(number, ctypes.byref(group), closure))

    helpers = [threading.Thread(target=run, args=(number,)) for number in range(1, size)]
    for helper in helpers:
        helper.start()
    run(0)
    for helper in helpers:
        helper.join()
    del _barriers[id(meeting)]
    return max(results, key=abs)


@_BARRIER
def _barrier(_task: int, group: Any) -> int:
    _barriers[group.contents.sync].wait()
    return 0


@_ALLOC
def _alloc(_type: int, _device: int, size: int, _code: int, _bits: int) -> int | None:
    block: int | None = _libc.aligned_alloc(64, (size + 63) // 64 * 64)
    return block


@_FREE
def _free(_type: int, _device: int, block: int) -> int:
    _libc.free(block)
    return 0


_SLOTS = {
    "__TVMBackendParallelLaunch": _launch,
    "__TVMBackendParallelBarrier": _barrier,
    "__TVMBackendAllocWorkspace": _alloc,
    "__TVMBackendFreeWorkspace": _free,
}


class PackedArgument(NamedTuple):
    """What a kernel takes after its outputs: made of the input `source`."""

    source: int
    elements: int
    dtype: str


class NativeKernel:
    """A kernel of an open library; call it with inputs and outputs, all NumPy arrays.

    Arrays are row-major and compact; their memory needs the alignment of an element only.
    """

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self._library = library
        self._name = name
        self._function = library[f"__tvm_ffi_{name}"]
        self._function.restype = ctypes.c_int

    def __call__(self, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
        """Fills the outputs. RuntimeError when the kernel refuses its arguments."""
        tensors = [_tensor(array) for array in arrays]
        arguments = (_Any * len(tensors))(
            *(_Any(_TENSOR_PTR, 0, ctypes.addressof(t)) for t in tensors)
        )
        result = _Any()
        if self._function(None, arguments, len(tensors), ctypes.byref(result)):
            raise RuntimeError(f"kernel {self._name} raised an error for its own shape class")

    def packed(
        self, inputs: Sequence[np.ndarray[Any, Any]], arguments: Sequence[PackedArgument]
    ) -> list[np.ndarray[Any, Any]]:
        """Makes what the kernel takes after its outputs, of its inputs."""
        made = []
        for number, argument in enumerate(arguments):
            pack = NativeKernel(self._library, f"{self._name}_pack{number}")
            # Not aligned, and no number where the kernel must not read.
            room = np.full(argument.elements + 1, np.nan, argument.dtype)[1:]
            pack([inputs[argument.source], room])
            made.append(room)
        return made


def _tensor(array: np.ndarray[Any, Any]) -> _Tensor:
    if not array.flags.c_contiguous:
        raise ValueError("kernels take compact row-major arrays")
    kind = "bfloat16" if array.dtype.name == "bfloat16" else array.dtype.kind
    code = _BFLOAT if kind == "bfloat16" else _CODES[kind]
    tensor = _Tensor(
        array.ctypes.data, _CPU, 0, array.ndim, _DType(code, array.dtype.itemsize * 8, 1)
    )
    tensor.shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    return tensor


@contextlib.contextmanager
def opened(path: Path, name: str, threads: int = 1) -> Iterator[NativeKernel]:
    """The kernel `name` of the library at `path`; closed again afterwards, slots and all.

    Its parallel loops run on so many threads.
    """
    native.library()  # before: kernels are linked against it, by name
    library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
    try:
        for slot, function in _SLOTS.items():
            with contextlib.suppress(ValueError):  # a library has the slots that its code uses
                address = ctypes.c_void_p.in_dll(library, slot)
                address.value = ctypes.cast(function, ctypes.c_void_p).value
        _team.size = threads
        yield NativeKernel(library, name)
    finally:
        _team.size = 1
        _ctypes.dlclose(library._handle)
