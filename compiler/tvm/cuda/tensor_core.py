"""What kernels use of tensor cores, and of copies that go on behind a thread, as CUDA functions.

A warp multiplies 16 rows by 8 columns at a time. Which element which lane has is NVIDIA's (PTX ISA,
"Matrix Fragments for mma.m16n8k16" and ".m16n8k8"). The tests' stand-in for a GPU defines the same
names.
"""

from __future__ import annotations

TENSOR_CORE = """\
#ifndef COMPOSITE_NO_GPU
// Begins to copy to shared memory, or to store zeros where the source is not valid. What is copied
// is there once the thread has waited for the group that it committed the copy in.
template <int bytes>
__device__ __forceinline__ void composite_begin_copy(void* to, const void* from, bool valid) {
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
  const int size = valid ? bytes : 0;
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(size)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from),
                 "n"(bytes), "r"(size)
                 : "memory");
}

__device__ __forceinline__ void composite_commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all but the last groups have arrived.
template <int groups>
__device__ __forceinline__ void composite_wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

__device__ __forceinline__ void composite_warp_barrier() { __syncwarp(); }

// Four matrices of 8 x 8 elements of 16 bits; lane i has the address of row i % 8 of matrix i / 8.
template <bool transposed>
__device__ __forceinline__ void composite_load_matrices(uint32_t* to, const void* row) {
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

// Adds a product of 16 x 16 and 16 x 8 elements (of tf32: 16 x 8 and 8 x 8).
__device__ __forceinline__ void composite_mma_float16(float* sum, const uint32_t* a,
                                                      const uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void composite_mma_bfloat16(float* sum, const uint32_t* a,
                                                       const uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void composite_mma_tf32(float* sum, const uint32_t* a,
                                                   const uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// A float rounded to the 10 bits of mantissa that a tensor core multiplies.
__device__ __forceinline__ uint32_t composite_tf32(float x) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

__device__ __forceinline__ uint32_t composite_load_tf32(const float* from) {
  return composite_tf32(*from);
}

// 2 to a power, to 2 units in the last place; what is subnormal is 0.
__device__ __forceinline__ float composite_exp2(float x) {
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
}

// Two floats as halves of a register, the first one the lower.
__device__ __forceinline__ uint32_t composite_pair_float16(float low, float high) {
  uint32_t bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
__device__ __forceinline__ uint32_t composite_pair_bfloat16(float low, float high) {
  uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
#endif
"""
