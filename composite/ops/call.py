"""Calls of an op: eager, into graphs, onto gradient tapes.

With compiled_call.py and traced_call.py the only user of the private Python APIs of TensorFlow for
that, written against TF 2.21 and kept to what the wrappers that TF generates for its own ops use
(gen_math_ops.py and its kind): `execute.execute` for an eager call whose arguments have to be
converted, and `Graph._create_op_internal` while tracing, followed by `record_gradient`, which
`apply_op` would not do. Beside those, the fast path of an eager call of tensors, and the eager
context's library of functions, its caches of kernels and of numbers, and the options of grappler.
tests/composite/ops/test_call.py pins each of them.

It knows ops by their OpDef alone; versions, stamps and options are its callers' business.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop, context, core, execute, record
from tensorflow.python.framework import (
    config,
    op_callbacks,
    op_def_library,
    op_def_registry,
    ops,
)
from tensorflow.python.ops import gradients_util

from composite.binding import native
from composite.binding.records import PORTABLE
from composite.ops.call_arguments import Bound, bind, length, structured


def op_def(op_name: str) -> Any:
    """The OpDef that TensorFlow has for this name; None when it has none."""
    return op_def_registry.get(op_name)


def graph_call(
    op_name: str, arguments: Mapping[str, Any], stamps: Mapping[str, AttrValue], name: str | None
) -> Any:
    """Adds one node, with `stamps` as further attributes, and records it on an active tape.

    The stamps are there when shapes are inferred: an old version's node must not be measured by
    the new version's shape function.
    """
    _tell_rewriter_options()
    definition, graph, _ = op_def_library._GetOpDef(op_name, dict(arguments))
    with graph.as_default(), ops.name_scope(name or op_name) as scope:
        bound = bind(definition, arguments)
        attrs = {**bound.attrs, **stamps}
        if PORTABLE in stamps:
            op = _portable_makers[0](graph, op_name, bound.inputs, attrs, scope)
            flat = flat_attrs(definition, bound.attrs, stamps)
            op._gradient_function = functools.partial(_recorded_gradient, op_name, flat)
        else:
            op = node(graph, op_name, bound.inputs, attrs, scope, input_types=bound.input_types)
        outputs = _after_callbacks(op, bound, graph)
    if execute.must_record_gradient():
        flat = flat_attrs(definition, bound.attrs, stamps)
        execute.record_gradient(op_name, op.inputs, flat, outputs)
    return structured(outputs, bound.structure) if bound.structure else op


def node(  # noqa: PLR0913 - what TensorFlow makes an operation of
    graph: Any,
    op_name: str,
    inputs: Sequence[Any],
    attrs: Mapping[str, AttrValue],
    name: str,
    *,
    input_types: Sequence[Any] | None = None,
) -> Any:
    """Adds one node to a graph; on no tape. Returns the tf.Operation."""
    return graph._create_op_internal(
        op_name, inputs, name=name, input_types=input_types, attrs=attrs, op_def=op_def(op_name)
    )


def make_portable_by(maker: PortableMaker) -> None:
    """Has `maker` make what stands for nodes whose stamps have PORTABLE."""
    _portable_makers[:] = [maker]


# (graph, op, inputs, attributes, name) -> the call that stands for this node, in the graph
PortableMaker = Callable[[Any, str, Sequence[Any], Mapping[str, AttrValue], str], Any]
_portable_makers: list[PortableMaker] = []


def _recorded_gradient(op_name: str, attrs: tuple[Any, ...], op: Any, *upstream: Any) -> Any:
    """The gradient of an operation that stands for an op, by that op's: as a tape asks for it."""
    inputs, outputs = list(op.inputs), list(op.outputs)
    return backprop._gradient_function(
        op_name, attrs, len(inputs), inputs, outputs, upstream, (), ""
    )


def _tell_rewriter_options() -> None:
    """Has expansions that run often be optimized as the process's functions are."""
    eager = context.context()
    chosen = eager._optimizer_experimental_options
    if chosen != _told_options:
        options = eager.config.graph_options.rewrite_options
        native.call("composite_set_rewriter_options", options)
        _told_options.clear()
        _told_options.update(chosen)


# As the process chose them when the runtime was told last: it starts with TensorFlow's.
_told_options: dict[str, Any] = {}


