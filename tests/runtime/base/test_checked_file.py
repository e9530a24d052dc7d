"""A library that was mapped by a descriptor names nothing that others could open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_CODE = """
import ctypes
import errno
import os
import tempfile

import tensorflow as tf

import composite
from tests.composite.dense_ops import dense


class Library(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]


names = []


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Library), ctypes.c_size_t, ctypes.c_void_p)
def visit(library, size, data):
    if library.contents.name.startswith(b"/proc/self/fd/"):
        names.append(library.contents.name)
    return 0


for dtype in (tf.float32, tf.float64):  # a kernel each, in a library of its own
    inputs = [tf.ones(shape, dtype) for shape in ([3, 8], [4, 8], [4])]
    dense(*inputs)
    composite.wait()
    assert composite.explain(dense, *inputs).path == "kernel"
    # Takes the numbers that are free, with files that are shorter than a page.
    files = [tempfile.TemporaryFile() for _ in range(40)]
ctypes.CDLL(None).dl_iterate_phdr(visit, None)
assert names, "no library was mapped by a descriptor"
for name in names:
    try:
        os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        assert error.errno == errno.ENXIO, (name, error)
    else:
        raise AssertionError(f"{name} is {os.readlink(name)}")
numbers = {name.rsplit(b"/", 1)[1] for name in names}
assert len(numbers) < len(names), names
"""


def test_names_of_libraries_cannot_be_opened(run_python: Callable[..., Any]) -> None:
    run_python(_CODE)
