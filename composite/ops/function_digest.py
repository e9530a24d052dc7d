"""What functions compute, bare of what means nothing, and as a hash for the keys of kernels.

Left out is how functions and what calls them are called, where they were made, what TensorFlow
notes beside them. Not for the hash that the name of a backward holds, see `function_op.canonical`.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary

from composite.binding.records import serialize
from composite.ops import functions

HERE = "\0"  # stands for the name of function[0], and with a number for that of another


def bare(library: Any) -> Any:
    """function[0] and what it reaches, in the order in which they are reached; others are left out.

    Their names are HERE and a number. Attributes that say nothing of the meaning (where a function
    was made, shapes of its arguments) are dropped; the author's places are kept.
    """
    by_name = {f.signature.name: f for f in library.function}
    order = functions.reachable(library.function[0].signature.name, by_name)
    result = FunctionDefLibrary()
    for name in order:
        function = result.function.add()
        function.CopyFrom(by_name[name])
        _strip(function)
    names = {name: f"{HERE}{i}" if i else HERE for i, name in enumerate(order)}
    functions.rename(result.function, names)
    return result


def digest(library: Any) -> str:
    """The hash of what a library's function[0] computes, 32 hex digits.

    The names of nodes are no part of it, nor are the author's places, which errors tell.
    """
    plain = bare(library)
    for function in plain.function:
        _number_nodes(function)
        for node in function.node_def:
            for noted in ("experimental_debug_info", "experimental_type"):
                node.ClearField(noted)
    return hashlib.sha256(serialize(plain)).hexdigest()[:32]


def _strip(function: FunctionDef) -> None:
    for field in ("attr", "arg_attr"):
        function.ClearField(field)
    function.signature.description = ""
    for node in function.node_def:
        for name in ("_class", "_output_shapes"):
            node.attr.pop(name, None)


def _number_nodes(function: FunctionDef) -> None:
    """Names nodes by their positions. An input is "argument", "node:output:index" or "^node"."""
    names = {node.name: f"{HERE}{i}" for i, node in enumerate(function.node_def)}

    def renamed(reference: str) -> str:
        control = "^" if reference.startswith("^") else ""
        node, colon, rest = reference.removeprefix("^").partition(":")
        return f"{control}{names.get(node, node)}{colon}{rest}"

    for node in function.node_def:
        node.name = names[node.name]
        node.input[:] = map(renamed, node.input)
    for returned in (function.ret, function.control_ret):
        for name, reference in list(returned.items()):
            returned[name] = renamed(reference)
