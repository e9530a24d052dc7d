"""The part of a GraphDef that makes some tensors from others that are fed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tensorflow.core.framework.graph_pb2 import GraphDef


def consistent(
    graph_def: Any, fed: set[str], names: Sequence[str], rounded: set[str], jumping: set[str]
) -> tuple[Any, set[str]]:
    """As `needed`; where it matters, nothing is fed beside what it was computed from.

    The gradient of a maximum looks for it among the values that it is of: a kernel rounds those
    otherwise than the ops of the backward, and none would be equal. So for a tensor that a node of
    `jumping` is made of, together with nodes of `rounded` that the tensor itself is made of: it is
    computed again as well.
    """
    producers = {node.name: node.input for node in graph_def.node}
    fed = set(fed)
    while True:
        pruned, read = needed(graph_def, fed, names)
        computed = {node.name for node in pruned.node}
        again = {name: ancestors(name, producers, fed) & computed & rounded for name in read}
        again = {name: nodes for name, nodes in again.items() if nodes}
        mixed: set[str] = set()
        for node in sorted(computed & jumping) if again else ():
            made_of = ancestors(node, producers, fed)
            reads = {_tensor(text) for one in (node, *made_of) for text in producers[one]}
            mixed |= {name for name, nodes in again.items() if name in reads and nodes & made_of}
        if not mixed:
            return pruned, read
        fed -= mixed


def _tensor(text: str) -> str:
    """The name of the tensor that an input of a node in a GraphDef stands for."""
    return text if ":" in text else f"{text}:0"  # a GraphDef leaves ":0" out


def ancestors(
    tensor: str, producers: Mapping[str, Sequence[str]], fed: Collection[str]
) -> set[str]:
    """The nodes that a tensor is computed from, without those behind other fed tensors."""
    found: set[str] = set()
    waiting = list(producers[tensor.split(":", maxsplit=1)[0]])
    while waiting:
        text = waiting.pop()
        name = text.lstrip("^").split(":")[0]
        if name not in found and _tensor(text) not in fed:
            found.add(name)
            waiting += producers[name]
    return found


def needed(graph_def: Any, fed: set[str], names: Sequence[str]) -> tuple[Any, set[str]]:
    """The part that makes `names`, not looking behind fed tensors, and the fed ones it reads."""
    nodes = {node.name: node for node in graph_def.node}
    kept: set[str] = set()
    read: set[str] = set()
    waiting = [name.split(":")[0] for name in names if name not in fed]
    while waiting:
        name = waiting.pop()
        if name in kept:
            continue
        kept.add(name)
        for text in nodes[name].input:
            if _tensor(text) in fed:
                read.add(_tensor(text))
            else:
                waiting.append(text.lstrip("^").split(":")[0])
    pruned = GraphDef(versions=graph_def.versions, library=graph_def.library)
    pruned.node.extend(node for node in graph_def.node if node.name in kept)
    for node in pruned.node:
        node.attr.pop("_class", None)  # "beside the forward node", which may be gone
    return pruned, read
