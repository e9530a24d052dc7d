"""From the arguments of `composite.tune` to the request for a kernel, and a line for people."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tensorflow as tf

from composite.aot import stated_calls
from composite.binding.call_request import CallRequest
from composite.binding.kernel_request import KernelRequest
from composite.kernels import shapes
from composite.ops.op import CompositeOp


def requests(op: CompositeOp, args: tuple[Any, ...], attrs: dict[str, Any]) -> list[KernelRequest]:
    """The requests that a call makes, the one for its constants first.

    TypeError or ValueError for a call that is none.
    """
    bound = dict(op.__signature__.bind(*args, **attrs).arguments)
    bound.pop("name", None)
    for arg in op.schema.inputs:
        value = bound[arg.name]
        is_list = arg.is_list and isinstance(value, list | tuple) and not _is_spec(value)
        bound[arg.name] = [_spec(v) for v in value] if is_list else _spec(value)
    return stated_calls.requests(op, bound)[::-1]


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


def with_larger_hint(request: KernelRequest) -> KernelRequest:
    """The request with other sizes in place of dims which vary: each is one more."""
    return replace(request, hint=tuple(size + 1 for size in request.hint))


def sized(request: KernelRequest) -> CallRequest:
    """The call that a request stands for: dims which vary have the sizes of its hint."""
    dims = request.in_shapes
    values = shapes.samples(shapes.symbols(dims), request.hint, [], [])
    return CallRequest(
        op=request.op,
        attrs=request.attrs,
        program=request.program,
        in_shapes=tuple(
            map(
                tf.TensorShape,
                shapes.of_inputs(shapes.substitute(dims, values), request.size_inputs),
            )
        ),
    )
