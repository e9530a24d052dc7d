"""Which nodes take a handle that a function is given: of a variable, a table, another resource.

The functions that it calls, its branches and its loops are looked into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from composite.compiler import op_traits
from composite.ops import call, functions

VARIABLE_READS = frozenset(
    {
        *("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"),
        *("VarIsInitializedOp", "DisableCopyOnRead"),
    }
)
TABLE_READS = frozenset({"LookupTableFindV2", "LookupTableSizeV2", "LookupTableExportV2"})
READS = VARIABLE_READS | TABLE_READS

_TABLE_OPS = ("LookupTable", "InitializeTable")  # begin their names
_COPIES = frozenset(
    {
        *("Identity", "IdentityN", "Switch", "_SwitchN", "Merge"),
        *("Enter", "NextIteration", "Exit"),
    }
)


def is_of_tables(op: str) -> bool:
    """Whether an op is for tables alone."""
    return op.startswith(_TABLE_OPS)


def takers(function: str, handle: str, library: Mapping[str, Any]) -> list[Any]:
    """The nodes that take a handle and do not merely pass it on.

    `handle` is an argument of a function of `library`, or the output of a node in it, as the
    FunctionDef names it.
    """
    found: list[Any] = []
    places = [(function, handle)]
    for name, tensor in places:  # grows meanwhile
        for node in library[name].node_def:
            if tensor not in node.input:
                continue
            passed = _arguments(node, tensor, library)
            if not passed and node.op not in _COPIES:
                inside = (x for f in functions.called_by(node, library) for x in _all(f, library))
                found += [node, *inside]
                continue
            passed += [(name, output) for output in handles_of(node, library)]
            places += [place for place in passed if place not in places]
    return found


def handles_of(node: Any, library: Mapping[str, Any]) -> list[str]:
    """The outputs of a node that are handles."""
    signatures = {name: function.signature for name, function in library.items()}
    definition = signatures.get(node.op) or call.op_def(node.op)
    dtypes = [dtype for arg in definition.output_arg for dtype in _dtypes(arg, node)]
    names = functions.output_names(node, signatures)
    return [name for name, dtype in zip(names, dtypes, strict=True) if functions.is_handle(dtype)]


def _arguments(node: Any, tensor: str, library: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a tensor is to the functions that a call, a branch or a loop runs."""
    runs = op_traits.of(node.op).runs
    if runs is None and node.op not in library:
        return []
    first = 1 if runs is op_traits.Runs.BRANCH else 0
    return [
        (name, library[name].signature.input_arg[k - first].name)
        for name in functions.called_by(node, library)
        for k, x in enumerate(node.input)
        if x == tensor
    ]


def _all(function: str, library: Mapping[str, Any]) -> list[Any]:
    """The nodes that take any handle, in what an op runs on operands of its own choice."""
    reached = functions.reachable(function, library)
    nodes = [node for name in reached for node in library[name].node_def]
    return [node for node in nodes if _takes_handle(node)]


def _takes_handle(node: Any) -> bool:
    definition = call.op_def(node.op)
    arguments: Sequence[Any] = () if definition is None else definition.input_arg
    return node.op not in _COPIES and any(
        functions.is_handle(dtype) for arg in arguments for dtype in _dtypes(arg, node)
    )


def _dtypes(arg: Any, node: Any) -> list[tf.DType]:
    """Those of the tensors that an argument of an OpDef is."""
    if arg.type_list_attr:
        return [tf.as_dtype(t) for t in node.attr[arg.type_list_attr].list.type]
    one = node.attr[arg.type_attr].type if arg.type_attr else arg.type
    return [tf.as_dtype(one)] * (int(node.attr[arg.number_attr].i) if arg.number_attr else 1)
