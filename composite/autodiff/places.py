"""The author's places on the nodes of graphs: where an expansion has them, and a gradient of it.

Not for errors that the runtime makes itself: those have the place of the program's node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from composite.compiler.node_place import of_node

# As TensorFlow 2.21 says which operation has no gradient, in gradients_util.py.
_LACKING = re.compile(r"operation ?'(?P<node>[^']+)' \(op type: (?P<op>\w+)\)")

# As backward.py calls what it makes.
_BACKWARD = re.compile(r"(backward_)+(?P<op>\w+)")

# What TensorFlow adds to the name of a branch or a loop's body for that of its gradient.
_GRADIENT_FUNCTION = re.compile(r"(_rewritten)*_grad_\d+.*")


def spread(graph_def: Any) -> None:
    """Gives the nodes that tf.gradients made the place of what they are the gradient of.

    TensorFlow names them after it: "gradients/forward/Mul_grad/Reshape" is of "forward/Mul".
    """
    scopes = dict(_scopes(graph_def))
    known = {scope: _by_name(nodes) for scope, nodes in scopes.items()}
    for scope, nodes in scopes.items():
        forward = known.get(_GRADIENT_FUNCTION.sub("", scope), {}) | known[scope]
        for node in nodes:
            place = next((forward[name] for name in _origins(node.name) if name in forward), "")
            if place and not of_node(node):
                node.experimental_debug_info.original_node_names.append(f"{node.name} ({place})")


def no_gradient(op_name: str, graph_def: Any, error: LookupError) -> LookupError:
    """What to raise where TensorFlow finds an operation of an expansion without a gradient.

    `op_name` is the op's, or "backward_" and that for the gradient of its gradient.
    """
    found = _LACKING.search(str(error))
    if found is None:
        what = f"an op of its body has none: {error}"
    else:
        name = found["node"].removeprefix("forward/")
        places = {
            of_node(node): None
            for _, nodes in _scopes(graph_def)
            for node in nodes
            if node.op == found["op"] and node.name == name and of_node(node)
        }
        where = f" at {' or '.join(places)}" if places else ""
        what = f"{found['op']}{where} has none in TensorFlow"
    derived = _BACKWARD.fullmatch(op_name)
    subject = f"the derived gradient of {derived['op']}" if derived else op_name
    op = derived["op"] if derived else op_name
    return LookupError(
        f"{subject} has no gradient, since {what}: give {op} one with @op.gradient, or put "
        "tf.stop_gradient around what is to count as constant"
    )


def _scopes(graph_def: Any) -> Iterator[tuple[str, Any]]:
    """The nodes of the graph, under "", and of each function, under its name."""
    yield "", graph_def.node
    for function in graph_def.library.function:
        yield function.signature.name, function.node_def


def _by_name(nodes: Any) -> dict[str, str]:
    return {node.name: place for node in nodes if (place := of_node(node))}


def _origins(name: str) -> Iterator[str]:
    """The names of what a node may be the gradient of, the longest first."""
    for start in re.finditer(r"(?:^|/)gradients(?:_\d+)?/", name):
        for end in reversed([*re.finditer(r"_grad(?:_\d+)?(?=/|$)", name)]):
            if end.start() > start.end():
                yield name[start.end() : end.start()]