def _after_callbacks(op: Any, bound: Bound, graph: Any) -> list[Any]:
    # tf.debugging.enable_check_numerics and the debugger see ops through these callbacks.
    outputs = list(op.outputs)
    if op_callbacks.should_invoke_op_callbacks():
        replaced = op_callbacks.invoke_op_callbacks(
            op.type, tuple(op.inputs), bound.attrs, tuple(outputs), op_name=op.name, graph=graph
        )
        if replaced is not None:
            outputs = list(replaced)
    return outputs


def eager_call(op_name: str, arguments: Mapping[str, Any], name: str | None) -> Any:
    """An eager call whose arguments need converting: numbers, NumPy arrays, variables."""
    eager = context.context()
    eager.ensure_initialized()
    definition = op_def_registry.get(op_name)
    bound = bind(definition, arguments)
    attrs = flat_attrs(definition, bound.attrs)
    count = sum(1 if n is None else n for n in bound.structure)
    outputs = execute.execute(
        op_name.encode(), count, inputs=bound.inputs, attrs=attrs, ctx=eager, name=name
    )
    if execute.must_record_gradient():
        execute.record_gradient(op_name, bound.inputs, attrs, outputs)
    return structured(list(outputs or []), bound.structure)


def fast_call(op_name: str, inputs: Sequence[Sequence[Any]], attrs: Sequence[Any]) -> list[Any]:
    """An eager call with lists of eager tensors, for an op whose inputs and one output are lists.

    `attrs` has those that do not follow from the inputs: name, value, name, value.
    """
    try:
        outputs = pywrap_tfe.TFE_Py_FastPathExecute(
            context.context(), op_name, None, *inputs, *attrs
        )
    except core._NotOkStatusException as error:
        ops.raise_from_not_ok_status(error, None)
    return list(outputs)


def are_eager_tensors(values: Sequence[Any]) -> bool:
    """Whether all of these are tensors that are there."""
    return {*map(type, values)} <= {ops.EagerTensor}


def forget_scalars() -> None:
    """Has TensorFlow convert Python numbers to eager tensors anew.

    It keeps the tensors by Python's equality, so that 0.0 is -0.0 where that was converted before.
    """
    pywrap_tfe.TFE_ClearScalarCache()


def is_recorded() -> bool:
    """Whether a tape or a forward accumulator may record what is called now."""
    return bool(execute.must_record_gradient())


def has_first_gradients(tensors: Sequence[Any]) -> bool:
    """Whether a call of these tensors has gradients of the first order alone, by one tape.

    False where a persistent tape may record gradients, too, or a callback sees the ops.
    """
    return bool(
        gradients_util.PossibleTapeGradientTypes(tensors)
        == gradients_util.POSSIBLE_GRADIENT_TYPES_FIRST_ORDER
        and record.should_record_backprop(tensors)  # and no forward accumulator
        and not op_callbacks.should_invoke_op_callbacks()
    )


def unrecorded(function: Callable[[Any], Any], argument: Any) -> Any:
    """Calls a function; no tape records its ops."""
    pywrap_tfe.TFE_Py_TapeSetStopOnThread()  # half the time of record.stop_recording
    try:
        return function(argument)
    finally:
        pywrap_tfe.TFE_Py_TapeSetRestartOnThread()


def record_call(
    op_name: str, inputs: Sequence[Any], attrs: Sequence[Any], outputs: Sequence[Any]
) -> None:
    """Has tapes record an eager call that was made in another way. `attrs`: as in `fast_call`."""
    execute.record_gradient(op_name, inputs, attrs, outputs)


def is_deterministic() -> bool:
    """Whether ops have to be deterministic: tf.config.experimental.enable_op_determinism."""
    return bool(config.is_op_determinism_enabled())


def eager_node(node: Any, inputs: Sequence[Any]) -> list[Any]:
    """Runs one NodeDef eagerly, recorded on no tape. Returns its outputs, flat."""
    return eager_runner(node)(inputs)


def eager_runner(node: Any) -> Callable[[Sequence[Any]], list[Any]]:
    """What runs a NodeDef eagerly, as often as it is called, and returns its outputs, flat.

    The tensor of a constant is made here, on the device of this scope.
    """
    if node.op == "Const":  # `execute` takes no attribute that is a tensor
        constant = [tf.constant(tf.make_ndarray(node.attr["value"].tensor))]
        return lambda _: list(constant)
    definition = op_def_registry.get(node.op)
    if definition is None:
        raise tf.errors.NotFoundError(None, None, f"op {node.op} (node {node.name}) is unknown")
    defaults = {a.name: a.default_value for a in definition.attr if a.HasField("default_value")}
    attrs = {**defaults, **node.attr}
    count = sum(length(arg, attrs) for arg in definition.output_arg)
    name, flat, eager = node.op.encode(), flat_attrs(definition, attrs), context.context()
    return lambda inputs: list(execute.execute(name, count, list(inputs), flat, eager) or [])


