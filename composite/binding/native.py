"""The binding of libcomposite_runtime.so, the C++ op library.

`call(name, request)` is all of it: one C function takes a serialized proto and answers with one, or
with a status that becomes the `tf.errors` exception of the same code. What the functions mean is
written in composite/runtime/c_api.h. Nothing of TensorFlow's Python internals is used here.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from composite.binding import dlpack_exports, tensorflow_version

LIBRARY = "libcomposite_runtime.so"
_NOT_YET = 256  # COMPOSITE_NOT_YET of c_api.h
# What the runtime's own status carries, which TensorFlow hands on where a node raises it.
_NOT_YET_PAYLOAD = "composite/not_yet"
_BUILD = "cmake -S composite/runtime -B build/runtime && cmake --build build/runtime"


class _Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


_lock = threading.Lock()
_loaded: list[ctypes.CDLL] = []  # the library, once it is there


def runtime_folder() -> Path:
    """The folder that holds the runtime library, found the way package data is."""
    return Path(str(resources.files("composite").joinpath("runtime")))


def library_path() -> Path:
    """Where the runtime library is. ImportError, with the way to build it, when it is not there."""
    path = runtime_folder() / LIBRARY
    if not path.is_file():
        raise ImportError(
            f"{LIBRARY} is not in {path.parent}: in a source checkout build it with `make build` "
            f"(or `{_BUILD}`); elsewhere reinstall tf-composite"
        )
    return path


def library() -> ctypes.CDLL:
    """The loaded runtime library. ImportError when it is missing or made for another TensorFlow."""
    if not _loaded:
        with _lock:
            if not _loaded:
                _loaded.append(_load())
    return _loaded[0]


def python_functions(name: str, *arguments: Any) -> tuple[Callable[..., Any], ...]:
    """Functions that take Python's arguments themselves, as the C function `name` makes them."""
    library()
    make = getattr(ctypes.PyDLL(str(library_path())), name)
    make.restype = ctypes.py_object
    made: tuple[Callable[..., Any], ...] = make(*arguments)
    return made


def _load() -> ctypes.CDLL:
    import numpy as np
    import tensorflow as tf  # maps libtensorflow_framework, which the library is linked against

    path = library_path()
    check_stamp(path.with_name("build_info.json"), str(tf.__version__))
    loaded = ctypes.CDLL(str(path))
    loaded.composite_free.argtypes = [ctypes.POINTER(_Buffer)]
    loaded.composite_free.restype = None
    loaded.composite_python_array_type.argtypes = [ctypes.py_object]
    loaded.composite_python_array_type.restype = None
    loaded.composite_python_array_type(np.ndarray)
    dlpack_exports.watch(ctypes.PyDLL(str(path)).composite_python_note_export)
    return loaded


def check_stamp(stamp: Path, tensorflow: str) -> None:
    """Compares the library's TensorFlow version with the running one, before any dlopen.

    A library of another minor does not load (absl's inline namespace is in every symbol), and the
    linker's own message would be about a mangled name.
    """
    try:
        built_for = tensorflow_version.built_for(stamp)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImportError(
            f"{stamp} does not say which TensorFlow {LIBRARY} was built for ({error}): build it "
            f"again with `make build`"
        ) from error
    if not tensorflow_version.same_minor(built_for, tensorflow):
        raise ImportError(
            f"{LIBRARY} was built for TensorFlow {built_for}, but {tensorflow} is running: build "
            f"it again with `make build`, or install the wheel for {tensorflow}"
        )


def _function(name: str) -> Any:
    function = getattr(library(), name)
    if function.argtypes is None:
        function.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(_Buffer)]
        function.restype = ctypes.c_int
    return function


def call(name: str, request: bytes | Any = b"") -> bytes:
    """Calls the C function `name`; `request` is a proto or its bytes. Returns the reply's bytes.

    The GIL is released meanwhile. Raises the `tf.errors` class of the status, with its message.
    """
    data = request if isinstance(request, bytes) else request.SerializeToString(deterministic=True)
    return invoke(_function(name), data, len(data))


def invoke(function: Any, *arguments: Any) -> bytes:
    """Calls a C function that takes `arguments` and a reply. Returns and raises as `call`."""
    reply = _Buffer()
    code = function(*arguments, ctypes.byref(reply))
    try:
        content = ctypes.string_at(reply.data, reply.size) if reply.data else b""
    finally:
        library().composite_free(ctypes.byref(reply))
    if code:
        raise error(code, content.decode("utf-8", errors="replace"))
    return content


def error(code: int, message: str) -> Exception:
    """The `tf.errors` exception for the code of a reply: an absl status code, maybe a not-yet."""
    import tensorflow as tf

    flags, status = divmod(code, _NOT_YET)
    if flags:
        return not_yet(message)
    kind = tf.compat.v1.errors.exception_type_from_error_code(status)
    exception: Exception = kind(None, None, message)
    return exception


def not_yet(message: str) -> Exception:
    """The exception of an expansion that lacks only a fact; see `is_not_yet`."""
    import tensorflow as tf

    return tf.errors.FailedPreconditionError(None, None, message, {_NOT_YET_PAYLOAD: b""})


def is_not_yet(exception: BaseException) -> bool:
    """Whether an expansion failed only because a fact (a dim, a constant) is not known so far."""
    import tensorflow as tf

    return (
        isinstance(exception, tf.errors.FailedPreconditionError)
        and _NOT_YET_PAYLOAD in exception.experimental_payloads
    )
