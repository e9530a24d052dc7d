"""Variables that a body changes: what of it a backward must not run again.

A backward computes some of the forward again. What a variable held before the body changed it is
gone by then, and a change would be made twice.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tensorflow.core.framework import types_pb2

from composite.compiler.node_place import of_node
from composite.ops import call, functions

_READS = frozenset(
    {
        "ReadVariableOp",
        "ResourceGather",
        "ResourceGatherNd",
        "VariableShape",
        "VarIsInitializedOp",
        "LookupTableFindV2",
        "LookupTableSizeV2",
    }
)


class Gone(LookupError):  # noqa: N818 - says what is the case
    """The gradient needs a variable as it was."""


def require(op_name: str, backward: Any, differentiated: Any, forward: Collection[str]) -> None:
    """Raises Gone where `backward`, a part of the graph `differentiated`, needs what is gone.

    `forward` names the nodes of the body in both.
    """
    nodes = [
        *differentiated.node,
        *(n for f in differentiated.library.function for n in f.node_def),
    ]
    if not any(_takes_resource(node) and node.op not in _READS for node in nodes):
        return
    for node in backward.node:
        if node.name in forward and (_takes_resource(node) or _runs_stateful_functions(node)):
            place = of_node(node)
            raise Gone(
                f"{op_name} has no gradient, since its body changes a variable, and the gradient "
                f"would run {node.op}{place and f' at {place}'} again after that: read the "
                f"variable outside and pass what it holds, or give {op_name} a gradient with "
                "@op.gradient"
            )


def _takes_resource(node: Any) -> bool:
    definition = call.op_def(node.op)
    return bool(
        definition is not None
        and definition.is_stateful
        and any(arg.type == types_pb2.DT_RESOURCE for arg in definition.input_arg)
    )


def _runs_stateful_functions(node: Any) -> bool:
    definition = call.op_def(node.op)
    return bool(
        definition is not None
        and definition.is_stateful
        and any(map(functions.named_by, node.attr.values()))
    )
