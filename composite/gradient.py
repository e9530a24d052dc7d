"""First-order gradients, derived from the expansion with no user code.

The backward of an op, for given attributes, dtypes and shapes, is a function: the expansion,
differentiated by TensorFlow, with the op's own outputs in place of what would be computed again.
It is an ordinary TensorFlow function of ordinary ops, so gradients of any order follow, and it is
made from the program that the runtime has, so a model loaded in a fresh process trains as well.

Not for how an op runs forward, and not for fused backwards: those compile this same function later.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite import call, functions, native
from composite.records import NodeDef

PROGRAM = "_composite_program"
BACKWARD = "composite_backward_"  # in the names of the functions made here

# A backward holds some 0.3 MB. Batch sizes share one (see _Shapes), so this is about attributes.
_LIMIT = 256

Gradient = Callable[..., Any]


class Backward(NamedTuple):
    """A differentiated expansion: takes inputs, outputs, then the output gradients it uses."""

    function: Any
    gives: list[bool]  # by input: whether there is a gradient


Shape = tuple[int | None, ...] | None  # None: unknown rank


class _Family:
    """Calls of one version with the same attributes, dtypes and ranks, whatever their sizes.

    Holds the input shapes that they have in common; a dim that varied is unknown. So ten thousand
    batch sizes need two backwards: one for the first size, one for all others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: tuple[Shape, ...] | None = None

    def widen(self, shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
        with self._lock:
            if self._seen is None:
                self._seen = shapes
            else:
                self._seen = tuple(map(_common, self._seen, shapes))
            return self._seen


def _common(a: Shape, b: Shape) -> Shape:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


@functools.lru_cache(maxsize=4 * _LIMIT)
def _family(*_key: Hashable) -> _Family:
    return _Family()


_lock = threading.Lock()
_registered: set[str] = set()
_overrides: dict[tuple[str, str], Gradient] = {}
_refusals: dict[tuple[str, str], str] = {}
_current: dict[str, str] = {}


def register(op_name: str) -> None:
    """Gives TensorFlow a gradient function for this op; once for each name."""
    with _lock:
        if op_name in _registered:
            return
        _registered.add(op_name)

    def gradient(op: Any, *output_gradients: Any) -> Any:
        return _gradient(op_name, op, output_gradients)

    tf.RegisterGradient(op_name)(gradient)


def override(op_name: str, digest: str, function: Gradient) -> None:
    """Has `function(op, *output_gradients)` stand in for the derived gradient of this version."""
    with _lock:
        _overrides[op_name, digest] = function


def refuse(op_name: str, digest: str, reason: str) -> None:
    """Has a request for the gradient of this version raise LookupError with `reason`."""
    with _lock:
        _refusals[op_name, digest] = reason


def overridden(op_name: str, digest: str) -> bool:
    """Whether the author gave this version a gradient of its own."""
    return (op_name, digest) in _overrides


def set_current(op_name: str, digest: str) -> None:
    """Which version an eager call stands for: its tape record carries no stamp."""
    _current[op_name] = digest


def _gradient(op_name: str, op: Any, output_gradients: Sequence[Any]) -> Any:
    attrs = call.attrs_of(op)
    stamp = attrs.pop(PROGRAM, None)
    digest = stamp.s.decode() if stamp is not None else _current.get(op_name, "")
    key = (op_name, digest)
    if key in _refusals and key not in _overrides:
        raise LookupError(_refusals[key])
    if key in _overrides:
        return _overrides[key](op, *output_gradients)
    request = NodeDef(op=op_name)
    for name, value in attrs.items():
        if not name.startswith("_"):
            request.attr[name].CopyFrom(value)
    if digest:
        request.attr[PROGRAM].s = digest.encode()
    used = [
        gradient is not None and (output.dtype.is_floating or output.dtype.is_complex)
        for gradient, output in zip(output_gradients, op.outputs, strict=True)
    ]
    if not any(used):
        return [None] * len(op.inputs)
    backward = _backward(request, list(op.inputs), used)
    wanted = [g for g, use in zip(output_gradients, used, strict=True) if use]
    results = iter(backward.function(*op.inputs, *op.outputs, *map(tf.convert_to_tensor, wanted)))
    return [next(results) if gives else None for gives in backward.gives]


def _backward(request: NodeDef, inputs: Sequence[Any], used: Sequence[bool]) -> Backward:
    shapes = tuple(_shape(x.shape) for x in inputs)
    ranks = tuple(x.shape.rank for x in inputs)
    key, uses = request.SerializeToString(deterministic=True), tuple(used)
    try:
        return _differentiate(key, uses, _family(key, uses, ranks).widen(shapes))
    except tf.errors.FailedPreconditionError as error:
        if not native.is_not_yet(error):
            raise
    # The body looks at a dim that varies: these shapes need a backward of their own.
    try:
        return _differentiate(key, uses, shapes)
    except tf.errors.FailedPreconditionError as error:
        if native.is_not_yet(error):
            raise _not_yet(request.op, error) from None
        raise


def _shape(shape: tf.TensorShape) -> Shape:
    return None if shape.rank is None else tuple(shape.as_list())


def _not_yet(op_name: str, error: tf.errors.FailedPreconditionError) -> Exception:
    return tf.errors.FailedPreconditionError(
        None,
        None,
        f"the gradient of {op_name} cannot be made while tracing with these shapes: "
        f"{error.message}; give the input a static shape there (tf.ensure_shape, or an "
        "input_signature)",
    )


@functools.lru_cache(maxsize=_LIMIT)
def _differentiate(request: bytes, used: tuple[bool, ...], shapes: tuple[Shape, ...]) -> Backward:
    asked = NodeDef.FromString(request)
    asked.attr["_in_shapes"].list.SetInParent()
    for shape in shapes:
        proto = tf.TensorShape(shape).as_proto()
        asked.attr["_in_shapes"].list.shape.add().CopyFrom(proto)
    library = FunctionDefLibrary.FromString(native.call("composite_expand", asked))
    try:
        with tf.init_scope():  # not a part of whatever is being traced: later traces share it
            return _differentiate_body(asked.op, functions.body(library), shapes, used)
    except LookupError as error:  # TensorFlow's "gradient registry has no entry for: X"
        raise LookupError(
            f"{asked.op} has no gradient, since an op of its body has none: {error}; give it one "
            "with @op.gradient"
        ) from error


def _differentiate_body(
    op_name: str, expansion: functions.Body, shapes: Sequence[Shape], used: Sequence[bool]
) -> Backward:
    placeholder = tf.compat.v1.placeholder
    with tf.Graph().as_default() as graph:
        inputs = [placeholder(d, s) for d, s in zip(expansion.input_dtypes, shapes, strict=True)]
        outputs = functions.inline(expansion, inputs, name="forward")
        wanted = [y for y, use in zip(outputs, used, strict=True) if use]
        seeds = [placeholder(y.dtype, y.shape) for y in wanted]
        found = tf.gradients(wanted, inputs, grad_ys=seeds)
        results = [None if g is None else tf.convert_to_tensor(g) for g in found]
        rounded = {op.name for op in graph.get_operations() if _rounds(op)}
    return _function(op_name, graph.as_graph_def(), [*inputs, *outputs, *seeds], results, rounded)


def _rounds(op: Any) -> bool:
    """Whether an operation may give other bits where it is computed again."""
    return op.type not in ("Const", "Placeholder") and any(
        y.dtype.is_floating or y.dtype.is_complex for y in op.outputs
    )


def _function(
    op_name: str,
    graph_def: Any,
    arguments: Sequence[Any],
    results: Sequence[Any],
    rounded: set[str],
) -> Backward:
    """The gradient graph as a function of inputs, outputs and seeds.

    An output that the gradient reads (the mask of a ReLU, say) is fed from the forward call, and
    what only computed it again is left out. `rounded` names the nodes that have floating results.
    """
    names = [r.name for r in results if r is not None]
    pruned, read = _consistent(graph_def, {t.name for t in arguments}, names, rounded)
    # TensorFlow forgets the functions of an If's or While's gradient with the graph they were made
    # in, and with it their names.
    functions.rename_functions(pruned, "_kept")

    def backward(*values: Any) -> Any:
        fed: dict[str, Any] = {}
        for tensor, value in zip(arguments, values, strict=True):
            if tensor.name in read or tensor.name in names:
                fed.setdefault(tensor.name, value)  # an output that is an input: the input's value
        made = [name for name in names if name not in fed]
        inputs = {name: fed[name] for name in read}
        tensors = tf.graph_util.import_graph_def(pruned, inputs, made, name="")
        by_name = fed | dict(zip(made, tensors, strict=True))
        return [by_name[name] for name in names]

    call.add_functions(pruned.library)
    backward.__name__ = f"{BACKWARD}{op_name}"
    specs = [tf.TensorSpec(t.shape, t.dtype) for t in arguments]
    traced = tf.function(backward, input_signature=specs, autograph=False)
    return Backward(traced.get_concrete_function(), [r is not None for r in results])


def _consistent(
    graph_def: Any, fed: set[str], names: Sequence[str], rounded: set[str]
) -> tuple[Any, set[str]]:
    """As `_needed`; outputs are not fed beside what they were computed from, computed again.

    The gradient of a maximum looks for it among the values that it is of: a kernel rounds those
    otherwise than the ops of the backward, and none would be equal.
    """
    producers = {node.name: node.input for node in graph_def.node}
    fed = set(fed)
    while True:
        pruned, read = _needed(graph_def, fed, names)
        again = {node.name for node in pruned.node} & rounded
        mixed = {name for name in read if _ancestors(name, producers, fed) & again}
        if not mixed:
            return pruned, read
        fed -= mixed


def _ancestors(
    tensor: str, producers: Mapping[str, Sequence[str]], fed: Collection[str]
) -> set[str]:
    """The nodes that a tensor is computed from, without those behind other fed tensors."""
    found: set[str] = set()
    waiting = list(producers[tensor.split(":", maxsplit=1)[0]])
    while waiting:
        text = waiting.pop()
        name = text.lstrip("^").split(":")[0]
        if name not in found and (text if ":" in text else f"{text}:0") not in fed:
            found.add(name)
            waiting += producers[name]
    return found


def _needed(graph_def: Any, fed: set[str], names: Sequence[str]) -> tuple[Any, set[str]]:
    """The part that makes `names`, not looking behind fed tensors, and the fed ones it reads."""
    nodes = {node.name: node for node in graph_def.node}
    kept: set[str] = set()
    read: set[str] = set()
    waiting = [name.split(":")[0] for name in names if name not in fed]
    while waiting:
        name = waiting.pop()
        if name in kept:
            continue
        kept.add(name)
        for text in nodes[name].input:
            tensor = text if ":" in text else f"{text}:0"  # a GraphDef leaves ":0" out
            if tensor in fed:
                read.add(tensor)
            else:
                waiting.append(text.lstrip("^").split(":")[0])
    pruned = GraphDef(versions=graph_def.versions, library=graph_def.library)
    pruned.node.extend(node for node in graph_def.node if node.name in kept)
    for node in pruned.node:
        node.attr.pop("_class", None)  # "beside the forward node", which may be gone
    return pruned, read
