"""Tells the runtime of tensors whose memory other libraries are given, and may write to.

TensorFlow 2.21 has one function for that, `pywrap_tfe.TFE_ToDlpackCapsule`, which
`tf.experimental.dlpack.to_dlpack` and `__dlpack__` of tensors look up when they are called. It is
private; tests/composite/binding/test_dlpack_exports.py pins it.

Not for: memory of other libraries that TensorFlow was given, of which the buffer itself says so.
"""

from __future__ import annotations

import ctypes
from typing import Any

_NAME = "TFE_ToDlpackCapsule"


def watch(note: Any) -> None:
    """Has a C function be called with each tensor before its memory is given away.

    Of a TensorFlow without such a function nothing is watched.
    """
    from tensorflow.python import pywrap_tfe

    original = getattr(pywrap_tfe, _NAME, None)
    if original is None:
        return
    note.argtypes, note.restype = [ctypes.py_object], None

    def export(tensor: Any) -> Any:
        note(tensor)
        return original(tensor)

    setattr(pywrap_tfe, _NAME, export)
