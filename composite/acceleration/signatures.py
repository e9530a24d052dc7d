"""The functions behind the signatures of a SavedModel: found, and marked to get regions.

The runtime knows functions that get regions by their names, and a signature is a call of a
function: renamed, it gets regions wherever the model is loaded, and the rest stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from composite.acceleration import comparing
from composite.ops import functions

_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_INFERENCE = "__inference_"  # TensorFlow's loader takes it from a name, and the number at its end


def function_of(meta_graph: Any, signature: str) -> str | None:
    """The function that computes all outputs of a signature; None where its graph does."""
    nodes = {node.name: node for node in meta_graph.graph_def.node}
    outputs = meta_graph.signature_def[signature].outputs.values()
    sources = {output.name.split(":")[0] for output in outputs}
    if len(sources) != 1:
        return None
    node = nodes.get(sources.pop())
    return node.attr["f"].func.name if node is not None and node.op in _CALLS else None


def is_marked(function: str) -> bool:
    """Whether a function gets regions already."""
    return comparing.MARK in function


def mark(meta_graph: Any, marked: Collection[str], deny: Sequence[str] = ()) -> None:
    """Renames functions of a MetaGraphDef so that they, and what they call, get regions.

    The ops of `deny` stay outside of these.
    """
    own = [function.signature.name for function in meta_graph.graph_def.library.function]
    names = {name: _marked(name, deny) if name in marked else name for name in own}
    functions.rename_in_graph(meta_graph.graph_def, names)
    aliases = meta_graph.meta_info_def.function_aliases
    objects = meta_graph.object_graph_def
    for name in sorted(marked):
        if name in aliases:
            aliases[names[name]] = aliases.pop(name)
        if name in objects.concrete_functions:
            objects.concrete_functions[names[name]].CopyFrom(objects.concrete_functions.pop(name))
    for node in objects.nodes:
        kind = node.WhichOneof("kind")
        if kind == "function":
            listed = node.function.concrete_functions
            listed[:] = [names.get(name, name) for name in listed]
        elif kind == "bare_concrete_function":
            bare = node.bare_concrete_function
            name = bare.concrete_function_name
            bare.concrete_function_name = names.get(name, name)


def _marked(name: str, deny: Sequence[str]) -> str:
    begin = _INFERENCE if name.startswith(_INFERENCE) else ""
    return begin + comparing.mark(deny) + name.removeprefix(begin)
