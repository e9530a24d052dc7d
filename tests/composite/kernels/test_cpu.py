"""Records of kernels for CPUs."""

from __future__ import annotations

import tensorflow as tf

from composite.binding.kernel_request import KernelRequest
from composite.compiler.tvm import Kernel, Target
from composite.compiler.tvm.ir.constants import Packed
from composite.compiler.tvm.proof import Proof
from composite.kernels import cpu


def test_a_record_says_what_the_compiler_found() -> None:
    target = Target.of("x86-64-v3", 2)
    kernel = Kernel(
        name="k",
        objects={},
        out_shapes=["s0,8", "8"],
        minimums=[2],
        divisors=[1],
        strategy="gemm",
        target=target,
        proof=Proof(1, 0, ()),
        packed=(Packed(1, 64, "float32"),),
        forwards=[[0], []],
    )
    request = KernelRequest(
        op="X", program="abc", in_shapes=(("s0", 8), (8, 8)), constants=(1,), hint=(4,)
    )
    made = cpu.record_of(request, kernel, target, tuned=True)
    assert (made.name, made.op, made.program) == ("k", "X", "abc")
    assert (made.in_shapes, made.out_shapes) == (request.in_shapes, ("s0,8", "8"))
    assert (made.minimums, made.divisors, made.constants) == ((2,), (1,), (1,))
    assert (made.forward_inputs, made.forward_outputs) == ((0,), (0,))
    assert (made.packed_sources, made.packed_elements) == ((1,), (64,))
    assert made.packed_dtypes == (tf.float32,)
    assert (made.strategy, made.verdict, made.device) == ("gemm (tuned)", "unmeasured", "CPU")
    assert (made.isa, made.target) == (target.isa, target.key)
