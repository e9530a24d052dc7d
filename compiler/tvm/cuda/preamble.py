"""The text that CUDA sources of kernels begin with.

It includes nothing: NVRTC's package has no headers. What is declared here, and the built-in
functions of CUDA, are all that a kernel uses; the tests' stand-in for a GPU defines the same names.
"""

from __future__ import annotations

from composite.compiler.tvm.cuda.tensor_core import TENSOR_CORE
from composite.compiler.tvm.cuda.warp_group import WARP_GROUP

PREAMBLE = (
    """\
#ifndef COMPOSITE_NO_GPU
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;

#define CUDART_INF_F __int_as_float(0x7f800000)
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define CUDART_INF __longlong_as_double(0x7ff0000000000000ULL)
#define CUDART_NAN __longlong_as_double(0xfff8000000000000ULL)

struct half {
  unsigned short bits;
  half() = default;
  __device__ explicit half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ explicit operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};

__device__ __forceinline__ int64_t composite_blocks() { return gridDim.x; }

// The value of the thread whose number in the warp differs in the given bits.
template <class T>
__device__ __forceinline__ T composite_partner(T value, int bits) {
  return __shfl_xor_sync(0xffffffffu, value, bits);
}
__device__ __forceinline__ uint8_t composite_partner(uint8_t value, int bits) {
  return (uint8_t)__shfl_xor_sync(0xffffffffu, (uint32_t)value, bits);
}

// The shared memory of a block that its launch states, from a byte on; swizzled pieces of it repeat
// every 1024 bytes.
__device__ __forceinline__ void* composite_pool(int offset) {
  extern __shared__ __align__(1024) uint4 composite_all[];
  return (char*)composite_all + offset;
}

// Adds 1 behind all that the block has written before it met.
__device__ __forceinline__ void composite_release_one(int64_t* counter) {
  asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(counter) : "memory");
}

// What is read behind it was written in front of what it sees.
__device__ __forceinline__ int64_t composite_acquire(const int64_t* counter) {
  int64_t seen;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(counter) : "memory");
  return seen;
}

// Has the blocks of a grid meet, which must all be there at a time: each adds 1 to a counter, and
// waits until it is the goal, the number of blocks times that of meetings.
__device__ __forceinline__ void composite_meet(int64_t* counter, int64_t goal) {
  __syncthreads();
  if (threadIdx.x == 0) {
    composite_release_one(counter);
    while (composite_acquire(counter) < goal) {
    }
  }
  __syncthreads();
}

// The same bits as another type.
template <class To, class From>
__device__ __forceinline__ To composite_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits are neither lost nor made");
  union {
    From from;
    To to;
  } both;
  both.from = from;
  return both.to;
}

// The bfloat16 whose bits these are.
__device__ __forceinline__ float composite_widened(uint32_t bits) {
  return composite_bits<float>(bits << 16);
}

template <int bytes> struct composite_chunk;
template <> struct composite_chunk<16> { typedef uint4 type; };
template <> struct composite_chunk<8> { typedef uint2 type; };
template <> struct composite_chunk<4> { typedef uint32_t type; };

template <int count, class T>
__device__ __forceinline__ void composite_copy(T* to, const T* from) {
  constexpr int bytes = count * sizeof(T) < 16 ? count * sizeof(T) : 16;
  typedef typename composite_chunk<bytes>::type chunk;
#pragma unroll
  for (int i = 0; i < count * (int)sizeof(T) / bytes; ++i)
    ((chunk*)to)[i] = ((const chunk*)from)[i];
}
#endif
"""
    + TENSOR_CORE
    + WARP_GROUP
)
