"""What keeps one call, or its gradient, from a kernel: asked of the compiler, up to the loops.

Not for: what is said of it (remedies.py, report.py).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.autodiff import gradient as derived
from composite.binding import native
from composite.binding.call_request import CallRequest
from composite.binding.kernel_request import KernelRequest
from composite.compiler import op_traits
from composite.compiler import tvm as backend
from composite.compiler.node_place import of_node
from composite.compiler.tvm.read.obstacles import Obstacle, obstacles, with_sizes
from composite.kernels.expansions import expand
from composite.linting.calls import Call, sized
from composite.ops import function_op, functions
from composite.ops.op import CompositeOp
from composite.ops.registry import OPS

Dims = Sequence[Sequence[int | str]]

_PLACED = re.compile(r"(?P<place>\S+?(:\d+){1,2}): (?P<reason>.*)", re.DOTALL)

_OF_FUNCTION = re.compile(r"__composite_\w+: ")  # of a loop, for one: the place says which


class Forward(NamedTuple):
    """A call.

    Attributes:
        obstacles: what keeps it from a kernel, with known sizes and with dims that vary.
        varying: what keeps dims that vary from one, where known sizes have one.
        library: its expansion with known sizes; None where it needs the value of an input.
    """

    obstacles: list[Obstacle]
    varying: list[Obstacle]
    library: Any


def forward(request: KernelRequest, known: KernelRequest) -> Forward:
    """What keeps a call from a kernel; `known` is the same with known sizes."""
    varying, _ = _of_request(request)
    fixed, library = _of_request(known)
    if known.in_shapes == request.in_shapes or (varying and fixed):
        return Forward(fixed, [], library)
    return Forward([], varying, library)


def known(op: CompositeOp, call: Call, request: KernelRequest) -> KernelRequest:
    """A call with sizes that its body takes. Raises what the call does where it takes none."""
    *others, last = sized(request)
    for one in others:
        try:
            _traced(op, call, one.in_shapes)
        except (ValueError, TypeError, tf.errors.OpError):
            continue
        return one
    _traced(op, call, last.in_shapes)
    return last


def _of_request(request: KernelRequest) -> tuple[list[Obstacle], Any]:
    try:
        library = expand(request, request.in_shapes)
    except tf.errors.FailedPreconditionError as error:
        if not native.is_not_yet(error):
            raise
        place, reason = split_place(error.message)
        return [Obstacle("", reason, place)], None
    return of_library(library, request.in_shapes), library


def split_place(message: str) -> tuple[str, str]:
    """The place that an error of the runtime begins with, "" where it has none, and the rest."""
    found = _PLACED.fullmatch(message)
    return (found["place"], found["reason"]) if found else ("", message)


def of_library(library: Any, in_shapes: Dims | None) -> list[Obstacle]:
    """What keeps function[0] from a kernel: all that is read, or else what refuses the whole."""
    if in_shapes is None:
        return [Obstacle("", "an input of unknown rank", "")]
    shapes, sizes = with_sizes(library, in_shapes)
    found = obstacles(library, shapes, sizes)
    if not found:
        try:
            backend.write(library, shapes, sizes=sizes)
        except backend.NotCovered as answer:
            found = [Obstacle.of(answer)]
    return [one._replace(reason=_OF_FUNCTION.sub("", one.reason)) for one in found]


class Gradient(NamedTuple):
    """The derived gradient of a call in a traced step.

    Attributes:
        obstacles: what keeps its kernels: of the backward, and of the forward that keeps values.
        again: what the backward computes again although that is more than reading it: each op with
            its place, and no reason.
        why_none: why there is no derived gradient; "" if there is one.
    """

    obstacles: list[Obstacle]
    again: list[Obstacle]
    why_none: str = ""


def gradient(op: CompositeOp, call: Call, known: KernelRequest, library: Any) -> Gradient | None:
    """What keeps the gradient of a call from kernels; None where there is nothing to differentiate.

    `known` is the call with known sizes, `library` its expansion.
    """
    if OPS.overrides_gradient(op):
        return Gradient([], [], "the gradient is its author's, not derived")
    try:
        graph = _traced(op, call, known.in_shapes, gradient=True)
        if graph is None:
            return None
        outputs = [tf.as_dtype(arg.type) for arg in library.function[0].signature.output_arg]
        shapes = tuple(map(tf.TensorShape, known.in_shapes))
        asked = CallRequest.of_node(op.op_name, known.attrs, program=op.digest, in_shapes=shapes)
        again = set(derived.plan(asked, outputs).recomputed)
    except (LookupError, ValueError, tf.errors.OpError) as error:
        return Gradient([], [], f"no gradient: {getattr(error, 'message', None) or error}")
    nodes = [node for function in library.function for node in function.node_def]
    dear = [Obstacle(n.op, "", of_node(n)) for n in nodes if n.op in again and _is_dear(n.op)]
    found = [one for own, dims in _calls(graph) for one in of_library(own, dims)]
    return Gradient(list(dict.fromkeys(found)), list(dict.fromkeys(dear)))


def _traced(op: CompositeOp, call: Call, shapes: Dims, *, gradient: bool = False) -> Any:
    """The graph of a call, or of its gradient; None where nothing is to be differentiated.

    Raises as the call, or the gradient, does.
    """
    specs = _specs(op, call, shapes)
    attrs = {name: value for name, value in call.items() if name not in specs}

    def step(**inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x for x in tf.nest.flatten(inputs) if _is_differentiable(x)])
            outputs = [y for y in tf.nest.flatten(op(**inputs, **attrs)) if _is_differentiable(y)]
        if not gradient:
            return []
        return tape.gradient(outputs, tf.nest.flatten(inputs)) if outputs else []

    concrete = tf.function(step, autograph=False).get_concrete_function(**specs)
    return concrete.graph if concrete.outputs else None


def _is_differentiable(value: Any) -> bool:
    """Whether it is a tensor that has a gradient; the result of an op without outputs is none."""
    return isinstance(value, tf.Tensor) and (value.dtype.is_floating or value.dtype.is_complex)


def _specs(op: CompositeOp, call: Call, shapes: Dims) -> dict[str, Any]:
    """The inputs of a call as TensorSpecs of these shapes."""
    left = iter(shapes)
    specs: dict[str, Any] = {}
    for arg in op.schema.inputs:
        values = call[arg.name] if arg.is_list else [call[arg.name]]
        dtypes = [v.dtype if isinstance(v, tf.TensorSpec) else tf.as_dtype(v[0]) for v in values]
        own = [tf.TensorSpec(next(left), dtype) for dtype in dtypes]
        specs[arg.name] = own if arg.is_list else own[0]
    return specs


def _calls(graph: Any) -> Iterator[tuple[Any, Dims | None]]:
    """The functions that a traced gradient has kernels for, and the dims of their inputs."""
    library = {f.signature.name: f for f in graph.as_graph_def().library.function}
    for node in graph.get_operations():
        if node.type == function_op.NAME:
            names = functions.reachable(node.get_attr("f").name, library)
            yield FunctionDefLibrary(function=[library[name] for name in names]), _dims(node.inputs)


def _dims(tensors: Sequence[Any]) -> Dims | None:
    """The dims of tensors, of which each that is not known is a symbol; None without a rank."""
    if any(x.shape.rank is None for x in tensors):
        return None
    symbols = (f"s{i}" for i in itertools.count())
    return [[next(symbols) if d is None else d for d in x.shape.as_list()] for x in tensors]


def _is_dear(op: str) -> bool:
    """Whether an op sums up products, or runs a function: more than reading its result again."""
    traits = op_traits.of(op)
    return traits.runs is not None or traits.terms not in (None, op_traits.Terms.REDUCED)
