"""Graphs of older artifacts whose composites take the bodies that their ops have today.

A node of a saved model says which version of its op it means, and a portable call has the body of
that version as its function, so that both keep their numbers when an op changes. Here they take
those of the version that the op's name stands for in this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding import native
from composite.binding.records import PROGRAM, NodeDef
from composite.ops import call, call_arguments, function_op, functions
from composite.ops.registry import OPS
from composite.saving import portable

_SHAPES = "_output_shapes"  # what the older body gave


class Update(NamedTuple):
    """A node that takes another version of its op."""

    node: str
    op: str
    older: str  # digests
    newer: str


def updated(graph_def: Any) -> tuple[Any, list[Update]]:
    """The same graph with today's version of each op that this process has; and what changed.

    Ops of other names stay what they are, and so does what has today's version already. A portable
    call that changes becomes a node.

    Raises:
        ValueError: if an op's signature has changed so that it does not take a node's place, or the
            graph holds gradients or regions, which were derived from the older bodies. The message
            names the node.
    """
    result = GraphDef()
    result.CopyFrom(graph_def)
    library = {f.signature.name: f for f in graph_def.library.function}
    standing = _standing_for_ops(graph_def)
    updates = _update_nodes(result.node, library)[0]
    for function in result.library.function:
        if function.signature.name in standing:
            continue
        found, renamed = _update_nodes(function.node_def, library)
        for node in function.node_def:
            node.input[:] = [renamed.get(name, name) for name in node.input]
        for name, value in list(function.ret.items()):
            function.ret[name] = renamed.get(value, value)
        updates += found
    if updates:
        _refuse_derived(graph_def, standing, updates)
        _drop_unused(result, standing)
        _check(result, updates)
    return result, updates


def _standing_for_ops(graph_def: Any) -> set[str]:
    """The functions of portable calls, and those that they reach: each is one version's body."""
    library = {f.signature.name: f for f in graph_def.library.function}
    called = {
        node.attr["f"].func.name
        for node in functions.nodes(graph_def)
        if portable.STANDS_FOR in node.attr
    }
    return {name for one in called & set(library) for name in functions.reachable(one, library)}


def _update_nodes(nodes: Any, library: Mapping[str, Any]) -> tuple[list[Update], dict[str, str]]:
    """Updates nodes in place. Returns what changed, and new names of outputs in a function."""
    updates: list[Update] = []
    renamed: dict[str, str] = {}
    for node in nodes:
        meant = _composite(node)
        older = meant.attr[PROGRAM].s.decode() if PROGRAM in meant.attr else ""
        today = OPS.digest_at(meant.op)  # none for functions that have no op of their own
        if not (older and today) or today == older:
            continue
        if node is not meant and not _is_as_saved(node, library):
            continue
        newer = _newer(node, meant, today)
        if node.op != newer.op:
            renamed |= _names_of_outputs(newer)
        node.CopyFrom(newer)
        updates.append(Update(node.name, meant.op, older, today))
    return updates, renamed


def _composite(node: Any) -> Any:
    """What a portable call stands for; any other node itself."""
    if portable.STANDS_FOR not in node.attr:
        return node
    try:
        return NodeDef.FromString(node.attr[portable.STANDS_FOR].s)
    except DecodeError:  # some tool has changed it: the call stays
        return node


def _is_as_saved(call_node: Any, library: Mapping[str, Any]) -> bool:
    """Whether the function of a portable call is what was saved: no tool has edited it since."""
    reached = functions.reachable(call_node.attr["f"].func.name, library)
    body = FunctionDefLibrary(function=[library[name] for name in reached])
    digest = NodeDef.FromString(native.call("composite_function_digest", body))
    return bool(digest.attr["digest"] == call_node.attr[portable.CONTENT])


