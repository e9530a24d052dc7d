"""Booleans in TensorFlow's lists and optionals, carried as int8.

TensorFlow's gradient of a loop or a branch keeps conditions in lists and optionals, which the
gradient of that gradient then adds up, and it adds no booleans: "Trying to add unsupported dtype
10". It would leave them alone if it knew what they hold, which the outputs of an imported If or
While do not tell.

Not for: lists that are the gradient's own, which the next differentiation rewrites.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from composite.ops import call, call_arguments

_BOOL, _INT8 = tf.bool.as_datatype_enum, tf.int8.as_datatype_enum

_CARRIERS = ("EmptyTensorList", "TensorList", "Optional")  # as the names of their ops begin

# The attributes of these ops with the dtypes of what is carried.
_CARRIED = ("element_dtype", "Toutput_types", "output_types")


def without_booleans(library: Any) -> None:
    """Changes the functions of a library: booleans are cast on their way in and on their way out.

    No list or optional may be an argument or a result of its first function.
    """
    for function in library.function:
        _rewrite(function)


def _rewrite(function: Any) -> None:
    nodes = list(function.node_def)
    carriers = [
        (node, attr, call.op_def(node.op))
        for node in nodes
        if node.op.startswith(_CARRIERS)
        for attr in _CARRIED
        if attr in node.attr and _BOOL in _dtypes(node.attr[attr])
    ]
    names = {node.name for node in nodes}

    def cast(value: str, of: Any, source: int, target: int) -> str:
        numbered = (f"{of.name}_as_{tf.as_dtype(target).name}_{n}" for n in itertools.count())
        name = next(one for one in numbered if one not in names)
        names.add(name)
        node = function.node_def.add(name=name, op="Cast", input=[value], device=of.device)
        node.attr["SrcT"].type, node.attr["DstT"].type = source, target
        node.experimental_debug_info.CopyFrom(of.experimental_debug_info)
        return f"{name}:y:0"

    outside: dict[str, str] = {}  # what comes out of a carrier: its cast
    for node, attr, definition in carriers:
        for _, name in _booleans(definition.output_arg, attr, node.attr):
            value = f"{node.name}:{name}"
            outside[value] = cast(value, node, _INT8, _BOOL)
    for node in nodes:
        node.input[:] = [outside.get(value, value) for value in node.input]
    for result, value in function.ret.items():
        function.ret[result] = outside.get(value, value)
    for node, attr, definition in carriers:
        for position, _ in _booleans(definition.input_arg, attr, node.attr):
            node.input[position] = cast(node.input[position], node, _BOOL, _INT8)
    for node, attr, _ in carriers:
        _as_int8(node.attr[attr])


def _booleans(arguments: Any, attr: str, attrs: Any) -> Iterator[tuple[int, str]]:
    """The carried booleans among a node's inputs or outputs: position and "argument:k"."""
    position = 0
    for argument in arguments:
        length = call_arguments.length(argument, attrs)
        carried = _dtypes(attrs[attr])
        if argument.type_attr == attr:
            carried *= length
        elif argument.type_list_attr != attr:
            carried = []
        for k, dtype in enumerate(carried):
            if dtype == _BOOL:
                yield position + k, f"{argument.name}:{k}"
        position += length


def _dtypes(attr: Any) -> list[int]:
    return list(attr.list.type) or [attr.type]


def _as_int8(attr: Any) -> None:
    if attr.WhichOneof("value") == "type":
        attr.type = _INT8
    else:
        attr.list.type[:] = [_INT8 if dtype == _BOOL else dtype for dtype in attr.list.type]
