"""The graph of a function without variables: their values are constants in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.node_def_pb2 import NodeDef

# Of TensorFlow 2.21: its API has no function that freezes another.
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from composite.ops import call, functions

_WRITES = ("Assign", "ResourceApply", "ResourceScatter", "ResourceSparseApply")  # begin their ops


@dataclass(frozen=True)
class Frozen:
    """A function whose values follow from its inputs alone.

    Attributes:
        name: what people call it.
        library: the function, and those that its nodes run.
        inputs: dtypes and shapes of the inputs, in the order of the function's arguments.
        left_out: ops with effects that no output waits for, which are not in it.
    """

    name: str
    library: Any
    inputs: tuple[tf.TensorSpec, ...]
    left_out: tuple[str, ...]


def freeze(concrete: Any, name: str) -> Frozen:
    """The graph of a tf.ConcreteFunction. ValueError where it needs more than its inputs."""
    _refuse_writes(concrete, name)
    try:
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
    outer = {inner.op.name: outer for outer, inner in concrete.graph.captures}
    held = [outer.get(x.op.name) for x in frozen.inputs[own:]]
    _hold(made.function[0], held, name)
    _drop_idle_waits(made.function[0])
    specs = tuple(
        tf.TensorSpec(x.shape, x.dtype, of.op.name)
        for x, of in zip(frozen.inputs[:own], concrete.inputs[:own], strict=True)
    )
    return Frozen(name, made, specs, _left_out(concrete, made))


def _refuse_writes(concrete: Any, name: str) -> None:
    """Raises ValueError for a function that changes a variable."""
    graph_def = concrete.graph.as_graph_def()
    for node in functions.nodes(graph_def):
        if node.op.startswith(_WRITES):
            raise ValueError(
                f"{name} writes into a variable ({node.op} {node.name}): a module holds the values "
                "of variables as constants. Return the new value, and assign it outside"
            )


def _hold(definition: Any, values: Sequence[Any], name: str) -> None:
    """Makes constants of a function's last arguments. ValueError for what has no value."""
    arguments = definition.signature.input_arg
    own = len(arguments) - len(values)
    for argument, value in zip(list(arguments)[own:], values, strict=True):
        if functions.is_handle(tf.as_dtype(argument.type)) or not hasattr(value, "numpy"):
            readers = [n for n in definition.node_def if argument.name in n.input]
            ops = ", ".join(sorted({n.op for n in readers})) or "a function that it calls"
            raise ValueError(
                f"{name} keeps state that {ops} needs, {argument.name}: a "
                "module has constants alone. Compute that part outside, and pass its result"
            )
        node = NodeDef(name=f"{argument.name}_held", op="Const")
        node.attr["dtype"].type = value.dtype.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
        _rename_input(definition, argument.name, f"{node.name}:output:0")
        definition.node_def.append(node)
    del arguments[own:]


def _rename_input(definition: Any, before: str, after: str) -> None:
    for node in definition.node_def:
        node.input[:] = [after if x == before else x for x in node.input]
    for key, value in definition.ret.items():
        if value == before:
            definition.ret[key] = after


def _drop_idle_waits(definition: Any) -> None:
    """Drops control inputs from nodes behind which there is no effect, such as a read variable."""
    before = {
        node.name: [x.removeprefix("^").partition(":")[0] for x in node.input]
        for node in definition.node_def
    }
    acts: dict[str, bool] = {}
    ops = {node.name: node.op for node in definition.node_def}
    for name in TopologicalSorter(before).static_order():
        if name in ops:  # no argument
            acts[name] = _has_effect(ops[name]) or any(acts.get(x, False) for x in before[name])
    for node in definition.node_def:
        node.input[:] = [x for x in node.input if not x.startswith("^") or acts.get(x[1:], False)]


def _left_out(concrete: Any, library: Any) -> tuple[str, ...]:
    """Ops of the graph that TensorFlow would run for their effects, and that are not frozen."""
    kept = {node.op for function in library.function for node in function.node_def}
    effects: Sequence[Any] = concrete.graph.control_outputs
    return tuple(sorted({op.type for op in effects if _has_effect(op.type)} - kept))


def _has_effect(op: str) -> bool:
    definition = call.op_def(op)
    if definition is None:  # a function that is called as an op
        return True
    return op != "ReadVariableOp" and bool(definition.is_stateful)
