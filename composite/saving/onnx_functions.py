"""`composite.to_onnx`: models as ONNX, by tf2onnx, with each composite a function of the model.

Such a function has the name of its op and the domain "composite". A program that runs the model
inlines it, or has its own code for it; one that shows the model shows a call.
Not for: conversions that tf2onnx lacks (`onnx_ops`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef

# Of TensorFlow 2.21: its API has no function that freezes another.
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from composite.ops import functions
from composite.ops.registry import OPS
from composite.saving import onnx_ops, portable

DOMAIN = "composite"
_FUNCTION = "_composite_onnx"  # an attribute of nodes: the function that they call
_SIGNATURE = "serving_default"


def to_onnx(model: Any, *, opset: int = 18) -> Any:
    """A model as ONNX, its composites as functions in it. Needs the packages tf2onnx and onnx.

    Derived gradients are converted as TensorFlow's ops.

    Args:
        model: a concrete function, a `tf.function` with an input signature, or the folder of a
            SavedModel with the signature "serving_default" and composites as nodes.
        opset: the version of ONNX's operators.

    Returns:
        An onnx.ModelProto, which `onnx.save` writes. Its inputs are called as the arguments are,
        its outputs as in the dict that is returned, or output_0, output_1, ...

    Raises:
        ImportError: if tf2onnx or onnx is missing.
        TypeError: if `model` is none of those above.
        ValueError: if a composite cannot be expanded, or tf2onnx does not convert some op.
    """
    import onnx

    concrete, _owner = _concrete(model)
    lowered = not _has_lists(concrete.graph.as_graph_def())
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=lowered)
    results = _names(concrete)
    graph_def, bodies = _with_calls(frozen.graph.as_graph_def())
    converted = _converted(
        graph_def,
        {x.name: x.op.name for x in frozen.inputs},
        {x.name: name for x, name in zip(frozen.outputs, results, strict=True)},
        opset,
        {node.op for node in graph_def.node if _FUNCTION in node.attr},
    )
    _add_functions(converted, {name: _function(body, opset) for name, body in bodies.items()})
    converted.opset_import.add(domain=DOMAIN, version=1)
    try:
        onnx.checker.check_model(converted)
    except onnx.checker.ValidationError as error:
        raise ValueError(f"tf2onnx does not convert all of the model: {error}") from error
    return converted


def _concrete(model: Any) -> tuple[Any, Any]:
    """The function to convert, and what keeps its variables."""
    if isinstance(model, str | os.PathLike):
        loaded = tf.saved_model.load(os.fspath(model))
        if _SIGNATURE not in loaded.signatures:
            raise TypeError(f"the model in {os.fspath(model)} has no signature {_SIGNATURE!r}")
        return loaded.signatures[_SIGNATURE], loaded
    if isinstance(model, tf.types.experimental.ConcreteFunction):
        return model, model
    if getattr(model, "input_signature", None) is None:
        raise TypeError(
            "to_onnx takes a concrete function, a tf.function with an input signature, or the "
            f"folder of a SavedModel, not {model!r}"
        )
    return model.get_concrete_function(), model


def _has_lists(graph_def: Any) -> bool:
    """Whether loops fill lists of tensors, which tf2onnx converts in functions of loops alone.

    Composites in branches and other loops become nodes of the graph, by lowering, and so calls.
    """
    bodies = [graph_def.node, *(function.node_def for function in graph_def.library.function)]
    return any(node.op.startswith("TensorList") for body in bodies for node in body)


def _names(concrete: Any) -> list[str]:
    """What the outputs are called, in their order."""
    returned = concrete.structured_outputs
    if isinstance(returned, dict) and len(returned) == len(concrete.outputs):
        return sorted(returned)  # as tf.nest flattens it
    return [f"output_{k}" for k in range(len(concrete.outputs))]


def _with_calls(original: Any) -> tuple[Any, dict[str, functions.Body]]:
    """A portable graph whose own composites are nodes still, and the bodies that they stand for.

    Those nodes name their body, and have the attributes that an author gave them.
    """
    graph_def = portable.portable(original)
    library = {f.signature.name: f for f in graph_def.library.function}
    nodes = {node.name: node for node in original.node}
    shapes = functions.imported(original)
    bodies = {}
    for node in graph_def.node:
        before = nodes[node.name]
        op = OPS.current(before.op)
        if portable.STANDS_FOR not in node.attr or op is None or op.composes:
            continue
        name = node.attr["f"].func.name
        within = functions.reachable(name, library)
        body = functions.body_of(library[name], {one: library[one] for one in within})
        given = shapes.get_operation_by_name(node.name).inputs
        for placeholder, x in zip(body.graph_def.node, given, strict=False):
            placeholder.attr["shape"].shape.CopyFrom(x.shape.as_proto())
        bodies[name] = body
        node.CopyFrom(before)
        for attr in [one for one in node.attr if one.startswith("_")]:
            del node.attr[attr]
        node.attr[_FUNCTION].s = name.encode()
    return graph_def, bodies


def _converted(
    graph_def: Any,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    opset: int,
    calls: Iterable[str] = (),
) -> Any:
    """What tf2onnx makes of a graph; ops that are `calls` stay nodes.

    `inputs` and `outputs` are tensors, with the names that they get.
    """
    import tf2onnx

    model, _ = tf2onnx.convert.from_graph_def(
        graph_def,
        name="composite",
        input_names=list(inputs),
        output_names=list(outputs),
        opset=opset,
        custom_ops=dict.fromkeys(calls, DOMAIN),
        custom_op_handlers=dict(onnx_ops.HANDLERS),  # tf2onnx adds those of custom_ops to it
        tensors_to_rename={**inputs, **outputs},
    )
    return model


def _function(body: functions.Body, opset: int) -> Any:
    """A body as a function of ONNX, which has no name yet."""
    import onnx

    named = {f"{name}:0": f"in_{k}" for k, name in enumerate(body.inputs)}
    # A tensor may be given and be returned, or be returned twice: each result has its own name.
    results = {f"out_{k}:0": f"out_{k}" for k in range(len(body.outputs))}
    graph_def = GraphDef()
    graph_def.CopyFrom(body.graph_def)
    for k, (name, dtype) in enumerate(zip(body.outputs, body.output_dtypes, strict=True)):
        node = graph_def.node.add(name=f"out_{k}", op="Identity", input=[name])
        node.attr["T"].type = dtype.as_datatype_enum
    graph = _converted(graph_def, named, results, opset).graph
    constants = [
        onnx.helper.make_node("Constant", [], [value.name], value=value)
        for value in graph.initializer
    ]
    return onnx.helper.make_function(
        DOMAIN,
        "",
        list(named.values()),
        list(results.values()),
        [*constants, *graph.node],
        [onnx.helper.make_opsetid("", opset)],
    )


def _add_functions(model: Any, made: Mapping[str, Any]) -> None:
    """Gives a model its functions, and their names to the nodes that call them."""
    taken: dict[str, int] = {}
    of_name: dict[str, str] = {}
    for node in _nodes(model.graph):
        mark = next((attr for attr in node.attribute if attr.name == _FUNCTION), None)
        if mark is None:
            continue
        node.attribute.remove(mark)
        name = mark.s.decode()
        if name not in of_name:
            taken[node.op_type] = taken.get(node.op_type, 0) + 1
            number = taken[node.op_type]
            of_name[name] = node.op_type if number == 1 else f"{node.op_type}_{number}"
            function = model.functions.add()
            function.CopyFrom(made[name])
            function.name = of_name[name]
            function.attribute.extend(attr.name for attr in node.attribute)
        node.op_type = of_name[name]


def _nodes(graph: Any) -> Iterator[Any]:
    """The nodes of a graph, and those of branches and loops in it."""
    for node in graph.node:
        yield node
        for attr in node.attribute:
            if attr.HasField("g"):
                yield from _nodes(attr.g)
