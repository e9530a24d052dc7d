// A GPU made of threads of the host: what the CUDA sources of kernels use, so that g++ compiles
// them.
//
// Blocks run one after the other, the threads of a block as fibers of one thread of the host: each
// runs until it meets others, at a barrier or where a warp exchanges values. A kernel whose threads
// do not all get there, or that accesses memory in pieces at an address that is no multiple of
// them, ends with an error that says so. Not a model of time, nor of what a GPU's memory reorders.
// Of launches whose blocks are there all at a time: resident.h.
#pragma once
#define COMPOSITE_NO_GPU

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __launch_bounds__(...)
#define __shared__ static
#define alignas(bytes) __attribute__((aligned(bytes)))  // may stand behind `static`
#define __syncthreads() composite_threads::Meet()
#define CUDART_INF_F INFINITY
#define CUDART_NAN_F NAN
#define CUDART_INF ((double)INFINITY)
#define CUDART_NAN ((double)NAN)
using std::max;
using std::min;
typedef unsigned char uchar;

#ifdef COMPOSITE_RING
#include "ring.h"
struct half {
  uint16_t bits;
  half() = default;
  explicit half(float x) : bits(uint16_t(x.word)) {}
  explicit operator float() const { return float ::Of(bits); }

  // What elements are ordered by.
  uint16_t Order() const { return bits ^ float ::kMiddle; }
  friend bool operator==(half a, half b) { return a.bits == b.bits; }
  friend bool operator!=(half a, half b) { return a.bits != b.bits; }
  friend bool operator<(half a, half b) { return a.Order() < b.Order(); }
  friend bool operator>(half a, half b) { return a.Order() > b.Order(); }
  friend bool operator<=(half a, half b) { return a.Order() <= b.Order(); }
  friend bool operator>=(half a, half b) { return a.Order() >= b.Order(); }
};
#else
struct half {
  _Float16 value;
  half() = default;
  explicit half(float x) : value(x) {}
  explicit operator float() const { return value; }
};
#endif

struct uint4 {
  unsigned x, y, z, w;
};
struct ulonglong2 {
  unsigned long long x, y;
};
struct ulonglong4 {
  unsigned long long x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }
inline ulonglong4 make_ulonglong4(unsigned long long x, unsigned long long y, unsigned long long z,
                                  unsigned long long w) {
  return {x, y, z, w};
}

namespace composite_threads {

struct Place {
  unsigned x, y, z;
};
inline Place block, thread, blocks, threads_of_block;

// Of a launch: its blocks, their threads, the bytes of shared memory that it gives a block, and
// whether all blocks are there at a time.
struct Shape {
  Place grid, block;
  unsigned dynamic;
  bool resident;
};

inline unsigned Count(const Place& extent) { return extent.x * extent.y * extent.z; }

inline Place PlaceOf(unsigned n, const Place& extent) {
  return {n % extent.x, n / extent.x % extent.y, n / (extent.x * extent.y)};
}

constexpr int kWarp = 32;
constexpr size_t kStack = 64 << 10;
constexpr size_t kMessage = 32;  // bytes that a thread sends to others of its warp

enum class State { kReady, kAtBarrier, kInWarp, kAtMeeting, kDone };

struct Fiber {
  ucontext_t context;
  State state = State::kReady;
  alignas(8) char sent[2][kMessage];  // two: a thread may be one exchange ahead of its partner
  int exchanges = 0;
};

inline std::vector<Fiber> fibers;
inline std::unique_ptr<char[]> stacks;  // memory that is not touched takes none
inline ucontext_t scheduler;
inline Fiber* current = nullptr;
inline const std::function<void()>* body = nullptr;
inline const char* error = nullptr;
inline size_t pool_bytes = 0;

inline void Fail(const char* what) {
  if (error == nullptr) error = what;
}

inline void Wait(State state) {
  if (current == nullptr) {
    Fail("threads that were said to be independent meet");
    return;
  }
  current->state = state;
  const Place own = thread;
  swapcontext(&current->context, &scheduler);
  thread = own;
}

inline void Meet() { Wait(State::kAtBarrier); }

inline void Start() {
  (*body)();
  current->state = State::kDone;
}

// Lets the threads of [begin, end) go on if all of them are in a state.
inline bool Release(size_t begin, size_t end, State state) {
  for (size_t i = begin; i < end; ++i)
    if (fibers[i].state != state) return false;
  for (size_t i = begin; i < end; ++i) fibers[i].state = State::kReady;
  return true;
}

// Runs the threads of a warp, [begin, end), until each is at a barrier, done, or stuck; returns
// whether any ran.
inline bool RunWarp(size_t begin, size_t end, bool reverse) {
  bool ran = false;
  do {
    for (size_t n = begin; n < end; ++n) {
      const size_t i = reverse ? begin + end - 1 - n : n;
      if (fibers[i].state != State::kReady) continue;
      current = &fibers[i];
      thread = PlaceOf(unsigned(i), threads_of_block);
      swapcontext(&scheduler, &current->context);
      current = nullptr;
      ran = true;
    }
  } while (error == nullptr && Release(begin, end, State::kInWarp));
  return ran;
}

void ForgetCopies(size_t threads);
bool AllArrived();

inline void StartBlock(size_t threads) {
  ForgetCopies(threads);
  if (fibers.size() < threads) {
    fibers.resize(threads);
    stacks.reset(new char[threads * kStack]);
  }
  for (size_t i = 0; i < threads; ++i) {
    Fiber& fiber = fibers[i];
    fiber.state = State::kReady;
    fiber.exchanges = 0;
    getcontext(&fiber.context);
    fiber.context.uc_stack = {&stacks[i * kStack], 0, kStack};
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, Start, 0);
  }
}

