"""What a function captures, as nodes of its own.

Values are constants, tables are filled with what they hold, other resources made as they were. A
function of TensorFlow 1 captures no table, but has a node that finds it by its name.

Not for: variables of TensorFlow, which freezing makes constants of; here it is seen that nobody
writes into them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from composite.binding.records import NodeDef, record
from composite.hybrid import assets, handles, resources, tables
from composite.ops import call, functions

KEPT = "_composite_kept"  # marks nodes that an opened module runs once, and whose results it keeps

_HANDLE = tf.resource.as_datatype_enum
_ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"  # shared_name of what is of one call
_TABLES = frozenset(
    {
        *("HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2"),
        "MutableDenseHashTableV2",
    }
)
_WRITES = ("Assign", "ResourceApply", "ResourceScatter", "ResourceSparseApply")  # begin their ops


class Capture(NamedTuple):
    """A value that a function did not compute and was not given.

    Attributes:
        value: the tensor, or None where it is not known.
        takers: the nodes that take it, if it is a handle.
        is_variable: whether it is the handle of a variable.
    """

    value: Any
    takers: list[Any]
    is_variable: bool


class Held(NamedTuple):
    """A capture as nodes.

    Attributes:
        nodes: the last one has one output, the value.
        kept: the contents of a table, or what else people are told that the module keeps; "" for a
            constant.
        functions: what the nodes call.
    """

    nodes: list[NodeDef]
    kept: tables.Contents | str = ""
    functions: Sequence[Any] = ()


def library_of(concrete: Any) -> dict[str, Any]:
    """The FunctionDefs of a tf.ConcreteFunction, its own the first."""
    others = concrete.graph.as_graph_def().library.function
    every = (concrete.function_def, *others)
    return {function.signature.name: function for function in every}


def captures(concrete: Any, library: Mapping[str, Any]) -> dict[str, Capture]:
    """What a tf.ConcreteFunction captures, by the names of its placeholders."""
    definition = concrete.function_def
    arguments = zip(concrete.inputs, definition.signature.input_arg, strict=True)
    names = {inner.op.name: argument.name for inner, argument in arguments}
    variables = {id(variable.handle) for variable in concrete.graph.variables}
    found = {}
    for outer, inner in concrete.graph.captures:
        takers: list[Any] = []
        if functions.is_handle(inner.dtype):
            takers = handles.takers(definition.signature.name, names[inner.op.name], library)
        is_variable = id(outer) in variables or any(_is_of_variables(x.op) for x in takers)
        found[inner.op.name] = Capture(outer, takers, is_variable)
    return found


def named(function: str, library: Mapping[str, Any]) -> dict[str, Capture]:
    """What nodes of a function find by its name in this process, by the nodes' names."""
    found = {}
    for node in library[function].node_def:
        if _finds_by_name(node):
            handle = handles.handles_of(node, library)[0]
            takers = handles.takers(function, handle, library)
            is_variable = any(_is_of_variables(x.op) for x in takers)
            found[node.name] = Capture(_found(node), takers, is_variable)
    return found


def _finds_by_name(node: Any) -> bool:
    definition = call.op_def(node.op)
    if definition is None or _text(node, "shared_name") == _ANONYMOUS:
        return False
    returns_handle = any(x.type == _HANDLE for x in definition.output_arg)
    return returns_handle and any(attr.name == "shared_name" for attr in definition.attr)


def _found(node: Any) -> Any:
    """The handle of a table in this process; None of anything else."""
    name = _text(node, "shared_name")
    if node.op not in _TABLES or not name:
        return None
    dtypes = {key: tf.as_dtype(node.attr[key].type) for key in ("key_dtype", "value_dtype")}
    return tf.raw_ops.HashTableV2(
        shared_name=name, container=_text(node, "container"), **dtypes
    )  # whatever its kind is


def _text(node: Any, attr: str) -> str:
    return str(node.attr[attr].s.decode()) if attr in node.attr else ""


def refuse_writes(found: Iterable[Capture], model: str) -> None:
    """Raises ValueError for a function that changes a variable or a table."""
    for capture in found:
        for node in capture.takers:
            if capture.is_variable and node.op not in handles.VARIABLE_READS:
                raise ValueError(
                    f"{model} writes into a variable ({node.op} {node.name}): a module holds the "
                    "values of variables as constants. Return the new value, and assign it outside"
                )
            if handles.is_of_tables(node.op) and node.op not in handles.TABLE_READS:
                raise ValueError(
                    f"{model} writes into a table ({node.op} {node.name}): a module holds tables "
                    "as they are when it is compiled. Write outside, and compile the model again"
                )


def held(name: str, capture: Capture, model: str) -> Held:
    """A capture as nodes, the last of which has this name. ValueError where it has no value."""
    reads = [x for x in capture.takers if x.op == "ReadVariableOp"]
    if capture.is_variable and reads and capture.value is not None:
        dtype = tf.as_dtype(reads[0].attr["dtype"].type)
        return _constant(name, tf.raw_ops.ReadVariableOp(resource=capture.value, dtype=dtype))
    finds = [x for x in capture.takers if x.op in ("LookupTableFindV2", "LookupTableExportV2")]
    if finds and capture.value is not None:
        return _table(name, capture.value, finds[0], model)
    if resources.is_remade(capture.value):
        return _resource(name, capture.value)
    if hasattr(capture.value, "numpy") and not functions.is_handle(capture.value.dtype):
        return _constant(name, capture.value)
    ops = ", ".join(sorted({x.op for x in capture.takers})) or "a function that it calls"
    raise ValueError(
        f"{model} keeps state that {ops} needs, {name}, and it is not known how to make it anew: "
        "compute that part outside, and pass its result"
    )


def _is_of_variables(op: str) -> bool:
    return op in handles.VARIABLE_READS or op.startswith(_WRITES)


def _constant(name: str, value: Any) -> Held:
    return Held([record("Const", name, value=tf.make_tensor_proto(value), dtype=value.dtype)])


def _table(name: str, handle: Any, find: Any, model: str) -> Held:
    attrs = ("Tin", "Tout") if find.op == "LookupTableFindV2" else ("Tkeys", "Tvalues")
    dtypes = (tf.as_dtype(find.attr[attr].type) for attr in attrs)
    try:
        contents = tables.contents(handle, *dtypes)
    except tf.errors.OpError as error:
        raise ValueError(f"{model} has a table that cannot be read: {error.message}") from error
    return Held(_kept(tables.nodes(name, contents)), contents)


def _resource(name: str, handle: Any) -> Held:
    nodes, called = resources.remade(name, handle)
    made = {x.op for function in called for x in function.node_def if _finds_by_name(x)}
    return Held(_kept(nodes), f"a resource of {', '.join(sorted(made))}", called)


def _kept(nodes: list[NodeDef]) -> list[NodeDef]:
    for node in nodes:
        if node.op != "Const" or assets.ASSET in node.attr:
            node.attr[KEPT].b = True
    return nodes
