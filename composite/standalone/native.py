"""libcomposite_standalone.so, which maps the kernels and calls them.

Its functions take Python's arguments themselves (composite/runtime/standalone/python_calls.cc);
ctypes only hands them over, once.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from composite.standalone import arrays

_LIBRARY = Path(__file__).resolve().parents[1] / "runtime" / "libcomposite_standalone.so"


class Functions(NamedTuple):
    """What the library has for Python.

    Attributes:
        open: of a folder: its kernels. FileNotFoundError, ValueError or RuntimeError.
        signatures: of kernels: for each op its name in Python, and its signature as JSON.
        find: of kernels, an op and its attributes as canonical JSON: a callable of arrays.
            LookupError if there is no kernel for these.
    """

    open: Callable[[str], Any]
    signatures: Callable[[Any], tuple[tuple[str, str], ...]]
    find: Callable[[Any, str, str], Callable[..., Any]]


@functools.cache
def functions() -> Functions:
    """The functions of the library. ImportError where it was not built."""
    if not _LIBRARY.is_file():
        raise ImportError(f"{_LIBRARY} is missing: run `make build`, or install the wheel again")
    make = ctypes.PyDLL(str(_LIBRARY)).composite_python_functions
    make.restype = ctypes.py_object
    hooks = (np.ndarray, np.empty, arrays.Dtypes(), arrays.bits, arrays.wrap)
    return Functions(*make(*map(ctypes.py_object, hooks)))
