"""Graphs in which each composite is a call of a function of stock TensorFlow ops.

A process without this package runs such a graph; one that has the op takes the node back, kernels
included (composite/runtime/portable/). The calls carry what is needed for that as attributes: those
of a function are not free, TensorFlow 2.21 refuses to load names that it does not know.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding import native
from composite.binding.records import PROGRAM, AttrValue, NodeDef, serialize
from composite.ops import call, call_arguments, function_op, functions
from composite.ops.op import call_of
from composite.ops.registry import OPS
from composite.saving import known_shapes

IMPLEMENTS = "_implements"  # the name of the op, as tf.function(experimental_implements=) has it
# On a call:
STANDS_FOR = "_composite_stands_for"  # the node in whose place it is, without name and inputs
CONTENT = "_composite_content"  # the digest of the function for which that holds


def portable(graph_def: Any, keeping: Collection[str] = ()) -> Any:
    """The same graph, its composites and those in its functions as calls of stock ops.

    Nodes keep their names, attributes that begin with "_" and their places. Shapes and values that
    a body asks for are those that the graph knows. Nodes of the ops `keeping` stay.

    Raises:
        ValueError: if a node cannot be expanded: its op, or the version that it means, is not
            known here, or a fact is missing. The message names the node.
    """
    result = GraphDef()
    result.CopyFrom(graph_def)
    _Conversion(graph_def, result, keeping).run()
    return result


def composites(graph_def: Any) -> dict[str, set[str]]:
    """The composite ops of a graph and its functions, with the digests of the versions meant.

    A digest is "" where a node means the version that its name stands for.
    """
    found: dict[str, set[str]] = {}
    for node in functions.nodes(graph_def):
        if _is_composite(node):
            found.setdefault(node.op, set()).add(node.attr[PROGRAM].s.decode())
    return found


def _is_composite(node: Any) -> bool:
    if node.op == function_op.NAME:
        return True
    # A composition's node has the name of TensorFlow's own op, and is that without its mark.
    return PROGRAM in node.attr or (OPS.current(node.op) is not None and not _is_stock(node.op))


def _is_stock(op_name: str) -> bool:
    here = OPS.current(op_name)
    return here is not None and here.composes == op_name


class _Conversion:
    """A GraphDef, and a copy of it that is made portable in place."""

    def __init__(self, original: Any, copy: Any, keeping: Collection[str]) -> None:
        self._original = original
        self._copy = copy
        self._keeping = keeping
        self._library = {f.signature.name: f for f in original.library.function}
        self._made: dict[str, FunctionDef] = {}

    def run(self) -> None:
        for function in self._copy.library.function:
            if any(map(self._is_converted, function.node_def)):
                self._convert_function(function)
        if any(map(self._is_converted, self._copy.node)):
            self._convert_nodes(self._copy.node, self._original)
        for name in sorted(set(self._made) - set(self._library)):  # a backward's may be there
            self._copy.library.function.append(self._made[name])

    def _is_converted(self, node: Any) -> bool:
        return node.op not in self._keeping and _is_composite(node)

    def _convert_function(self, function: Any) -> None:
        name = function.signature.name
        within = functions.reachable(name, self._library)
        body = functions.body_of(self._library[name], {one: self._library[one] for one in within})
        for index, node in enumerate(body.graph_def.node[: len(body.inputs)]):
            shapes = function.arg_attr[index].attr["_output_shapes"].list.shape
            if shapes:
                node.attr["shape"].shape.CopyFrom(shapes[0])
        outputs = self._convert_nodes(function.node_def, body.graph_def)
        for node in function.node_def:
            node.input[:] = [outputs.get(name, name) for name in node.input]
        for name, output in list(function.ret.items()):
            function.ret[name] = outputs.get(output, output)

    def _convert_nodes(self, nodes: Any, graph_def: Any) -> dict[str, str]:
        """Replaces the composites among `nodes`, whose facts are those of a graph.

        Returns the new names of their outputs, as nodes of a function have them.
        """
        renamed: dict[str, str] = {}
        graph = functions.imported(graph_def)
        for node in nodes:
            if not self._is_converted(node):
                continue
            op = graph.get_operation_by_name(node.name)
            renamed |= _as_outputs_of_calls(op)
            node.CopyFrom(_call(node, op, self._function(op)))
        return renamed

    def _function(self, op: Any) -> FunctionDefLibrary:
        """The function that stands for a node, and what it reaches; they are among those made."""
        if op.type == function_op.NAME:
            reached = functions.reachable(op.node_def.attr["f"].func.name, self._library)
            library = FunctionDefLibrary(function=[self._library[name] for name in reached])
        else:
            library = _expansion(op)
        stem = (
            function_op.stem(library.function[0].signature.name)
            if op.type == function_op.NAME
            else op.type.lower()
        )
        whole = portable(GraphDef(library=library)).library
        for function in whole.function:
            _tell_results_apart(function)
        named = function_op.canonical(whole, stem)
        named.function[0].attr[IMPLEMENTS].s = op.type.encode()
        self._made |= {f.signature.name: f for f in named.function}
        return named


def _expansion(op: Any) -> FunctionDefLibrary:
    """What a node of a named op stands for, with all that its graph knows of its inputs."""
    request = call_of(op)
    try:
        reply = native.call("composite_expand", request.to_node_def())
    except tf.errors.OpError as error:
        raise ValueError(
            f"node {op.name} ({op.type}) cannot be made portable: {error.message}. Where a dim or "
            "a value is missing, state it in an input signature of the function"
        ) from error
    library = FunctionDefLibrary.FromString(reply)
    known_shapes.fold(library, [x.shape for x in op.inputs])
    return library


def _tell_results_apart(function: FunctionDef) -> None:
    """Gives each result of a function a tensor of its own.

    Where two are one tensor, TensorFlow's loader names all results anew, and what a call says of
    its function does not hold any more.
    """
    names = {node.name for node in function.node_def} | set(function.ret)
    names |= {arg.name for arg in function.signature.input_arg}
    given: set[str] = set()
    for result in function.signature.output_arg:
        tensor = function.ret[result.name]
        if tensor in given:
            name = next(n for k in itertools.count() if (n := f"{result.name}_{k}") not in names)
            names.add(name)
            node = function.node_def.add(name=name, op="Identity", input=[tensor])
            node.attr["T"].type = result.type
            function.ret[result.name] = f"{name}:output:0"
        given.add(tensor)


def _call(node: Any, op: Any, library: FunctionDefLibrary) -> NodeDef:
    """A call of function[0] in a node's place."""
    signature = library.function[0].signature
    made = NodeDef(
        name=node.name,
        op="StatefulPartitionedCall" if signature.is_stateful else "PartitionedCall",
        input=node.input,
        device=node.device,
        experimental_debug_info=node.experimental_debug_info,
    )
    for name, value in node.attr.items():
        if name.startswith("_") and not name.startswith("_composite_"):
            made.attr[name].CopyFrom(value)
    made.attr["f"].func.name = signature.name
    made.attr["Tin"].list.type.extend(x.dtype.as_datatype_enum for x in op.inputs)
    made.attr["Tout"].list.type.extend(y.dtype.as_datatype_enum for y in op.outputs)
    made.attr[STANDS_FOR].s = serialize(_stands_for(op, signature.name))
    digest = NodeDef.FromString(native.call("composite_function_digest", library))
    made.attr[CONTENT].CopyFrom(digest.attr["digest"])
    return made


def _stands_for(op: Any, function: str) -> NodeDef:
    attrs = {n: v for n, v in op.node_def.attr.items() if n == PROGRAM or not n.startswith("_")}
    result = NodeDef(op=op.type, attr=attrs)
    if op.type == function_op.NAME:
        result.attr["f"].func.name = function
        result.attr[PROGRAM].s = function.encode()
    elif not attrs.get(PROGRAM, AttrValue()).s:
        result.attr[PROGRAM].s = OPS.digest_at(op.type).encode()
    return result


def _as_outputs_of_calls(op: Any) -> Mapping[str, str]:
    """Each output of a node, as a function names it: its name once the node is a call."""
    renamed, position = {}, 0
    for arg in call.op_def(op.type).output_arg:
        for k in range(call_arguments.length(arg, op.node_def.attr)):
            renamed[f"{op.name}:{arg.name}:{k}"] = f"{op.name}:output:{position}"
            position += 1
    return renamed
