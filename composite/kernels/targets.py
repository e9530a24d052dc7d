"""What the kernels of a request are compiled for."""

from __future__ import annotations

from dataclasses import replace

import tensorflow as tf

from composite.binding.kernel_request import KernelRequest
from composite.compiler.tvm import NotCovered, Target
from composite.compiler.tvm.target import CudaTarget


def target_of(request: KernelRequest) -> Target:
    """The target of a request's kernel: this CPU, or the level of its GPU.

    NotCovered for a GPU below the lowest supported level.
    """
    if not request.gpu:
        return replace(Target.host(), invariant=request.invariant)
    if request.invariant:
        raise NotCovered("numerics='invariant': kernels for GPUs add up in an order of their own")
    try:
        allowed = tf.config.experimental.tensor_float_32_execution_enabled()
        return CudaTarget.of_device(request.gpu, tensor_float_32=allowed)
    except ValueError as error:
        raise NotCovered(str(error)) from None