def eager_op(op_name: str, count: int, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[Any]:
    """Runs an op eagerly, recorded on no tape: `count` outputs. `attrs`: name, value, ..."""
    outputs = execute.execute(op_name, count, list(inputs), tuple(attrs), context.context())
    return list(outputs or [])


def eager_state() -> tuple[Any, Any]:
    """The eager context, and what it has for this thread: for direct calls (direct.py)."""
    eager = context._context or context.context()
    return eager, eager._thread_local_data


def context_capsule() -> Any:
    """The capsule of the C++ eager context."""
    eager = context.context()
    eager.ensure_initialized()
    return eager._context_handle


def flat_attrs(
    definition: Any, attrs: Mapping[str, AttrValue], stamps: Mapping[str, AttrValue] | None = None
) -> tuple[Any, ...]:
    """Attributes as the flat tuple that `execute` and the tape read: name, value, name, value."""
    flat: list[Any] = []
    for attr in definition.attr:
        flat += (attr.name, _execute_value(attrs[attr.name]))
    for name, value in (stamps or {}).items():
        flat += (name, value.s)
    return tuple(flat)


def _execute_value(value: AttrValue) -> Any:
    kind = value.WhichOneof("value")
    if kind != "list":
        return _execute_scalar(kind, getattr(value, kind))
    fields = value.list.ListFields()
    return [_execute_scalar(fields[0][0].name, x) for x in fields[0][1]] if fields else []


def _execute_scalar(kind: str, value: Any) -> Any:
    if kind == "func" and not value.attr:
        return value.name  # hashable, which tf.autodiff.ForwardAccumulator asks of attributes
    if kind != "shape":
        return value
    shape = tf.TensorShape(value)
    return None if shape.rank is None else shape.as_list()


def add_functions(library: Any) -> None:
    """Makes the functions of a FunctionDefLibrary known to the eager runtime, by their names.

    import_graph_def adds them to the graph alone, and a function that is traced there and then
    called eagerly does not find them.
    """
    eager = context.context()
    eager.ensure_initialized()
    for function in library.function:
        if not eager.has_function(function.signature.name):
            eager.add_function_def(function)


def register_function(owner: Any, definition: Any) -> None:
    """Makes a FunctionDef known to the eager runtime as long as its `owner` lives."""
    eager = context.context()
    eager.ensure_initialized()
    eager.add_function_def(definition)
    name = definition.signature.name
    weakref.finalize(owner, eager.remove_function, name).atexit = False


def cluster() -> bytes:
    """The cluster that the process is connected to; b"" for none."""
    server_def = context.context().get_server_def()
    return b"" if server_def is None else server_def.SerializeToString(deterministic=True)


def register_functions(graph: Any) -> None:
    """Makes the functions that were imported into a FuncGraph known to the eager runtime.

    They are forgotten with the last graph or function that holds them: this one, and those that
    call what was made of it. Their names must be this graph's alone.
    """
    eager = context.context()
    eager.ensure_initialized()
    for function in graph._functions.values():
        if not eager.has_function(function.name):
            register_function(function, function.definition)


def functions_of(graph: Any) -> list[Any]:
    """The FunctionDefs that a graph knows by itself."""
    return [function.definition for function in graph._functions.values()]


def graphs_of(graph: Any) -> dict[str, Any]:
    """The graphs of the functions that a graph knows by itself, by the functions' names."""
    known = {name: getattr(function, "graph", None) for name, function in graph._functions.items()}
    return {name: inner for name, inner in known.items() if inner is not None}


def forget_eager_kernels() -> None:
    """Has the next call of each op and tf.function go through the graph passes again."""
    eager = context.context()
    eager.ensure_initialized()
    eager.clear_kernel_cache()
    _epochs[:] = [object()]


def kernel_cache_epoch() -> object:
    """An object that is another one after eager kernels were forgotten."""
    return _epochs[-1]


_epochs = [object()]


def tensorflow_has_started() -> bool:
    """Whether TensorFlow has started its threads, without which a forked child cannot run much."""
    eager = context.context_safe()
    return eager is not None and bool(eager._initialized)


def eager_mode() -> Any:
    """A context in which this thread runs eagerly, whatever the process defaults to."""
    return context.eager_mode()