// Runs a block until its threads are done, or where they meet other blocks; returns which. A warp
// runs as far as it gets before the next one does: what is read before another warp has written it
// shows.
inline State RunBlock(size_t threads, bool reverse) {
  const size_t warps = (threads + kWarp - 1) / kWarp;
  while (error == nullptr) {
    bool ran = false;
    for (size_t n = 0; n < warps; ++n) {
      const size_t begin = (reverse ? warps - 1 - n : n) * kWarp;
      ran |= RunWarp(begin, std::min(threads, begin + kWarp), reverse);
    }
    if (Release(0, threads, State::kDone)) {
      if (!AllArrived()) Fail("a block ends with copies under way");
      return State::kDone;
    }
    if (Release(0, threads, State::kAtMeeting)) return State::kAtMeeting;
    ran |= Release(0, threads, State::kAtBarrier);
    if (!ran) Fail("some threads wait where others do not get");
  }
  return State::kDone;
}

void RunTogether(const Place& grid, size_t threads, bool reverse);
void GivePool();
void CheckPool();

// Runs a kernel; returns null, or what is wrong with it.
inline const char* Run(const Shape& shape, bool meets, bool reverse,
                       const std::function<void()>& kernel) {
  const unsigned count = Count(shape.grid), threads = Count(shape.block);
  error = nullptr;
  blocks = shape.grid;
  threads_of_block = shape.block;
  body = &kernel;
  pool_bytes = shape.dynamic;
  if (shape.resident) {
    RunTogether(shape.grid, threads, reverse);
    return error;
  }
  for (unsigned n = 0; n < count && error == nullptr; ++n) {
    block = PlaceOf(reverse ? count - 1 - n : n, shape.grid);
    GivePool();
    if (meets) {
      StartBlock(threads);
      if (RunBlock(threads, reverse) == State::kAtMeeting)
        Fail("blocks meet that are not there at a time");
      CheckPool();
      continue;
    }
    for (unsigned i = 0; i < threads; ++i) {
      thread = PlaceOf(i, shape.block);
      kernel();
    }
  }
  return error;
}

template <class... Types, size_t... indices>
const char* Launch(void (*kernel)(Types...), void** arguments, const Shape& shape, bool meets,
                   bool reverse, std::index_sequence<indices...>) {
  return Run(shape, meets, reverse, [&] { kernel(*(Types*)arguments[indices]...); });
}

template <class... Types>
const char* Launch(void (*kernel)(Types...), void** arguments, const Shape& shape, bool meets,
                   bool reverse) {
  return Launch(kernel, arguments, shape, meets, reverse, std::index_sequence_for<Types...>());
}

}  // namespace composite_threads

#define threadIdx composite_threads::thread
#define blockIdx composite_threads::block
#define gridDim composite_threads::blocks
#define blockDim composite_threads::threads_of_block

inline int64_t composite_blocks() { return composite_threads::blocks.x; }

template <class T>
T composite_partner(T value, int bits) {
  using namespace composite_threads;
  if (current == nullptr) {
    Fail("threads that were said to be independent meet");
    return value;
  }
  Fiber* const own = current;
  const int slot = own->exchanges++ & 1;
  memcpy(&own->sent[slot], &value, sizeof(T));
  Wait(State::kInWarp);
  const Fiber& partner = fibers[size_t(own - fibers.data()) ^ size_t(bits)];
  if (partner.exchanges < own->exchanges) Fail("a thread reads what its partner has not sent");
  memcpy(&value, &partner.sent[slot], sizeof(T));
  return value;
}

template <class To, class From>
To composite_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits are neither lost nor made");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

#ifdef COMPOSITE_RING
// Constants are written as floats of C++.
template <class To>
To composite_bits(composite_ring::RealFloat from) {
  return composite_bits<To>(float(from));
}
template <class To>
To composite_bits(composite_ring::RealDouble from) {
  return composite_bits<To>(double(from));
}
#endif

inline float composite_widened(uint32_t bits) {
#ifdef COMPOSITE_RING
  return float ::Of(bits);
#else
  return composite_bits<float>(bits << 16);
#endif
}

template <int count, class T>
void composite_copy(T* to, const T* from) {
  constexpr size_t bytes = count * sizeof(T);
  constexpr size_t piece = bytes < 16 ? bytes : 16;
  static_assert(bytes % piece == 0, "a copy is of whole pieces");
  if ((uintptr_t)to % piece != 0 || (uintptr_t)from % piece != 0)
    composite_threads::Fail("an address is no multiple of what is accessed at once");
  memcpy(to, from, bytes);
}

#include "tensor_core.h"
#include "warp_group.h"
// It knows what a block has.
#include "resident.h"

#define COMPOSITE_LAUNCH(kernel, meets)                                                         \
  extern "C" const char* launch_##kernel(void** arguments, unsigned grid, unsigned threads,     \
                                         unsigned dynamic, bool resident, bool reverse) {       \
    return composite_threads::Launch(                                                           \
        kernel, arguments, {{grid, 1, 1}, {threads, 1, 1}, dynamic, resident}, meets, reverse); \
  }
