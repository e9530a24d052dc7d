"""What kernels use of the products of four warps together (``wgmma``), as CUDA functions.

Four warps multiply 64 rows by up to 256 columns while they go on: the second factor, and the first
one unless it is in registers, lie in shared memory in pieces of 128 bytes that are swizzled (PTX
ISA, "Asynchronous warpgroup level matrix instructions"). GPUs of level 9.0 have these
instructions, no other ones do. The tests' stand-in for a GPU defines the same names.
"""

from __future__ import annotations

COLUMNS = (64, 128, 256)
"""How many columns of sums a product may have."""

_HEAD = """\
#if !defined(COMPOSITE_NO_GPU) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
// A factor in shared memory, of pieces of 128 bytes, eight of which are swizzled together. Where
// the other dimension is the near one, each 64 elements of it are 8192 bytes apart. A factor that
// begins 16 bytes further is one more.
__device__ __forceinline__ uint64_t composite_matrix(const void* at) {
  const uint64_t place = (uint32_t)__cvta_generic_to_shared(at);
  return (place & 0x3FFFF) >> 4 | (uint64_t)(8192 >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
         (uint64_t)1 << 62;
}

// What threads have copied to shared memory is there for products that begin later.
__device__ __forceinline__ void composite_wgmma_publish() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Registers that were written before are there for the products that begin now.
__device__ __forceinline__ void composite_wgmma_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void composite_wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all but the last groups of products have ended.
template <int groups>
__device__ __forceinline__ void composite_wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

// The same; nothing reads the sums before.
template <int count>
__device__ __forceinline__ void composite_wgmma_end(float* sums) {
  composite_wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Waits until all but the last groups of products have ended, which read these registers: they may
// be written then.
template <int groups, int count>
__device__ __forceinline__ void composite_wgmma_release(uint32_t* registers) {
  composite_wgmma_wait<groups>();
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(registers[i])::"memory");
}

// Adds the product of 64 rows of 16 elements (of TF32: 8) and as many columns; which factors lie
// with their other dimension near is stated. A first factor in registers has the fragments of
// `mma.sync`.
template <int columns, int a_far, int b_far> struct composite_wgmma;
"""

_TAIL = """
#define COMPOSITE_WGMMA(name)                                                                     \\
  template <int columns, int a_far, int b_far>                                                    \\
  __device__ __forceinline__ void composite_wgmma_##name(float* sums, uint64_t a, uint64_t b) {   \\
    composite_wgmma<columns, a_far, b_far>::name(sums, a, b);                                     \\
  }                                                                                               \\
  template <int columns, int b_far>                                                               \\
  __device__ __forceinline__ void composite_wgmma_held_##name(float* sums, const uint32_t* a,     \\
                                                              uint64_t b) {                       \\
    composite_wgmma<columns, 0, b_far>::held_##name(sums, a, b);                                  \\
  }
COMPOSITE_WGMMA(float16)
COMPOSITE_WGMMA(bfloat16)

// Of the second factor the tensor cores read 10 bits of each mantissa.
template <int columns>
__device__ __forceinline__ void composite_wgmma_held_tf32(float* sums, const uint32_t* a,
                                                          uint64_t b) {
  composite_wgmma<columns, 0, 0>::held_tf32(sums, a, b);
}
#endif
"""


def _function(name: str, kind: str, columns: int, *, held: bool) -> str:
    """Return a product as a member of `composite_wgmma`."""
    count = columns // 2
    sums = ", ".join(f"%{i}" for i in range(count))
    first = "{" + ", ".join(f"%{count + i}" for i in range(4)) + "}" if held else f"%{count}"
    second = count + (4 if held else 1)
    flags = f"1, 1, 1, %{second + 1}" if held else f"1, 1, 1, %{second + 1}, %{second + 2}"
    outputs = ", ".join(f'"+f"(s[{i}])' for i in range(count))
    inputs = ", ".join(f'"r"(a[{i}])' for i in range(4)) if held else '"l"(a)'
    far = ', "n"(b_far)' if held else ', "n"(a_far), "n"(b_far)'
    if kind == "tf32":  # its second factor lies in one way only
        flags, far = "1, 1, 1", ""
    parameter = "const uint32_t* a" if held else "uint64_t a"
    depth = 8 if kind == "tf32" else 16
    return (
        f"  static __device__ __forceinline__ void {'held_' * held}{name}(float* s, {parameter}, "
        f"uint64_t b) {{\n"
        f'    asm volatile("wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{kind}.{kind} "'
        "\n"
        f'      "{{{sums}}}, "\n      "{first}, %{second}, {flags};"\n'
        f'      : {outputs}\n      : {inputs}, "l"(b){far});\n  }}\n'
    )


def _products(columns: int) -> str:
    functions = "".join(
        _function(name, kind, columns, held=held)
        for name, kind in (("float16", "f16"), ("bfloat16", "bf16"))
        for held in (False, True)
    ) + _function("tf32", "tf32", columns, held=True)
    head = f"template <int a_far, int b_far> struct composite_wgmma<{columns}, a_far, b_far> {{\n"
    return f"{head}{functions}}};\n"


WARP_GROUP = _HEAD + "".join(map(_products, COLUMNS)) + _TAIL
