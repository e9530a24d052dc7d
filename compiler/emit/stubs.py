"""The type stubs of a built library."""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.declared_text import argument
from composite.compiler.emit.library import LibraryOp
from composite.compiler.emit.literals import annotation, parameter
from composite.compiler.emit.wrapper import docstring
from composite.compiler.schema import ArgSpec, OpSchema

_HEAD = '''\
"""The ops of the library "{name}". Generated; do not edit."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import tensorflow as tf
from composite.aot.loading import Library

library: Library
'''


def stubs(name: str, ops: Sequence[LibraryOp]) -> str:
    """The text of <name>.pyi."""
    return "\n".join([_HEAD.format(name=name), *map(_function, ops)])


def _function(op: LibraryOp) -> str:
    # Any for a tensor: whatever converts to one is taken, NumPy arrays and variables among it.
    inputs = [f"{arg.name}: {_input(op.schema, arg)}" for arg in op.schema.inputs]
    attrs = [parameter(attr, annotation(attr)) for attr in op.schema.attrs]
    parameters = ", ".join([*inputs, "*", *attrs, "name: str | None = None"])
    return (
        f"def {op.python_name}({parameters}) -> {_result(op.schema.outputs)}:\n"
        f"    {docstring(op.doc)}\n"
    )


def _input(schema: OpSchema, arg: ArgSpec) -> str:
    kind = "Sequence[Any]" if arg.is_list else "Any"
    return f"Annotated[{kind}, {argument(schema, arg)!r}]"


def _result(outputs: Sequence[ArgSpec]) -> str:
    types = ["list[tf.Tensor]" if arg.is_list else "tf.Tensor" for arg in outputs]
    if len(types) == 1:
        return types[0]
    return f"tuple[{', '.join(types)}]" if types else "None"
