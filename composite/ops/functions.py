"""Expansions as TensorFlow graphs: a FunctionDefLibrary imported into whatever is being traced.

`tf.graph_util.import_graph_def` takes GraphDefs; a FunctionDef differs from one in how it names
tensors ("node:output:k" against "node:k") and arguments. Nothing here knows of composites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.compiler import op_traits
from composite.ops import call, call_arguments


class Body(NamedTuple):
    """function[0] of a library as a GraphDef; its arguments are placeholders of their own names."""

    graph_def: Any
    inputs: list[str]  # node names
    outputs: list[str]  # tensor names, "node:k"
    input_dtypes: list[tf.DType]
    output_dtypes: list[tf.DType]


def body(library: Any) -> Body:
    """The first function of `library` as a graph; the other functions travel in its library."""
    return body_of(library.function[0], {f.signature.name: f for f in library.function})


def body_of(function: Any, library: Mapping[str, Any]) -> Body:
    """One function as a graph; the others of `library`, by name, travel in the graph's."""
    graph = GraphDef()
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    graph.library.function.extend(f for f in library.values() if f is not function)
    signatures = {name: f.signature for name, f in library.items()}
    for arg in function.signature.input_arg:
        node = graph.node.add(name=arg.name, op="Placeholder")
        node.attr["dtype"].type = arg.type
    names = {arg.name: f"{arg.name}:0" for arg in function.signature.input_arg}
    for node in function.node_def:
        names |= output_names(node, signatures)
    for node in function.node_def:
        added = graph.node.add()
        added.CopyFrom(node)
        del added.input[:]
        added.input.extend(x if x.startswith("^") else names[x] for x in node.input)
    arguments = function.signature.input_arg
    results = function.signature.output_arg
    return Body(
        graph,
        [arg.name for arg in arguments],
        [names[function.ret[arg.name]] for arg in results],
        [tf.as_dtype(arg.type) for arg in arguments],
        [tf.as_dtype(arg.type) for arg in results],
    )


def output_names(node: Any, signatures: Mapping[str, Any]) -> dict[str, str]:
    """Each output of a node: its name in a FunctionDef -> its name in a GraphDef."""
    definition = signatures.get(node.op) or call.op_def(node.op)
    if definition is None:
        raise tf.errors.NotFoundError(None, None, f"op {node.op} (node {node.name}) is unknown")
    names, position = {}, 0
    for arg in definition.output_arg:
        for k in range(call_arguments.length(arg, node.attr)):
            names[f"{node.name}:{arg.name}:{k}"] = f"{node.name}:{position}"
            position += 1
    return names


def is_handle(dtype: tf.DType) -> bool:
    """Whether tensors of it stand for something else, such as a variable, and have no value."""
    return dtype in (tf.resource, tf.variant)


def imported(graph_def: Any) -> tf.Graph:
    """A graph of these nodes, in which TensorFlow has inferred shapes and constants."""
    graph = tf.Graph()
    with graph.as_default():
        tf.graph_util.import_graph_def(graph_def, name="")
    return graph


def has_empty_product(source: Body, shapes: Sequence[Sequence[int]]) -> bool:
    """Whether an operand of a MatMul is known to be empty, for inputs of these shapes."""
    graph = GraphDef()
    graph.CopyFrom(source.graph_def)
    given = dict(zip(source.inputs, shapes, strict=True))
    for node in graph.node:
        if node.name in given:
            node.attr["shape"].shape.CopyFrom(tf.TensorShape(given[node.name]).as_proto())
    operands = (
        x.shape for op in imported(graph).get_operations() if op.type == "MatMul" for x in op.inputs
    )
    return any(shape.rank is not None and 0 in shape.as_list() for shape in operands)


def inline(source: Body, inputs: Sequence[Any], name: str = "") -> list[Any]:
    """The nodes of `source` in the current graph, fed with `inputs`. Returns its output tensors."""
    outputs: list[Any] = tf.graph_util.import_graph_def(
        source.graph_def,
        input_map={f"{n}:0": x for n, x in zip(source.inputs, inputs, strict=True)},
        return_elements=source.outputs,
        name=name,
    )
    return outputs


def in_double(source: Body) -> Body:
    """The same graph with half, bfloat16 and float32 made double: a reference for errors."""
    return in_dtype(source, (tf.half, tf.bfloat16, tf.float32), tf.float64)


def in_single(source: Body) -> Body:
    """The same graph with double made float32: a measure of how much rounding matters in it."""
    return in_dtype(source, (tf.float64,), tf.float32)


