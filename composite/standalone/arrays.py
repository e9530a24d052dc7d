"""Which dtypes NumPy has for a kernel's, and arrays of other libraries made from DLPack capsules.

Not for: reading arrays (composite/runtime/standalone/python_array.cc).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_CPU = 1  # kDLCPU
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLDataTypeCode of NumPy's kinds
_BFLOAT16 = 4 | 16 << 8


def _key(dtype: np.dtype[Any]) -> int:
    return _CODES[dtype.kind] | 8 * dtype.itemsize << 8


class Dtypes(dict[int, "np.dtype[Any]"]):
    """NumPy's dtypes by DLPack's code and, from bit 8 on, bits."""

    def __init__(self) -> None:
        super().__init__({_key(np.dtype(name)): np.dtype(name) for name in "?bBhHiIlLefd"})

    def __missing__(self, key: int) -> np.dtype[Any]:
        """Bfloat16, which is ml_dtypes'."""
        if key != _BFLOAT16:
            raise TypeError(f"NumPy has no dtype of DLPack's code {key & 0xFF}, {key >> 8} bits")
        import ml_dtypes

        return self.setdefault(key, np.dtype(ml_dtypes.bfloat16))


def bits(array: Any) -> tuple[Any, int] | tuple[()]:
    """An array without a buffer as integers over its memory, and what their dtype stands for.

    Empty for what is no array.
    """
    if isinstance(array, np.ndarray | np.generic) and array.dtype.name == "bfloat16":
        return array.view(np.uint16), _BFLOAT16
    return ()


class _Exported:
    """A capsule as libraries take it: an object that gives it when it is asked."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0


def wrap(array: Any, capsule: Any) -> Any:
    """A capsule as an array of the library that `array` is of."""
    return _from_dlpack(array)(_Exported(capsule))


def _from_dlpack(array: Any) -> Callable[[Any], Any]:
    """An array's namespace has from_dlpack, or where it has none, its package."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__().from_dlpack
    kind = type(array)
    package = sys.modules[kind.__module__.partition(".")[0]]
    if not hasattr(package, "from_dlpack"):
        raise TypeError(f"{package.__name__} has no from_dlpack, to make a {kind.__name__} with")
    return package.from_dlpack
