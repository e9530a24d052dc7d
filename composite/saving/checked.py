"""Functions that fail at the first infinity or NaN that one of their ops computes.

Not for values that are moved or given: a mask of -inf is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from composite.compiler import op_traits
from composite.compiler.node_place import of_node
from composite.ops import call

_CHECKED = (tf.half, tf.bfloat16, tf.float32, tf.float64)  # what CheckNumericsV2 takes


def check(library: Any) -> None:
    """Has each function of a FunctionDefLibrary check what its nodes give, in place.

    Errors name the author's line.
    """
    for function in library.function:
        _check(function)


def _check(function: Any) -> None:
    checked: dict[str, str] = {}  # an output, as a function names it: that of its check
    for node in list(function.node_def):
        for output, dtype in _outputs(node):
            name = f"{node.name}/check_{output.name}"
            given = f"{node.name}:{output.name}:0"
            made = function.node_def.add(
                name=name, op="CheckNumericsV2", input=[given], device=node.device
            )
            made.experimental_debug_info.CopyFrom(node.experimental_debug_info)
            made.attr["T"].type = dtype
            made.attr["message"].s = f"{of_node(node) or node.name}: {node.op}".encode()
            checked[given] = f"{name}:output:0"
    for node in function.node_def:
        if node.op != "CheckNumericsV2":
            node.input[:] = [checked.get(one, one) for one in node.input]
    for result, value in list(function.ret.items()):
        function.ret[result] = checked.get(value, value)


def _outputs(node: Any) -> Iterator[tuple[Any, int]]:
    """The outputs of a node that are checked, and their dtypes: single tensors, computed."""
    definition = call.op_def(node.op)
    if definition is None or not node.input or op_traits.of(node.op).moves_data:
        return
    for output in definition.output_arg:
        if not (output.number_attr or output.type_list_attr):
            dtype = node.attr[output.type_attr].type if output.type_attr else output.type
            if tf.as_dtype(dtype) in _CHECKED:
                yield output, dtype