def in_dtype(source: Body, these: Sequence[tf.DType], dtype: tf.DType) -> Body:
    """The same graph with `these` dtypes made another, but where random numbers are drawn."""

    def other(number: int) -> int:
        return int(dtype.as_datatype_enum) if tf.as_dtype(number) in these else number

    graph = GraphDef()
    graph.CopyFrom(source.graph_def)
    rename_functions(graph, f"_{dtype.name}")  # the process may have the old ones
    for node in nodes(graph):
        if op_traits.of(node.op).draws:
            continue
        for value in node.attr.values():
            kind = value.WhichOneof("value")
            if kind == "type":
                value.type = other(value.type)
            elif kind == "list":
                value.list.type[:] = [other(t) for t in value.list.type]
            elif kind == "tensor" and tf.as_dtype(value.tensor.dtype) in these:
                array = tf.make_ndarray(value.tensor).astype(dtype.as_numpy_dtype)
                value.tensor.CopyFrom(tf.make_tensor_proto(array))
    _cast_draws(graph, other)
    for function in graph.library.function:
        for arg in (*function.signature.input_arg, *function.signature.output_arg):
            arg.type = other(arg.type)
    return source._replace(
        graph_def=graph,
        input_dtypes=[tf.as_dtype(other(d.as_datatype_enum)) for d in source.input_dtypes],
        output_dtypes=[tf.as_dtype(other(d.as_datatype_enum)) for d in source.output_dtypes],
    )


def _cast_draws(graph: Any, other: Callable[[int], int]) -> None:
    """Casts what random ops draw: in another dtype they would draw other numbers."""
    functions = [(f.node_def, f.ret) for f in graph.library.function]
    for nodes, results in ((graph.node, None), *functions):
        for node in [n for n in nodes if op_traits.of(n.op).draws]:
            name, drawn = node.name, node.attr["dtype"].type
            before, after = f"{name}:output:0", f"{name}:y:0"  # as functions name them
            for reader in nodes:
                reader.input[:] = [after if x == before else x for x in reader.input]
            for key, value in (results or {}).items():
                results[key] = after if value == before else value
            node.name = f"{name}_drawn"
            cast = nodes.add(name=name, op="Cast")
            cast.input.append(node.name if results is None else f"{node.name}:output:0")
            cast.attr["SrcT"].type, cast.attr["DstT"].type = drawn, other(drawn)


def rename_functions(graph_def: Any, suffix: str) -> None:
    """Gives the functions in the library of a GraphDef other names, wherever they stand."""
    names = {f.signature.name: f.signature.name + suffix for f in graph_def.library.function}
    rename_in_graph(graph_def, names)


def rename_in_graph(graph_def: Any, names: Mapping[str, str]) -> None:
    """Gives all functions in the library of a GraphDef these names, wherever they stand."""
    rename_in_nodes(graph_def.node, names)
    rename(graph_def.library.function, names)
    for gradient in graph_def.library.gradient:
        gradient.function_name = names.get(gradient.function_name, gradient.function_name)
        gradient.gradient_func = names.get(gradient.gradient_func, gradient.gradient_func)


def unshare_functions(graph_def: Any, suffix: str) -> None:
    """Gives each place that names a function of the GraphDef's library a copy of its own.

    The copies are called as the function, `suffix` and a number; the functions themselves go.
    """
    library = {f.signature.name: f for f in graph_def.library.function}
    copies: list[Any] = []

    def unshare(nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node.op in library:
                node.op = copied(node.op)
            for value in _in_order(node.attr):
                for function in named_by(value):
                    if function.name in library:
                        function.name = copied(function.name)

    def copied(name: str) -> str:
        copy = type(library[name]).FromString(library[name].SerializeToString())
        copy.signature.name = f"{name}{suffix}_{len(copies)}"
        copies.append(copy)
        unshare(copy.node_def)
        return str(copy.signature.name)

    unshare(graph_def.node)
    del graph_def.library.function[:]
    graph_def.library.function.extend(copies)


def rename(definitions: Iterable[Any], names: Mapping[str, str]) -> None:
    """Gives FunctionDefs other names, wherever they stand in their nodes."""
    for function in definitions:
        function.signature.name = names[function.signature.name]
        rename_in_nodes(function.node_def, names)


def reachable(name: str, library: Mapping[str, Any]) -> list[str]:
    """This function and those of `library` that it calls or names, as they are first met."""
    found = [name]
    for current in found:  # grows meanwhile
        found += [n for n in called(library[current], library) if n not in found]
    return found


def called(function: Any, library: Mapping[str, Any]) -> list[str]:
    """The functions of `library` that this one calls or names itself, as they are first met."""
    names = (name for node in function.node_def for name in called_by(node, library))
    return list(dict.fromkeys(names))


def called_by(node: Any, library: Mapping[str, Any]) -> list[str]:
    """The functions of `library` that a node calls or names."""
    named = (f.name for value in _in_order(node.attr) for f in named_by(value))
    return [name for name in dict.fromkeys((node.op, *named)) if name in library]


def rename_in_nodes(nodes: Iterable[Any], names: Mapping[str, str]) -> None:
    """Has nodes name functions by these names."""
    for node in nodes:
        node.op = names.get(node.op, node.op)
        for value in node.attr.values():
            for function in named_by(value):
                function.name = names.get(function.name, function.name)


def nodes(graph_def: Any) -> list[Any]:
    """The nodes of a graph, and those of its functions."""
    return [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]


def _in_order(attrs: Mapping[str, Any]) -> list[Any]:
    return [attrs[name] for name in sorted(attrs)]


def named_by(value: Any) -> Sequence[Any]:
    """The functions that an attribute names."""
    if value.WhichOneof("value") == "func":
        return (value.func,)
    functions: Sequence[Any] = value.list.func
    return functions
