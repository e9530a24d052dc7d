"""From the arguments of `composite.tune` to the request for a kernel, and a line for people."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.aot import prebuild
from composite.binding.records import NodeDef
from composite.kernels import shapes
from composite.ops.op import CompositeOp


def requests(op: CompositeOp, args: tuple[Any, ...], attrs: dict[str, Any]) -> list[NodeDef]:
    """The requests that a call makes, the one for its constants first.

    TypeError or ValueError for a call that is none.
    """
    bound = dict(op.__signature__.bind(*args, **attrs).arguments)
    bound.pop("name", None)
    for arg in op.schema.inputs:
        value = bound[arg.name]
        is_list = arg.is_list and isinstance(value, list | tuple) and not _is_spec(value)
        bound[arg.name] = [_spec(v) for v in value] if is_list else _spec(value)
    return prebuild.requests(op, bound)[::-1]


def _is_spec(value: Any) -> bool:
    """Whether it is (dtype, dims) or (dtype, dims, "constant")."""
    if not isinstance(value, tuple) or len(value) not in (2, 3):
        return False
    return isinstance(value[0], str | tf.DType) and isinstance(value[1], tuple | list)


def _spec(value: Any) -> Any:
    if isinstance(value, tf.TensorSpec) or _is_spec(value):
        return value
    if isinstance(value, tf.Variable):  # weights: at rest their kernels have them for constants
        return (value.dtype, tuple(value.shape.as_list()), "constant")
    tensor = tf.convert_to_tensor(value)
    return (tensor.dtype, tuple(tensor.shape.as_list()))


def spread_hints(request: NodeDef, offset: int) -> None:
    """Moves the sizes that stand for dims which vary."""
    hints = request.attr["_hint"].list.i
    for i, size in enumerate(hints):
        hints[i] = size + offset


def tensor_shapes(request: NodeDef) -> list[tf.TensorShape]:
    """The shapes, with the sizes that stand for dims which vary."""
    dims = shapes.from_record(request)
    values = shapes.samples(shapes.symbols(dims), shapes.hints(request), [], [])
    return [tf.TensorShape(shape) for shape in shapes.substitute(dims, values)]
