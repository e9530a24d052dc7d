"""`composite.load`: the ops of a built library, in a process that compiles nothing.

Needs no TVM and no MLIR, and starts no thread unless kernels are to be checked here. Loading runs
native code of the folder, so load only what you would run.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.aot import manifest, own_kernels
from composite.autodiff import gradient
from composite.binding import native
from composite.compiler.emit.registration import program_symbol, status_symbol
from composite.jit import worker
from composite.ops.library import Library
from composite.ops.op import CompositeOp
from composite.ops.registry import OPS
from composite.profiling import statistics
from composite.vectorize import batching

__all__ = ["SPLIT", "Library", "LoadedOp", "Place", "load"]  # the stubs of libraries name Library

# MLIR's own mark between the modules of one file.
SPLIT = "// -----\n"


class Place(NamedTuple):
    """Where an op stands in a built library."""

    folder: Path
    name: str
    position: int


class LoadedOp(CompositeOp):
    """An op of a built library. Its body is there as a program; the Python function is not."""

    def __init__(self, program: FunctionDefLibrary, name: str, doc: str, library: Place) -> None:
        super().__init__(program, name, doc, library.name, OPS)
        self._library = library

    @property
    def library_folder(self) -> Path:
        """The folder that the op was loaded from."""
        return self._library.folder

    @functools.cached_property
    def mlir(self) -> str:
        """The TFR module of the body, as text."""
        text = (self._library.folder / f"{self._library.name}.mlir").read_text(encoding="utf-8")
        return text.split(SPLIT)[self._library.position]


def load(folder: str | os.PathLike[str]) -> Library:
    """Loads a folder that `composite.build` wrote, and registers its ops with their gradients.

    Returns:
        The library. Its ops are attributes with their Python names. Loading it again returns the
        same object.

    Raises:
        FileNotFoundError: if the folder is not a library.
        ImportError: if it was built for another TensorFlow.
        ValueError: if a file is damaged, or an op of the same name has another body here.

    All errors are raised before any code of the folder runs.
    """
    path = Path(folder)
    content = manifest.read(path)
    file = f"lib{content['name']}.so"

    def loaded() -> Library:
        _check_conflicts(path, content)
        programs = _programs(path, content, file)
        unchecked = any(kernel.get("unchecked") for kernel in content["kernels"])
        if unchecked and tf.config.list_physical_devices("GPU"):
            worker.start_for_checks()
        return Library(content["name"], path, _ops(path, content, programs))

    return OPS.library(str(content["files"].get(file)), loaded)


def _check_conflicts(folder: Path, content: dict[str, Any]) -> None:
    for op in content["ops"]:
        here = OPS.current(op["op"])
        if here is not None and here.digest != op["digest"]:
            raise ValueError(
                f"{op['op']} of {folder} has another body than the one defined here at "
                f"{here.place}: build the library again from that source, or rename one of them"
            )


def _programs(folder: Path, content: dict[str, Any], file: str) -> list[FunctionDefLibrary]:
    """Maps the library, which registers itself, and reads its programs."""
    native.library()  # before: the library is linked against it, by name
    descriptor = manifest.open_checked(folder, content, file)
    # By the descriptor that was checked: whatever is put under the name meanwhile is not read. It
    # stays open, since dlopen compares names before it looks at files, and the number must not
    # come again; nor must the name be one that the runtime makes for its own kernels.
    name = f"/proc/self/task/{threading.get_native_id()}/fd/{descriptor}"
    library = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    status = getattr(library, status_symbol(content["name"]))
    status.restype = ctypes.c_char_p
    if message := status().decode():
        raise ValueError(f"the ops of {folder} could not be registered: {message}")
    program = getattr(library, program_symbol(content["name"]))
    program.restype = ctypes.c_void_p
    size = ctypes.c_size_t()
    return [
        FunctionDefLibrary.FromString(
            ctypes.string_at(program(ctypes.c_size_t(i), ctypes.byref(size)), size.value)
        )
        for i in range(len(content["ops"]))
    ]


def _ops(
    folder: Path, content: dict[str, Any], programs: list[FunctionDefLibrary]
) -> dict[str, CompositeOp]:
    OPS.on_new_name(gradient.register)
    OPS.on_new_name(batching.register)
    OPS.on_new_name(statistics.register)
    OPS.on_use_kernel(own_kernels.use)
    ops: dict[str, CompositeOp] = {}
    for index, (facts, program) in enumerate(zip(content["ops"], programs, strict=True)):
        place = Place(folder, content["name"], index)
        op = LoadedOp(program, facts["python_name"], facts["doc"], place)
        if OPS.current(op.op_name) is None:
            OPS.define(op)
        if facts["own_gradient"]:
            reason = (
                f"{op.op_name} was given a gradient of its own in Python ({op.place}), which its "
                f"library does not carry: import that module, or use @op.gradient here"
            )
            OPS.refuse_gradient(op.digest, reason)
        ops[op.__name__] = op
    return ops
