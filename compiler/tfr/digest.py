"""The digest of a program: what it means, without where and when it was written.

Left out: source locations, names of locals, place, module, documentation. Taken in: the signature,
every node, captured constants, and the digests of the composites it calls, which their nodes carry.

Not for: keys of compiled kernels, which take in attributes, dtypes and versions as well.
"""

from __future__ import annotations

import hashlib
from typing import Any

_ABOUT_THE_SOURCE = ("_place", "_module", "_origin", "_digest")

_FOR_MESSAGES = ("_loc", "_names")

# Hexadecimal digits: 128 bits.
LENGTH = 32


def digest(program: Any) -> str:
    """Return the digest of a tensorflow.FunctionDefLibrary that `serialize` made."""
    bare = type(program)()
    bare.CopyFrom(program)
    for function in bare.function:
        for name in _ABOUT_THE_SOURCE:
            function.attr.pop(name, None)
        for node in function.node_def:
            for name in _FOR_MESSAGES:
                node.attr.pop(name, None)
    _drop_documentation(bare.function[0].signature)
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).hexdigest()[:LENGTH]


def _drop_documentation(signature: Any) -> None:
    for field in ("summary", "description"):
        signature.ClearField(field)
    for described in (*signature.input_arg, *signature.output_arg, *signature.attr):
        described.ClearField("description")
