"""Calls a compiled kernel on NumPy arrays, outside of graphs, to check it before it is used.

The runtime is the kernel's host, as in a graph (composite/runtime/api/host_c_api.h), but each call
has threads of its own, so that every loop runs with exactly the requested number of tasks. Kernels
for another kind of CPU run in an emulator (emulated.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from composite.binding import native
from composite.compiler.tvm.ir.constants import Packed
from composite.kernels import emulated

Array = np.ndarray[Any, Any]


class Argument(ctypes.Structure):
    """composite_array."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class _Call(ctypes.Structure):
    """composite_kernel_call."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("library", ctypes.c_char_p),
        ("kernel", ctypes.c_char_p),
        ("arguments", ctypes.POINTER(Argument)),
        ("count", ctypes.c_size_t),
        ("tasks", ctypes.c_int32),
        ("steps", ctypes.c_int64),
    ]


class Refused(RuntimeError):  # noqa: N818 - no mistake of anybody's
    """The kernel leaves these inputs to the expansion: an index out of range, or a NaN."""


class TooLong(RuntimeError):  # noqa: N818 - as Refused
    """A program over the ring runs more instructions than the caller allows."""


MOST_STEPS = (1 << 63) - 1


def call(
    library: Path, kernel: str, arrays: Sequence[Array], tasks: int = 1, steps: int = MOST_STEPS
) -> None:
    """Calls a kernel of a library, which fills its outputs.

    Args:
        library: The file of the library, which is closed afterwards.
        kernel: The name of the kernel, or of a function that packs a constant for it.
        arrays: Inputs, outputs and packed constants: row-major and compact. Their memory only
            needs to be aligned to an element.
        tasks: The number of tasks of each parallel loop. All of them run at the same time.
        steps: The number of instructions that the loops of a program over the ring may run.

    Raises:
        TooLong: If they run more.
        Refused: If the kernel leaves these inputs to the expansion.
        RuntimeError: If there is no such kernel, it rejects its arguments, or its tasks do not
            reach the same barriers.
    """
    if emulated.is_needed(library):
        try:
            emulated.call(library, kernel, arrays, tasks)
        except IndexError as error:
            raise Refused(str(error)) from error
        return
    arguments = (Argument * len(arrays))(*map(argument, arrays))
    path, name = str(library).encode(), kernel.encode()
    asked = _Call(ctypes.sizeof(_Call), path, name, arguments, len(arrays), tasks, steps)
    try:
        native.invoke(native.library().composite_call_kernel, ctypes.byref(asked))
    except tf.errors.OutOfRangeError as error:
        raise Refused(error.message) from error
    except tf.errors.DeadlineExceededError as error:
        raise TooLong(error.message) from error
    except tf.errors.OpError as error:
        raise RuntimeError(error.message) from error


def pack(  # noqa: PLR0913, PLR0917 - as call, and what it packs
    library: Path,
    kernel: str,
    inputs: Sequence[Array],
    arguments: Sequence[Packed],
    tasks: int = 1,
    steps: int = MOST_STEPS,
) -> list[Array]:
    """Packs the constants that a kernel takes after its outputs. Raises as `call`."""
    made = []
    for number, argument in enumerate(arguments):
        # Unaligned, and filled with NaNs where the kernel must not read.
        room = np.full(argument.elements + 1, np.nan, argument.dtype)[1:]
        call(library, f"{kernel}_pack{number}", [inputs[argument.source], room], tasks, steps)
        made.append(room)
    return made


def argument(array: Array) -> Argument:
    """A view of an array for the runtime; the array must outlive it."""
    if not array.flags.c_contiguous:
        raise ValueError("kernels take compact row-major arrays")
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    dtype = tf.as_dtype(array.dtype).as_datatype_enum
    return Argument(array.ctypes.data, shape, array.ndim, dtype)
