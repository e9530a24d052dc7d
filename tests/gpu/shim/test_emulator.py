"""The stand-in for a GPU: wrong kernels are found, and what is wrong with them is said."""

from __future__ import annotations

from dataclasses import replace

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

# Blocks of 16 threads that turn a row around, each its part of it; what each has read, the others
# may write over.
HEAD = """
  const int at = (int)blockIdx.x * 16 + (int)threadIdx.x;
  int64_t* counter = (int64_t*)work1;
  float* const own = (float*)composite_pool(64);
  work0[at] = in0[at];"""
READ = """
  own[threadIdx.x] = work0[63 - at];"""
WRITE = """
  work0[at] = own[threadIdx.x] + 1.0f;"""
LAST = """
  out0[at] = work0[63 - at];"""
MEET = ["", *(f"\n  composite_meet(counter, {4 * i});" for i in (1, 2, 3))]

TOGETHER = {
    "meet": HEAD + MEET[1] + READ + MEET[2] + WRITE + MEET[3] + LAST,
    "meet_not_before_reading": HEAD + READ + MEET[1] + WRITE + MEET[2] + LAST,
    "meet_not_before_writing": HEAD + MEET[1] + READ + WRITE + MEET[2] + LAST,
    "meet_not_all": HEAD + "\n  if (blockIdx.x != 2)" + MEET[1] + READ,
    "meet_once_more": HEAD + MEET[1] + READ + "\n  if (blockIdx.x == 2)" + MEET[2],
    "meet_some_threads": HEAD + "\n  if (threadIdx.x < 9)" + MEET[1],
    "meet_for_too_many": HEAD + MEET[2] + READ,
    "meet_for_too_few": HEAD + MEET[1] + READ + MEET[1],
    "meet_one_after_the_other": HEAD + MEET[1],
    "meet_and_leave_the_pool": HEAD + MEET[1] + "\n  own[16] = 0.0f;",
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


def together(name: str) -> CudaKernel:
    """Four blocks that are there at a time, behind a launch that zeroes their counter."""
    arguments = tuple(Argument(k, i) for k, i in (("in", 0), ("out", 0), ("work", 0), ("work", 1)))
    names = ", ".join(f"float* {one}" for one in map(str, arguments))
    zero = f'extern "C" __global__ void {name}_zero(int64_t* work1) {{\n  *work1 = 0;\n}}\n'
    own = f'extern "C" __global__ void {name}({names}) {{{TOGETHER[name]}\n}}\n'
    resident = name != "meet_one_after_the_other"
    launches = (
        Launch(f"{name}_zero", "1", 1, 1, 0, arguments[3:]),
        Launch(name, "4", 1, 16, 0, arguments, dynamic=128, resident=resident),
    )
    return replace(
        by_hand("right"),
        name=name,
        source=f"{PREAMBLE}{zero}{own}",
        plan=LaunchPlan(launches, ("256", "8"), ()),
    )


def kernel_of(name: str) -> CudaKernel:
    return together(name) if name in TOGETHER else by_hand(name)


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    kernels = [kernel_of(name) for name in (*BODIES, *TOGETHER)]
    return Emulator(kernels, tmp_path_factory.mktemp("wrong"))


def run(emulator: Emulator, name: str, *, reverse: bool = False) -> np.ndarray:
    x = np.arange(64, dtype=np.float32)
    (result,) = emulator.run(
        kernel_of(name), [x], [[64]], [np.float32], reverse=reverse, multiprocessors=4
    )
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


def test_blocks_see_what_others_wrote_before_they_met(emulator: Emulator) -> None:
    expected = np.arange(1, 65, dtype=np.float32)
    for reverse in (False, True):
        np.testing.assert_array_equal(run(emulator, "meet", reverse=reverse), expected)


@pytest.mark.parametrize("name", ["meet_not_before_reading", "meet_not_before_writing"])
def test_blocks_that_do_not_meet_read_something_else(emulator: Emulator, name: str) -> None:
    for reverse in (False, True):
        found = run(emulator, name, reverse=reverse)
        assert not np.array_equal(found, np.arange(1, 65, dtype=np.float32))


def test_a_counter_that_nobody_has_zeroed(emulator: Emulator) -> None:
    kernel = together("meet")
    plan = replace(kernel.plan, launches=kernel.plan.launches[1:])
    with pytest.raises(AssertionError, match="blocks wait for more than there are"):
        emulator.run(
            replace(kernel, plan=plan), [np.zeros(64, np.float32)], [[64]], [np.float32],
            multiprocessors=4,
        )  # fmt: skip


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
        ("meet_not_all", "some blocks wait where others do not get"),
        ("meet_once_more", "some blocks wait where others do not get"),
        ("meet_some_threads", "some threads wait where others do not get"),
        ("meet_for_too_many", "blocks wait for more than there are"),
        ("meet_for_too_few", "blocks do not wait for each other"),
        ("meet_one_after_the_other", "blocks meet that are not there at a time"),
        ("meet_and_leave_the_pool", "written behind the shared memory of a block"),
    ],
)
def test_what_is_wrong_is_said(emulator: Emulator, name: str, wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        run(emulator, name)
