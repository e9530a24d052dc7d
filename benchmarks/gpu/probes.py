"""The limits of a GPU, measured: bytes that it copies a second, and what its tensor cores multiply.

The kernels are CUDA of their own.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.gpu import bundle
from benchmarks.gpu.driver import Driver
from benchmarks.gpu.timing import best

_BYTES = 1 << 30
_TURNS = 4096
_FLOPS = 2 * 16 * 8 * 16
"""Of one instruction, m16n8k16."""
_CHAINS = 8
_THREADS = 256
_RESIDENT = 4
KEY = "probes"

KERNELS = """
extern "C" __global__ void probe_copy(float* to, const float* from, int64_t n) {
  for (int64_t i = blockIdx.x * (int64_t)256 + threadIdx.x; i < n; i += composite_blocks() * 256)
    composite_copy<4>(to + 4 * i, from + 4 * i);
}

extern "C" __global__ void probe_multiply(float* out, int64_t turns) {
  uint32_t a[4], b[2];
  float sums[8][4] = {};
  for (int i = 0; i < 4; ++i) a[i] = threadIdx.x * 0x3c01u + i;
  for (int i = 0; i < 2; ++i) b[i] = threadIdx.x * 0x2c03u + i;
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int chain = 0; chain < 8; ++chain) composite_mma_float16(sums[chain], a, b);
  }
  float total = 0;
  for (int chain = 0; chain < 8; ++chain) total += sums[chain][0] + sums[chain][3];
  out[blockIdx.x * (int64_t)256 + threadIdx.x] = total;
}
"""


def make(folder: Path, levels: tuple[str, ...]) -> None:
    """Compile them into a bundle."""
    from composite.compiler.tvm.cuda import nvrtc
    from composite.compiler.tvm.cuda.preamble import PREAMBLE

    source = PREAMBLE + KERNELS
    for level in levels:
        bundle.code_file(folder, KEY, level).write_bytes(nvrtc.cubin(source, level).data)
    text = nvrtc.ptx(source, levels[0])
    bundle.code_file(folder, KEY, bundle.PTX).write_text(text, encoding="utf-8")


def measure(
    driver: Driver, folder: Path, size: int = _BYTES, turns: int = _TURNS
) -> dict[str, float]:
    """Bytes read and written a second by a copy, and operations of 16-bit products a second."""
    code = bundle.code_of(folder, KEY, driver.level)
    blocks = driver.multiprocessors * _RESIDENT
    memory = {"out0": driver.allocate(size), "in0": driver.allocate(size)}
    chunks = size // 16
    copy = bundle.Step("probe_copy", chunks // _THREADS, _THREADS, ["out0", "in0", chunks])
    copied = best(driver, lambda: driver.launch(code, copy, memory))
    product = bundle.Step("probe_multiply", blocks, _THREADS, ["out0", turns])
    multiplied = best(driver, lambda: driver.launch(code, product, memory))
    flops = blocks * _THREADS // 32 * turns * _CHAINS * _FLOPS
    return {"bytes a second": 2 * size / copied, "operations a second": flops / multiplied}
