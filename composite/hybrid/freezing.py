"""The graph of a function without variables: their values are constants in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

# Of TensorFlow 2.21: its API has no function that freezes another.
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from composite.hybrid import handles
from composite.hybrid.captures import Capture, captures, held, library_of, named, refuse_writes
from composite.hybrid.parts import Parts
from composite.hybrid.stated_shapes import Shapes, stated
from composite.hybrid.structure import indices
from composite.hybrid.tables import Contents
from composite.ops import call, functions


@dataclass(frozen=True)
class Frozen:
    """A function whose values follow from its inputs alone.

    Attributes:
        name: what people call it.
        library: the function, and those that its nodes run.
        inputs: dtypes and shapes of the inputs, in the order of the function's arguments.
        shapes: what the code states of its nodes' outputs.
        kept: the contents of the tables that its nodes make; other resources, for people.
        left_out: ops with effects that no output waits for, which are not in it.
        parts: the ragged and sparse inputs, whose tensors are among `inputs`.
    """

    name: str
    library: Any
    inputs: tuple[tf.TensorSpec, ...]
    shapes: Shapes
    kept: tuple[Contents | str, ...]
    left_out: tuple[str, ...]
    parts: tuple[Parts, ...]


def freeze(concrete: Any, name: str) -> Frozen:
    """The graph of a tf.ConcreteFunction. ValueError where it needs more than its inputs."""
    source = library_of(concrete)
    captured = captures(concrete, source)
    found = (capture for function in source for capture in named(function, source).values())
    refuse_writes((*captured.values(), *found), name)
    try:
        with _no_collections(concrete.graph):
            # Loops and branches stay ops that run functions: other nodes around them form regions.
            frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    except (ValueError, KeyError, NotImplementedError) as error:
        raise ValueError(f"{name} cannot be frozen: {error}") from error
    graph_def = frozen.graph.as_graph_def()
    definition = frozen.function_def
    library = {f.signature.name: f for f in graph_def.library.function}
    library[definition.signature.name] = definition
    order = functions.reachable(definition.signature.name, library)
    made = FunctionDefLibrary(function=[library[n] for n in order])
    own = len(concrete.inputs) - len(concrete.captured_inputs)
    kept = _hold(made, [captured[x.op.name] for x in frozen.inputs[own:]], name)
    library = {function.signature.name: function for function in made.function}
    kept += _hold_named(library, order, name)
    _drop_idle_waits(made.function[0], library)
    specs = tuple(
        tf.TensorSpec(x.shape, x.dtype, of.op.name)
        for x, of in zip(frozen.inputs[:own], concrete.inputs[:own], strict=True)
    )
    shapes = stated(concrete.graph)
    places = tf.nest.flatten(indices(concrete.structured_input_signature, tf.TensorSpec))
    parts = tuple(place for place in places if isinstance(place, Parts))
    return Frozen(name, made, specs, shapes, kept, _left_out(concrete, library), parts)


def _hold(library: Any, captured: Sequence[Capture], name: str) -> tuple[Contents | str, ...]:
    """Makes nodes of the last arguments of function[0], and tells of which resources."""
    definition = library.function[0]
    arguments = definition.signature.input_arg
    own = len(arguments) - len(captured)
    told = []
    for argument, capture in zip(list(arguments)[own:], captured, strict=True):
        nodes, kept, called = held(f"{argument.name}_held", capture, name)
        if capture.is_variable:
            _take_value(definition, argument.name, nodes[-1].attr["dtype"].type, name)
        _rename_input(definition, argument.name, f"{nodes[-1].name}:output:0")
        definition.node_def.extend(nodes)
        library.function.extend(called)
        told += [kept] if kept else []
    del arguments[own:]
    return tuple(told)


def _hold_named(
    library: Mapping[str, Any], order: Sequence[str], name: str
) -> tuple[Contents | str, ...]:
    """Makes tables in the places of nodes that find them by their names, and tells of which."""
    main, *others = order
    for function in others:
        for node in named(function, library):
            raise ValueError(
                f"{name} finds state by its name in a loop or a branch, {node}: make it a "
                "tf.lookup table, or compute that part outside"
            )
    definition, told = library[main], []
    for node, capture in named(main, library).items():
        nodes, kept, _ = held(node, capture, name)
        found = next(x for x in definition.node_def if x.name == node)
        (before,) = handles.handles_of(found, library)
        _rename_input(definition, before, f"{node}:output:0")
        definition.node_def.remove(found)
        definition.node_def.extend(nodes)
        told.append(kept)
    return tuple(told)


@contextmanager
def _no_collections(graph: Any) -> Iterator[None]:
    """A graph without what code of TensorFlow 1 has collected in it, initializers for one.

    Converting fails where these name nodes that another graph has.
    """
    collected = {key: graph.get_collection(key) for key in graph.get_all_collection_keys()}
    for key in collected:
        graph.clear_collection(key)
    try:
        yield
    finally:
        for key, values in collected.items():
            graph.get_collection_ref(key).extend(values)


def _take_value(definition: Any, handle: str, dtype: int, name: str) -> None:
    """Has nodes that read a variable take its value where they take its handle."""
    for node in [node for node in definition.node_def if handle in node.input]:
        if node.op not in ("Identity", "ReadVariableOp"):
            raise ValueError(
                f"{name} has {node.op} {node.name} read a variable that is no tf.Variable: read it "
                "outside, and pass its value"
            )
        if node.op == "Identity":
            _take_value(definition, f"{node.name}:output:0", dtype, name)
        _rename_input(definition, f"{node.name}:value:0", f"{node.name}:output:0")
        node.op = "Identity"
        node.attr.clear()
        node.attr["T"].type = dtype


def _rename_input(definition: Any, before: str, after: str) -> None:
    for node in definition.node_def:
        node.input[:] = [after if x == before else x for x in node.input]
    for key, value in definition.ret.items():
        if value == before:
            definition.ret[key] = after


def _drop_idle_waits(definition: Any, library: Mapping[str, Any]) -> None:
    """Drops control inputs from nodes behind which there is no effect, such as a read variable."""
    before = {
        node.name: [x.removeprefix("^").partition(":")[0] for x in node.input]
        for node in definition.node_def
    }
    acts: dict[str, bool] = {}
    nodes = {node.name: node for node in definition.node_def}
    for name in TopologicalSorter(before).static_order():
        if name in nodes:  # no argument
            is_acting = bool(_effects(nodes[name], library))
            acts[name] = is_acting or any(acts.get(x, False) for x in before[name])
    for node in definition.node_def:
        node.input[:] = [x for x in node.input if not x.startswith("^") or acts.get(x[1:], False)]


def _left_out(concrete: Any, library: Mapping[str, Any]) -> tuple[str, ...]:
    """Ops of the graph that TensorFlow would run for their effects, and that are not frozen."""
    kept = {node.op for function in library.values() for node in function.node_def}
    before = {f.signature.name: f for f in concrete.graph.as_graph_def().library.function}
    found = [_effects(op.node_def, before) for op in concrete.graph.control_outputs]
    return tuple(sorted(set().union(*found) - kept))


def _effects(node: Any, library: Mapping[str, Any]) -> set[str]:
    """The ops with effects that a node is, or has functions run."""
    reached = (
        name
        for function in functions.called_by(node, library)
        for name in functions.reachable(function, library)
    )
    inside = [x for name in reached for x in library[name].node_def]
    return {x.op for x in (node, *inside) if _has_effect(x, library)}


def _has_effect(node: Any, library: Mapping[str, Any]) -> bool:
    """Whether an op does more than to return values, and to run functions."""
    if functions.called_by(node, library) or node.op in handles.READS:
        return False
    definition = call.op_def(node.op)
    return definition is None or bool(definition.is_stateful)
