"""What kernels call: where the blocks of a grid meet, on threads of the host, a block each."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from composite.compiler.tvm.cuda import nvrtc
from composite.compiler.tvm.cuda.preamble import PREAMBLE

HOST = """
#include <stdint.h>
#include <thread>
#include <vector>
#define __device__
#define __forceinline__ inline
static struct { unsigned x; } threadIdx;  // a block has one thread
static void __syncthreads() {}
static void composite_release_one(int64_t* at) { __atomic_fetch_add(at, 1, __ATOMIC_RELEASE); }
static int64_t composite_acquire(int64_t* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
"""

ROUNDS = """
// Returns how often a block saw, after they had met, what another one had not written.
extern "C" int Stale(int blocks, int rounds) {
  int64_t counter = 0;
  std::vector<int> wrote(blocks), stale(blocks);
  auto block = [&](int own) {
    int64_t goal = 0;
    for (int round = 1; round <= rounds; ++round) {
      wrote[own] = round;
      composite_meet(&counter, goal += blocks);
      for (int other = 0; other < blocks; ++other) stale[own] += wrote[other] != round;
      composite_meet(&counter, goal += blocks);
    }
  };
  std::vector<std::thread> all;
  for (int i = 0; i < blocks; ++i) all.emplace_back(block, i);
  for (auto& one : all) one.join();
  int sum = 0;
  for (int one : stale) sum += one;
  return sum;
}
"""


def meet() -> str:
    (text,) = re.findall(r"^__device__[^\n]* composite_meet\(.*?^}$", PREAMBLE, re.S | re.M)
    return str(text)


@pytest.mark.parametrize(("blocks", "rounds"), [(1, 100), (2, 100), (3, 60)])
def test_nobody_goes_on_before_all_are_there(blocks: int, rounds: int, tmp_path: Path) -> None:
    source, library = tmp_path / "meet.cc", tmp_path / "meet.so"
    source.write_text(HOST + meet() + ROUNDS)
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-pthread", "-o"]
    subprocess.run([*command, str(library), str(source)], check=True)
    assert ctypes.CDLL(str(library)).Stale(blocks, rounds) == 0


@pytest.mark.skipif(not nvrtc.available(), reason="nvidia-cuda-nvrtc-cu12 is not installed")
def test_what_others_wrote_is_read_behind_the_meeting() -> None:
    """What a block wrote is released with its count, and acquired by the last look at it."""
    kernel = """
extern "C" __global__ void once(float* data, int64_t* counter, int64_t goal) {
  data[blockIdx.x] = 1.0f;
  composite_meet(counter, goal);
  data[gridDim.x + blockIdx.x] = data[(blockIdx.x + 1) % gridDim.x];
}
"""
    text = nvrtc.ptx(PREAMBLE + kernel, "sm_80")
    wanted = ("st.global", "bar.sync", "red.release.gpu", "ld.acquire.gpu", "bar.sync",
              "ld.global", "st.global")  # fmt: skip
    text = text.replace("barrier.sync", "bar.sync")
    order = "|".join({*wanted})
    assert tuple(re.findall(rf"\s({order})\b", text)) == wanted
    assert "ld.global.nc" not in text
