"""The expansion of a request for a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.binding import native
from composite.binding.call_request import CallRequest
from composite.binding.kernel_request import KernelRequest
from composite.binding.typed_record import Dims
from composite.compiler import account
from composite.compiler.tvm import NotCovered
from composite.kernels import shapes
from composite.ops import function_op


class Inexpandable(Exception):  # noqa: N818 - the caller's error, not ours
    """The body does not accept these shapes or attributes; the message has the author's place."""


def expansion(request: KernelRequest) -> Any:
    """The expansion of a request's shape class; Inexpandable or NotCovered if there is none."""
    try:
        return expand(request, request.in_shapes)
    except tf.errors.OpError as error:
        kind = NotCovered if native.is_not_yet(error) else Inexpandable
        raise kind(error.message) from error


@account.step("expand")
def expand(request: KernelRequest, dims: Sequence[Dims]) -> Any:
    """The expansion (FunctionDefLibrary) of a request's call; symbols are unknown dims.

    The values of inputs are unknown to the expansion, those of size inputs too. Composites in a
    function are expanded as well.
    """
    of_inputs = shapes.of_inputs(dims, request.size_inputs)
    known = tuple(tf.TensorShape([d if isinstance(d, int) else None for d in s]) for s in of_inputs)
    call = CallRequest(
        op=request.op,
        attrs=request.attrs,
        program=request.program,
        in_shapes=known,
        inlined=request.op == function_op.NAME,
    )
    return FunctionDefLibrary.FromString(native.call("composite_expand", call.to_node_def()))
