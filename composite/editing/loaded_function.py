"""An edited function of this process: its graph as a tf.function with the variables it had.

With the loader of SavedModels, private in TF 2.21: it names functions anew, so that the original's
stay, and gives them their gradients, loops and calls in them included.
tests/composite/editing/test_functions.py pins it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.protobuf.saved_object_graph_pb2 import SavedObjectGraph
from tensorflow.python.ops import control_flow_util_v2, handle_data_util
from tensorflow.python.saved_model import function_deserialization, nested_structure_coder

from composite.compiler import op_traits
from composite.editing.scope import Handle, Scope

# Of a node's functions, the names of their attributes and of what TensorFlow keeps their graphs in.
_HELD = {
    "While": (("cond", "_cond_graph"), ("body", "_body_graph")),
    "If": (("then_branch", "_true_graph"), ("else_branch", "_false_graph")),
}


def graph_of(concrete: Any) -> tuple[Any, str]:
    """A ConcreteFunction and what it calls, as the library of a GraphDef; and its name there."""
    library = concrete.graph.as_graph_def().library
    name = concrete.function_def.signature.name
    graph = GraphDef(library=library)
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    if all(f.signature.name != name for f in library.function):
        graph.library.function.append(concrete.function_def)
    return graph, name


def handles_of(concrete: Any) -> dict[int, Handle]:
    """What is known of the variables of a ConcreteFunction, by the arguments of its function."""
    count = len(concrete.function_def.signature.input_arg)
    variables = {id(v.handle): v for v in concrete.variables}
    found: dict[int, Handle] = {}
    for index, captured in enumerate(
        concrete.captured_inputs, count - len(concrete.captured_inputs)
    ):
        if (variable := variables.get(id(captured))) is not None:
            dtype = variable.dtype.as_datatype_enum
            found[index] = Handle(dtype, variable.shape.as_proto())
    return found


def function_of(
    graph_def: Any, name: str, concrete: Any, handles: Mapping[str, Mapping[int, Handle]]
) -> Any:
    """An edited function, called as the ConcreteFunction was that its graph is from."""
    library = FunctionDefLibrary()
    library.CopyFrom(graph_def.library)
    definitions = {definition.signature.name: definition for definition in library.function}
    for definition in library.function:
        of_arguments = handles.get(definition.signature.name, {})
        _note_shapes(definition, definitions, of_arguments)
        _describe(definition, of_arguments)
    loaded = function_deserialization.load_function_def_library(
        library, _signature(graph_def, name), load_shared_name_suffix=""
    )
    for original, function in loaded.items():
        _describe(function.function_def, handles.get(original, {}))
    for original in {name, *_called(graph_def)}:
        _hold_graphs(loaded[original].graph)
    made = loaded[name]
    args, kwargs = concrete.structured_input_signature
    captured = concrete.captured_inputs
    structure = concrete.structured_outputs

    def call(*given: Any, **named: Any) -> Any:
        graph: Any = tf.compat.v1.get_default_graph()
        for variable in concrete.graph.variables:  # which tapes then watch
            graph.watch_variable(variable)
        flat = [x for x in tf.nest.flatten((given, named)) if tf.is_tensor(x)]
        results = made._call_flat([*flat, *captured], [])
        return _structured(structure, results)

    return tf.function(call, autograph=False).get_concrete_function(*args, **kwargs)


def _describe(definition: Any, handles: Mapping[int, Handle]) -> None:
    """Has a function say what variables it is given.

    TensorFlow's gradient of a loop leaves out variables of which it does not know that.
    """
    for index, handle in handles.items():
        arg = definition.signature.input_arg[index]
        if not arg.handle_data:
            arg.handle_data.add(dtype=handle.dtype).shape.CopyFrom(handle.shape)


def _note_shapes(
    definition: Any, library: Mapping[str, Any], handles: Mapping[int, Handle]
) -> None:
    """Has nodes that read variables say what shapes they give.

    An import of the function infers shapes before it is told of the variables behind arguments.
    """
    if not handles:
        return
    scope = Scope(definition, library)
    scope.handles.update({scope.arguments[index]: handle for index, handle in handles.items()})
    for node in definition.node_def:
        operation = scope.graph.get_operation_by_name(node.name)
        if any(x.dtype == tf.resource for x in operation.inputs):
            noted = node.attr["_output_shapes"].list
            del noted.shape[:]
            noted.shape.extend(y.shape.as_proto() for y in operation.outputs)


def _called(graph_def: Any) -> set[str]:
    """The functions that nodes call, other than as loops and branches."""
    nodes = (node for f in graph_def.library.function for node in f.node_def)
    calls = (node for node in nodes if op_traits.of(node.op).runs is op_traits.Runs.CALL)
    names = {value.func.name for node in calls for value in node.attr.values() if value.func.name}
    return names & {f.signature.name for f in graph_def.library.function}


def _hold_graphs(graph: Any) -> None:
    """Has loops and branches hold graphs of their functions, as they do where they are traced.

    Their gradients change them, and give on what is known of variables to those of higher orders.
    """
    for op in graph.get_operations():
        is_loop = op_traits.of(op.type).runs is op_traits.Runs.LOOP
        if is_loop:
            for taken, given in zip(op.inputs, op.outputs, strict=True):
                if given.dtype == tf.resource:
                    handle_data_util.copy_handle_data(taken, given)
        for function, held in _HELD.get(op.type.removeprefix("Stateless"), ()):
            shapes = op.get_attr("output_shapes") if is_loop else [x.shape for x in op.inputs[1:]]
            name = op.get_attr(function).name
            inner = control_flow_util_v2.get_func_graph(op, list(map(tf.TensorShape, shapes)), name)
            setattr(op, held, inner)
            _hold_graphs(inner)


def _signature(graph_def: Any, name: str) -> Any:
    """What a SavedModel would say of the arguments and results of a function, all in a row."""
    (definition,) = (f for f in graph_def.library.function if f.signature.name == name)
    inputs = [tf.TensorSpec(None, arg.type, arg.name) for arg in definition.signature.input_arg]
    outputs = [tf.TensorSpec(None, arg.type) for arg in definition.signature.output_arg]
    objects = SavedObjectGraph()
    function = objects.concrete_functions[name]
    encode = nested_structure_coder.encode_structure
    function.canonicalized_input_signature.CopyFrom(encode((tuple(inputs), {})))
    function.output_signature.CopyFrom(encode(outputs))
    return objects


def _structured(structure: Any, results: Any) -> Any:
    """Flat results as the original returned them: None stays where it was."""
    given = iter(results or [])
    flat = tf.nest.flatten(structure, expand_composites=True)
    filled = [None if one is None else next(given) for one in flat]
    return tf.nest.pack_sequence_as(structure, filled, expand_composites=True)
