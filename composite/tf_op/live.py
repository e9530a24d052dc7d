"""Objects of TVM that live in this process: what they are, and those that can be files as files.

Who has one has imported TVM; nothing here does.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from composite.binding.log import logger
from composite.kernels import cache


class Object(NamedTuple):
    """A function or a module by its handle.

    Attributes:
        handle: of the object, which the caller holds until it is loaded.
        serial: whether it takes one call at a time.
        returns: whether functions return their outputs.
    """

    handle: int
    serial: bool
    returns: bool


def exported(source: Any) -> Path | Object:
    """The file that an object was exported to, or the object. TypeError if it is none of TVM's."""
    if hasattr(source, "export_library"):  # what tvm.compile returns, or a module
        try:
            return _export(source)
        except (OSError, RuntimeError, ValueError) as error:
            logger.info("%r is not exported (%s): it serves this process alone", source, error)
            source = source if _is_tvm(source, "Module") else source.jit()
    module = getattr(source, "module", source)
    if not _is_tvm(module, "Module"):
        raise TypeError(
            f"{source!r} is no library: give a path, what tvm.compile returned, a "
            "tvm.runtime.Module or a relax.VirtualMachine; composite.tf_op.function takes a single "
            "function"
        )
    is_machine = module is not source  # a relax.VirtualMachine, which has the registers of one call
    return Object(module.__chandle__(), is_machine, is_machine)


def function(packed: Any, *, returns: bool) -> Object:
    """A function object. TypeError if it is none."""
    if not _is_tvm(packed, "Function"):
        raise TypeError(
            f"{packed!r} is no function of TVM: tvm_ffi.convert makes one of a Python function"
        )
    return Object(packed.__chandle__(), True, returns)


def _is_tvm(source: Any, kind: str) -> bool:
    tvm_ffi = sys.modules.get("tvm_ffi")
    return tvm_ffi is not None and isinstance(source, getattr(tvm_ffi, kind))


def _export(executable: Any) -> Path:
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        path = Path(folder) / "library.so"
        executable.export_library(str(path))
        library = path.read_bytes()
    key = hashlib.sha256(library).hexdigest()
    return cache.open_default().store(key, b"", library)
