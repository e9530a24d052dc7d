"""How threads treat denormals."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def denormals_are_zero() -> Iterator[None]:
    """As TensorFlow's threads have it: the bits of MXCSR in glibc's fenv_t of x86-64."""
    libm, kept, changed = ctypes.CDLL("libm.so.6"), bytearray(32), bytearray(32)
    as_c = ctypes.c_char * 32
    assert libm.fegetenv(as_c.from_buffer(kept)) == 0
    changed[:] = kept
    mxcsr = int.from_bytes(kept[28:32], "little") | 0x8040
    changed[28:32] = mxcsr.to_bytes(4, "little")
    libm.fesetenv(as_c.from_buffer(changed))
    try:
        yield
    finally:
        libm.fesetenv(as_c.from_buffer(kept))
