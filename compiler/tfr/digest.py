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
        _drop(function.attr, _ABOUT_THE_SOURCE)
        for node in function.node_def:
            _drop(node.attr, _FOR_MESSAGES)
    _drop_documentation(bare.function[0].signature)
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).hexdigest()[:LENGTH]


def _drop(attributes: Any, names: tuple[str, ...]) -> None:
    for name in names:
        if name in attributes:
            del attributes[name]


def _drop_documentation(signature: Any) -> None:
    for field in ("summary", "description"):
        signature.ClearField(field)
    for described in (*signature.input_arg, *signature.output_arg, *signature.attr):
        described.ClearField("description")
