"""What NVRTC makes of the kernels: no thread runs out of registers, no array is in slow memory."""

from __future__ import annotations

import pytest

from composite.compiler.tvm.cuda import nvrtc
from composite.compiler.tvm.cuda.preamble import PREAMBLE
from tests.gpu.shim.cases import Kernels
from tests.gpu.shim.emulator import functions_of

_SHARED = 227 << 10
"""Bytes of shared memory of a multiprocessor of level 9.0."""

pytestmark = pytest.mark.skipif(
    not nvrtc.available(), reason="nvidia-cuda-nvrtc-cu12 is not installed"
)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["sm_80", "sm_90"])
def test_kernels_keep_what_they_compute_in_registers(kernels: Kernels, level: str) -> None:
    of_level = [one for one in kernels.values() if one.target.isa == level]
    launches = [one for kernel in of_level for one in kernel.plan.launches]
    source = PREAMBLE + "".join(map(functions_of, of_level))
    made = nvrtc.cubin(source, level)
    assert made.data.startswith(b"\x7fELF")
    assert made.usage.keys() == {one.function for one in launches}
    for one in launches:
        used = made.usage[one.function]
        # A routine that is called, not inlined, saves some registers: an array would take more.
        assert used.spilled <= 16, one.function
        # Where one function has a swizzled pool, what all of them declare is rounded up.
        assert used.shared in (one.shared, -(-one.shared // 1024) * 1024), one.function
        # A sine of a large number is CUDA's own, which has a table on the stack; of a group of
        # random words a thread takes the one that its number says.
        if one.function.startswith(("functions", "dropped")):
            continue
        assert used.stack <= 16, one.function
        # The registers of a multiprocessor suffice for two blocks, or for 1024 threads; for one
        # block that takes a third of its shared memory or more, or waits for the others.
        together = 1 if one.resident or one.dynamic > _SHARED // 3 else 2
        assert used.registers * min(one.threads * together, 1024) <= 65536, one.function


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("tensor_dense", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        ("attention_half", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        ("tensor_wide", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
        ("tensor_float", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("group_dense", "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"),
        ("attention_group_causal", "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"),
    ],
)
def test_tensor_cores_multiply(kernels: Kernels, name: str, instruction: str) -> None:
    kernel = kernels[name]
    made = nvrtc.ptx(kernel.source, kernel.target.isa, is_portable=False)
    for wanted in (instruction, "cp.async.cg.shared.global", "cp.async.wait_group"):
        assert wanted in made
