"""The Python module of a built library: a function for each op, with signature and docstring."""

from __future__ import annotations

import re
from collections.abc import Sequence

from composite.compiler.emit.library import LibraryOp
from composite.compiler.emit.literals import literal, parameter

_HEAD = '''\
"""The ops of the library "{name}". Generated; do not edit."""

from pathlib import Path

{imports}import composite

library = composite.load(Path(__file__).resolve().parent)

__all__ = {names}
'''


def wrapper(name: str, ops: Sequence[LibraryOp]) -> str:
    """The source of <name>.py, which loads the folder that it lies in."""
    uses_tf = any("tf." in literal(a.default) for op in ops for a in op.schema.attrs)
    parts = [
        _HEAD.format(
            name=name,
            imports="import tensorflow as tf\n\n" if uses_tf else "",
            names=[op.python_name for op in ops],
        )
    ]
    return "\n\n".join([*parts, *map(_function, ops)])


def _function(op: LibraryOp) -> str:
    inputs = [arg.name for arg in op.schema.inputs]
    attrs = [parameter(attr) for attr in op.schema.attrs]
    passed = [*inputs, *(f"{attr.name}={attr.name}" for attr in op.schema.attrs), "name=name"]
    return (
        f"def {op.python_name}({', '.join([*inputs, '*', *attrs, 'name=None'])}):\n"
        f"    {docstring(op.doc)}\n"
        f"    return library.{op.python_name}({', '.join(passed)})\n"
    )


def docstring(doc: str) -> str:
    """A docstring literal, indented by four: what a user wrote may hold quotes and backslashes."""
    lines = doc.strip().splitlines() or ["No description."]
    text = "\n".join([lines[0], *(f"    {line}".rstrip() for line in lines[1:])])
    text = re.sub(r'"(?="|$)', r'\\"', text.replace("\\", "\\\\"))
    return f'"""{text}\n    """' if len(lines) > 1 else f'"""{text}"""'
