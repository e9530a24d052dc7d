"""The stand-in for a GPU: wrong kernels are found, and what is wrong with them is said."""

from __future__ import annotations

import numpy as np
import pytest

from composite.compiler.tvm.cuda.build import CudaKernel
from composite.compiler.tvm.cuda.launch import Argument, Launch, LaunchPlan
from composite.compiler.tvm.cuda.preamble import PREAMBLE
from composite.compiler.tvm.target import CudaTarget
from tests.gpu.shim.emulator import Emulator

# Threads 32 to 63 copy what all lanes then read as rows of matrices.
COPY = """
  __shared__ alignas(64) float all[256];
  for (int i = 0; threadIdx.x >= 32 && i < 2; ++i) {
    const int at = (threadIdx.x - 32) * 4 + i * 128;
    composite_begin_copy<16>(&all[at], &in0[at % 64], at % 64 < 32);
  }"""

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
    "copied_behind": f"""{COPY}
  composite_commit_copies();
  composite_wait_for_copies<0>();
  __syncthreads();
  uint32_t got[4];
  composite_load_matrices<false>(got, &all[threadIdx.x % 32 * 4]);
  out0[threadIdx.x] = composite_bits<float>(got[threadIdx.x / 32]);""",
    "copied_and_not_waited_for": f"""{COPY}
  composite_commit_copies();
  composite_wait_for_copies<1>();
  __syncthreads();
  uint32_t got[4];
  composite_load_matrices<false>(got, &all[threadIdx.x % 32 * 4]);
  out0[threadIdx.x] = composite_bits<float>(got[0]);
  composite_wait_for_copies<0>();""",
    "copied_by_others_and_not_met": f"""{COPY}
  composite_commit_copies();
  composite_wait_for_copies<0>();
  uint32_t got[4];
  composite_load_matrices<false>(got, &all[threadIdx.x % 32 * 4]);
  out0[threadIdx.x] = composite_bits<float>(got[threadIdx.x / 32]);""",
    "copied_and_left": COPY,
    "matrices_in_the_same_banks": """
  __shared__ alignas(64) float all[2048];
  uint32_t got[4];
  composite_load_matrices<false>(got, &all[threadIdx.x % 32 * 32]);""",
    "fragments_in_the_same_banks": """
  __shared__ alignas(64) float all[2048];
  composite_load_tf32(&all[threadIdx.x % 32 * 2]);""",
    "behind_the_end": """
  out0[threadIdx.x + 1] = in0[threadIdx.x];""",
}


def by_hand(name: str) -> CudaKernel:
    pointers = (Argument("in", 0), Argument("out", 0))
    aligned = pointers if name.startswith("copied") else ()
    head = f'extern "C" __global__ void {name}(float* __restrict__ in0, float* __restrict__ out0)'
    return CudaKernel(
        name=name,
        source=f"{PREAMBLE}{head} {{{BODIES[name]}\n}}\n",
        plan=LaunchPlan((Launch(name, "1", 1, 64, 0, pointers),), (), aligned),
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


def test_copies_arrive_and_what_is_not_valid_is_zero(emulator: Emulator) -> None:
    x = np.arange(64, dtype=np.float32)
    x[32:] = 0.0
    lanes = np.arange(32)
    matrices = [x[(lanes // 4 * 4 + 32 * i) % 64 + lanes % 4] for i in range(2)]
    np.testing.assert_array_equal(run(emulator, "copied_behind"), np.concatenate(matrices))


def test_what_is_read_before_a_barrier_has_not_been_written(emulator: Emulator) -> None:
    first = run(emulator, "without_a_barrier")  # the first warp reads what the second will write
    assert not np.array_equal(first, np.arange(63, -1, -1, dtype=np.float32))
    first = run(emulator, "copied_by_others_and_not_met")
    assert not np.array_equal(first, run(emulator, "copied_behind"))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("where_some_do_not_get", "some threads wait where others do not get"),
        ("with_half_a_warp", "some threads wait where others do not get"),
        ("unaligned", "an address is no multiple of what is accessed at once"),
        ("copied_and_not_waited_for", "read before a copy to it was waited for"),
        ("copied_and_left", "a block ends with copies under way"),
        ("matrices_in_the_same_banks", "rows of a matrix lie in the same banks"),
        ("fragments_in_the_same_banks", "elements of a fragment lie in the same banks"),
        ("behind_the_end", "written behind an array"),
    ],
)
def test_what_is_wrong_is_said(emulator: Emulator, name: str, wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        run(emulator, name)
