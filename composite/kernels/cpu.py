"""Records of compiled kernels for CPUs."""

from __future__ import annotations

import tensorflow as tf

from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.compiler.tvm import Kernel, Target


def record_of(
    request: KernelRequest, kernel: Kernel, target: Target, *, tuned: bool = False
) -> KernelRecord:
    """The record by which the runtime dispatches the kernel."""
    forwards = [(i, o) for o, inputs in enumerate(kernel.forwards) for i in inputs]
    return KernelRecord(
        op=request.op,
        name=kernel.name,
        attrs=request.attrs,
        program=request.program,
        constants=request.constants,
        in_shapes=request.in_shapes,
        size_inputs=request.size_inputs,
        out_shapes=tuple(kernel.out_shapes),
        minimums=tuple(kernel.minimums),
        divisors=tuple(kernel.divisors),
        forward_inputs=tuple(i for i, _ in forwards),
        forward_outputs=tuple(o for _, o in forwards),
        barriers=kernel.barriers,
        isa=target.isa,
        target=target.key,
        device="CPU",
        invariant=request.invariant,
        verdict="unmeasured",
        strategy=f"{kernel.strategy} (tuned)" if tuned else kernel.strategy,
        proof=f"{kernel.proof}{'; its check ran with guards' if kernel.guarded else ''}",
        packed_sources=tuple(one.source for one in kernel.packed),
        packed_elements=tuple(one.elements for one in kernel.packed),
        packed_dtypes=tuple(tf.as_dtype(one.dtype) for one in kernel.packed),
    )
