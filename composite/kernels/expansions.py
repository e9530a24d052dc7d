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
from composite.kernels import shapes
from composite.ops import function_op


@account.step("expand")
def expand(request: KernelRequest, dims: Sequence[Dims]) -> Any:
    """The expansion (FunctionDefLibrary) of a request's call; symbols are unknown dims.

    The values of inputs are not known to it, those that are sizes included. Composites inside of a
    function are expanded.
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
