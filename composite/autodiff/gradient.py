"""Which gradient an op has: the derived one, or its author's; for which shapes it is made.

TensorFlow asks here, with a node of a graph or with what an eager tape recorded. The derived one is
made from the program that the runtime has, so a model loaded in a fresh process trains as well.

How a derived gradient is made and runs is in `backward`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from composite.autodiff import backward, eager_gradient, families
from composite.binding import settings
from composite.binding.call_request import CallRequest
from composite.binding.records import (
    BACKEND,
    EAGER,
    NUMERICS,
    PORTABLE,
    PROGRAM,
    XLA_WAIT,
    AttrValue,
)
from composite.ops import function_op, recorded
from composite.ops.registry import OPS


def register(op_name: str) -> None:
    """Gives TensorFlow a gradient function for a name; the registry's hook for new ones.

    A name that has one by tf.RegisterGradient keeps that.
    """

    def gradient(op: Any, *output_gradients: Any) -> Any:
        return _gradient(op_name, op, output_gradients)

    try:
        tf.RegisterGradient(op_name)(gradient)
    except KeyError:  # registered already
        OPS.note_foreign_gradient(op_name)


def _digest(op_name: str, op: Any) -> str:
    """The version that an op without a stamp stands for; "" when none is known.

    A tape may be older than the version that the name stands for now. When an eager tensor was made
    is known, and so is which version made it.
    """
    if isinstance(op, tf.Operation) or not op.outputs:
        return OPS.digest_at(op_name)
    return OPS.digest_at(op_name, recorded.made_at(op.outputs[0]))


def _gradient(op_name: str, op: Any, output_gradients: Sequence[Any]) -> Any:
    is_eager = eager_gradient.is_eager(op)
    attrs = {} if is_eager else recorded.attrs_of(op)
    stamp = attrs.pop(PROGRAM, None)
    digest = stamp.s.decode() if stamp is not None else _digest(op_name, op)
    own = OPS.own_gradient(digest)
    if own is not None and own.function is not None:
        return own.function(op, *output_gradients)
    if own is not None:
        raise LookupError(own.refusal)
    if is_eager:
        return eager_gradient.gradients(op_name, op, output_gradients, digest)
    return _of_node(op_name, op, attrs, output_gradients, digest)


def _of_node(
    op_name: str,
    op: Any,
    attrs: Mapping[str, AttrValue],
    output_gradients: Sequence[Any],
    digest: str,
) -> Any:
    used = [
        gradient is not None and families.has_gradient(output.dtype)
        for gradient, output in zip(output_gradients, op.outputs, strict=True)
    ]
    if not any(used):
        return [None] * len(op.inputs)
    if op_name == function_op.NAME:
        function_op.ensure_defined(op)
    keeps, skipped = _may_keep(op, attrs), set(getattr(op, "skip_input_indices", None) or ())
    needed = tuple(i not in skipped for i in range(len(op.inputs)))
    strict = settings.is_strict(attrs)
    way = backward.Way(tuple(used), needed, keeps, lasts=True, strict=strict)
    shapes = tuple(_shape(x.shape) for x in op.inputs)
    request = families.request(op_name, attrs, digest)
    found = families.serving(op_name, request, shapes, way, traced=keeps)
    wanted = [g for g, use in zip(output_gradients, used, strict=True) if use]
    gradients = found(op, [*map(tf.convert_to_tensor, wanted)], _options_of(attrs))
    if recorded.is_forward_mode():
        gradients = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
    for gradient, one in zip(gradients, op.inputs, strict=True):
        # A tf.while_loop that carries it insists on its shape. A variable's is not its handle's.
        if isinstance(gradient, tf.Tensor) and one.dtype != tf.resource:
            gradient.set_shape(one.shape)
    return gradients


def _options_of(attrs: Mapping[str, AttrValue]) -> dict[str, AttrValue]:
    """How a node is to run, for what is derived from it; "tvm" is about itself alone."""
    names = (BACKEND, NUMERICS, XLA_WAIT, EAGER, PORTABLE)
    kept = {name: attrs[name] for name in names if name in attrs}
    return {name: value for name, value in kept.items() if value.s != b"tvm"}


def plan(request: CallRequest, outputs: Sequence[tf.DType]) -> backward.Backward:
    """The backward that a traced call has, for `op.request` and the dtypes of its outputs.

    LookupError, FailedPreconditionError: it has none, for the reason that they say.
    """
    shapes = request.in_shapes
    key = families.request(request.op, request.attrs, request.program)
    used = tuple(map(families.has_gradient, outputs))
    if not any(used):
        raise LookupError("no output is floating")
    needed = (True,) * len(shapes)
    strict = settings.is_strict(settings.node_attrs())
    way = backward.Way(used, needed, keeps=True, lasts=True, strict=strict)
    return backward.differentiate(key, tuple(map(_shape, shapes)), way)


def _may_keep(op: Any, attrs: Mapping[str, AttrValue]) -> bool:
    """Whether the forward can keep values: its node is in the function that is being traced.

    An eager call is over, and a node that must have a kernel has none for further outputs.
    """
    node = recorded.node_of(op)
    if node is None or attrs.get(BACKEND, _AUTO).s == b"tvm":
        return False
    return bool(node.graph.building_function and node.graph is tf.compat.v1.get_default_graph())


_AUTO = AttrValue(s=b"auto")


def _shape(shape: tf.TensorShape) -> families.Shape:
    return None if shape.rank is None else tuple(shape.as_list())


register(function_op.NAME)