def _newer(node: Any, meant: Any, today: str) -> Any:
    """The node of today's version for a node, or a call, that means an older one."""
    newer = NodeDef(
        name=node.name,
        op=meant.op,
        input=node.input,
        device=node.device,
        experimental_debug_info=node.experimental_debug_info,
        attr=meant.attr,
    )
    for name, value in node.attr.items():
        if name.startswith("_") and not name.startswith("_composite_"):
            newer.attr[name].CopyFrom(value)
    newer.attr.pop(_SHAPES, None)
    newer.attr[PROGRAM].s = today.encode()
    definition = call.op_def(meant.op)
    declared = {attr.name for attr in definition.attr}
    for name in sorted(newer.attr):
        if not name.startswith("_") and name not in declared:
            raise _not_taken(node, meant.op, f"has no attribute {name} any more")
    for attr in definition.attr:
        if attr.name in newer.attr:
            continue
        if not attr.HasField("default_value"):
            raise _not_taken(node, meant.op, f"has an attribute {attr.name} without a default now")
        newer.attr[attr.name].CopyFrom(attr.default_value)
    if node.op != meant.op:
        for name, args in (("Tin", definition.input_arg), ("Tout", definition.output_arg)):
            if list(_types(args, newer.attr)) != list(node.attr[name].list.type):
                kind = "inputs" if name == "Tin" else "outputs"
                raise _not_taken(node, meant.op, f"has other {kind} now")
    return newer


def _not_taken(node: Any, op_name: str, reason: str) -> ValueError:
    here = OPS.current(op_name)
    place = here.place if here is not None else "unknown place"
    return ValueError(
        f"node {node.name} means an older version of {op_name}, which {reason} ({place}): today's "
        "cannot take its place. Save the model again from its code, or without update=True"
    )


def _types(args: Any, attrs: Mapping[str, Any]) -> Iterator[int]:
    for arg in args:
        if arg.type_list_attr:
            yield from attrs[arg.type_list_attr].list.type
        else:
            dtype = attrs[arg.type_attr].type if arg.type_attr else arg.type
            yield from [dtype] * call_arguments.length(arg, attrs)


def _names_of_outputs(node: Any) -> dict[str, str]:
    """Each output of a call, as a function names it: its name once this node has the place."""
    names = functions.output_names(node, {})
    return {f"{node.name}:output:{k}": name for k, name in enumerate(names)}


def _refuse_derived(graph_def: Any, standing: set[str], updates: list[Update]) -> None:
    """Gradients and regions hold what the older bodies were, under no op's name."""
    own = [f for f in graph_def.library.function if f.signature.name not in standing]
    for node in (*graph_def.node, *(n for f in own for n in f.node_def)):
        if _composite(node).op == function_op.NAME:
            raise ValueError(
                f"node {node.name} is part of a gradient or a region, which was derived from the "
                f"older {_ops(updates)}: save the model again from its code, or without update=True"
            )


def _drop_unused(graph_def: Any, standing: set[str]) -> None:
    """Drops functions of calls that are nodes now."""
    still = _standing_for_ops(graph_def)
    kept = [f for f in graph_def.library.function if f.signature.name not in standing - still]
    del graph_def.library.function[:]
    graph_def.library.function.extend(kept)


def _check(graph_def: Any, updates: list[Update]) -> None:
    """Has TensorFlow check the types of the graph and of each function with a node that changed."""
    changed = {update.node for update in updates}
    library = {f.signature.name: f for f in graph_def.library.function}
    named = {node.op for node in functions.nodes(graph_def)} - set(library)
    if unknown := sorted(name for name in named if call.op_def(name) is None):
        raise ValueError(
            f"the graph has nodes of {', '.join(unknown)}, which this process does not know: "
            "import the module, or load the library, that defines them"
        )
    try:
        functions.imported(graph_def)
        for name, function in library.items():
            if changed.isdisjoint(node.name for node in function.node_def):
                continue
            within = {one: library[one] for one in functions.reachable(name, library)}
            functions.imported(functions.body_of(function, within).graph_def)
    except (ValueError, KeyError, tf.errors.OpError) as error:
        raise ValueError(
            f"today's {_ops(updates)} does not fit into the graph ({error}): save the model again "
            "from its code, or without update=True"
        ) from error


def _ops(updates: list[Update]) -> str:
    return ", ".join(sorted({update.op for update in updates}))
