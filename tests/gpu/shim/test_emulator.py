"""The stand-in for a GPU: wrong kernels are found, and what is wrong with them is said."""

from __future__ import annotations

import numpy as np
import pytest

from composite.compiler.tvm.cuda.build import CudaKernel
from composite.compiler.tvm.cuda.launch import Argument, Launch, LaunchPlan
from composite.compiler.tvm.cuda.preamble import PREAMBLE
from composite.compiler.tvm.target import CudaTarget
from tests.gpu.shim.emulator import Emulator

BODIES = {
    "right": """
  __shared__ alignas(64) float all_ptr[64];
  all_ptr[threadIdx.x] = in0[threadIdx.x];
  __syncthreads();
  out0[threadIdx.x] = all_ptr[63 - threadIdx.x];""",
    "without_a_barrier": """
  __shared__ alignas(64) float all_ptr[64];
  all_ptr[threadIdx.x] = in0[threadIdx.x];
  composite_partner(0.0f, 1);
  out0[threadIdx.x] = all_ptr[63 - threadIdx.x];""",
    "where_some_do_not_get": """
  if (threadIdx.x < 40) __syncthreads();
  out0[threadIdx.x] = in0[threadIdx.x];""",
    "with_half_a_warp": """
  float x = in0[threadIdx.x];
  if (threadIdx.x < 16) x = composite_partner(x, 1);
  out0[threadIdx.x] = x;""",
    "unaligned": """
  composite_copy<4>(&out0[4 * (threadIdx.x % 16)], &in0[4 * (threadIdx.x % 16)]);""",
    "behind_the_end": """
  out0[threadIdx.x + 1] = in0[threadIdx.x];""",
}


def by_hand(name: str) -> CudaKernel:
    pointers = (Argument("in", 0), Argument("out", 0))
    head = f'extern "C" __global__ void {name}(float* __restrict__ in0, float* __restrict__ out0)'
    return CudaKernel(
        name=name,
        source=f"{PREAMBLE}{head} {{{BODIES[name]}\n}}\n",
        plan=LaunchPlan((Launch(name, "1", 1, 64, 0, pointers),), (), ()),
        out_shapes=["64"],
        minimums=[],
        strategy="",
        target=CudaTarget.level("sm_80"),
        knobs=(),
    )


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return Emulator([by_hand(name) for name in BODIES], tmp_path_factory.mktemp("wrong"))


def run(emulator: Emulator, name: str, *, reverse: bool = False) -> np.ndarray:
    x = np.arange(64, dtype=np.float32)
    (result,) = emulator.run(by_hand(name), [x], [[64]], [np.float32], reverse=reverse)
    return result


def test_threads_see_what_others_wrote_before_a_barrier(emulator: Emulator) -> None:
    expected = np.arange(63, -1, -1, dtype=np.float32)
    for reverse in (False, True):
        np.testing.assert_array_equal(run(emulator, "right", reverse=reverse), expected)


def test_what_is_read_before_a_barrier_has_not_been_written(emulator: Emulator) -> None:
    first = run(emulator, "without_a_barrier")  # the first warp reads what the second will write
    assert not np.array_equal(first, np.arange(63, -1, -1, dtype=np.float32))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("where_some_do_not_get", "some threads wait where others do not get"),
        ("with_half_a_warp", "some threads wait where others do not get"),
        ("unaligned", "an address is no multiple of what is accessed at once"),
        ("behind_the_end", "written behind an array"),
    ],
)
def test_what_is_wrong_is_said(emulator: Emulator, name: str, wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        run(emulator, name)
