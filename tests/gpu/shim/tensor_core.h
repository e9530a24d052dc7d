// Tensor cores and copies that go on behind a thread, on threads of the host (threads.h).
//
// A copy arrives as late as it may: when its thread waits for it. Until then its place holds NaN,
// and a warp that reads it there ends the kernel with an error. So does one that reads a matrix
// whose rows lie in the same banks of shared memory, which a GPU would read one after the other.
#pragma once

namespace composite_threads {

struct Copy {
  char* to;
  const char* from;
  size_t bytes;
  bool valid;
};

// The groups of copies of a thread, the last of which is not committed yet.
struct Copies {
  std::vector<std::vector<Copy>> groups{1};
  std::vector<Copy> unpublished;  // which have arrived, and products of four warps may not read yet
};
inline std::vector<Copies> copies;  // of each thread of the block
inline size_t under_way = 0;

inline void ForgetCopies(size_t threads) {
  copies.assign(threads, Copies());
  under_way = 0;
}

inline bool AllArrived() { return under_way == 0; }

inline Copies& OwnCopies() { return copies[size_t(current - fibers.data())]; }

// Whether any copy of a group is to some of the bytes.
inline bool IsTo(const std::vector<Copy>& group, const void* from, size_t bytes) {
  const char* at = (const char*)from;
  return std::any_of(group.begin(), group.end(), [&](const Copy& copy) {
    return copy.to < at + bytes && at < copy.to + copy.bytes;
  });
}

inline void CheckArrived(const void* from, size_t bytes) {
  if (under_way == 0) return;
  for (const Copies& thread : copies)
    for (const auto& group : thread.groups)
      if (IsTo(group, from, bytes))
        return Fail("shared memory is read before a copy to it was waited for");
}

// Gives what each lane of the warp sent; all of them must get here.
inline std::vector<const char*> Exchange(const void* value, size_t bytes) {
  Fiber* const own = current;
  if (own == nullptr) {
    Fail("threads that were said to be independent meet");
    return std::vector<const char*>(kWarp, (const char*)value);
  }
  const int slot = own->exchanges++ & 1;
  memcpy(&own->sent[slot], value, bytes);
  Wait(State::kInWarp);
  const size_t first = size_t(own - fibers.data()) / kWarp * kWarp;
  std::vector<const char*> sent;
  for (size_t i = first; i < first + kWarp; ++i) {
    if (fibers[i].exchanges < own->exchanges) Fail("a thread reads what its partner has not sent");
    sent.push_back((const char*)&fibers[i].sent[slot]);
  }
  return sent;
}

inline float Decode(uint32_t bits, int kind) {
#ifdef COMPOSITE_RING
  return float ::Of(bits);
#else
  if (kind == 0) {
    _Float16 value;
    memcpy(&value, &bits, 2);
    return value;
  }
  bits = kind == 1 ? bits << 16 : bits;
  float value;
  memcpy(&value, &bits, 4);
  return value;
#endif
}

struct Fragments {
  uint32_t a[4], b[2];
};

// kind 0 is float16, 1 bfloat16, 2 tf32. Element k of a row is in lane k / 2 % 4 of its four (of
// tf32: k % 4), in the upper half of a register if k is odd.
inline void Multiply(float* sum, const uint32_t* a, const uint32_t* b, int kind) {
  Fragments own;
  memcpy(own.a, a, sizeof own.a);
  memcpy(own.b, b, sizeof own.b);
  const auto sent = Exchange(&own, sizeof own);
  const int lane = int(thread.x) % kWarp, row = lane / 4, column = lane % 4 * 2;
  const bool wide = kind == 2;
  auto lane_of = [&](int four, int k) {
    return (const Fragments*)sent[four * 4 + (wide ? k % 4 : k / 2 % 4)];
  };
  auto element = [&](uint32_t bits, int k) {
    return Decode(wide ? bits : bits >> (k % 2 * 16) & 0xFFFF, kind);
  };
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < (wide ? 8 : 16); ++k) {
      const int half = k / (wide ? 4 : 8);
      sum[i] += element(lane_of(row, k)->a[half * 2 + i / 2], k) *
                element(lane_of(column + i % 2, k)->b[half], k);
    }
}

}  // namespace composite_threads

template <int bytes>
void composite_begin_copy(void* to, const void* from, bool valid) {
  using namespace composite_threads;
  if ((uintptr_t)to % bytes != 0 || (valid && (uintptr_t)from % bytes != 0))
    Fail("an address is no multiple of what is accessed at once");
  memset(to, 0xFF, bytes);
  OwnCopies().groups.back().push_back({(char*)to, (const char*)from, bytes, valid});
  ++under_way;
}

inline void composite_commit_copies() { composite_threads::OwnCopies().groups.emplace_back(); }

template <int groups>
void composite_wait_for_copies() {
  using namespace composite_threads;
  auto& own = OwnCopies().groups;
  while (own.size() > groups + 1) {
    for (const Copy& copy : own.front()) {
      if (copy.valid)
        memcpy(copy.to, copy.from, copy.bytes);
      else
        memset(copy.to, 0, copy.bytes);
      --under_way;
      OwnCopies().unpublished.push_back(copy);
    }
    own.erase(own.begin());
  }
}

inline void composite_warp_barrier() { composite_threads::Wait(composite_threads::State::kInWarp); }

template <bool transposed>
void composite_load_matrices(uint32_t* to, const void* row) {
  using namespace composite_threads;
  if ((uintptr_t)row % 16 != 0) Fail("an address is no multiple of what is accessed at once");
  CheckArrived(row, 16);
  const auto sent = Exchange(&row, sizeof row);
  const int lane = int(thread.x) % kWarp;
  for (int matrix = 0; matrix < 4; ++matrix) {
    const uint16_t* rows[8];
    unsigned banks = 0;
    for (int i = 0; i < 8; ++i) {
      memcpy(&rows[i], sent[matrix * 8 + i], sizeof rows[i]);
      banks |= 1u << ((uintptr_t)rows[i] / 16 % 8);
    }
    if (banks != 0xFF) Fail("rows of a matrix lie in the same banks");
    const int i = lane / 4, j = lane % 4 * 2;
    const uint32_t low = transposed ? rows[j][i] : rows[i][j];
    const uint32_t high = transposed ? rows[j + 1][i] : rows[i][j + 1];
    to[matrix] = low | high << 16;
  }
}

inline void composite_mma_float16(float* sum, const uint32_t* a, const uint32_t* b) {
  composite_threads::Multiply(sum, a, b, 0);
}
inline void composite_mma_bfloat16(float* sum, const uint32_t* a, const uint32_t* b) {
  composite_threads::Multiply(sum, a, b, 1);
}
inline void composite_mma_tf32(float* sum, const uint32_t* a, const uint32_t* b) {
  composite_threads::Multiply(sum, a, b, 2);
}

// To the nearest, ties away from zero. Over the ring nothing is rounded.
inline uint32_t composite_tf32(float x) {
#ifdef COMPOSITE_RING
  return x.word;
#else
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return isfinite(x) ? (bits + 0x1000) & 0xFFFFE000 : bits;
#endif
}

inline uint32_t composite_load_tf32(const float* from) {
  using namespace composite_threads;
  CheckArrived(from, sizeof *from);
  const float* of_bank[kWarp] = {};
  for (const char* sent : Exchange(&from, sizeof from)) {
    const float* other;
    memcpy(&other, sent, sizeof other);
    const float*& first = of_bank[(uintptr_t)other / 4 % kWarp];
    if (first != nullptr && first != other) Fail("elements of a fragment lie in the same banks");
    first = other;
  }
  return composite_tf32(*from);
}

#ifdef COMPOSITE_RING
inline uint32_t composite_pair_float16(float low, float high) {
  return (low.word & 0xFFFF) | high.word << 16;
}
inline uint32_t composite_pair_bfloat16(float low, float high) {
  return composite_pair_float16(low, high);
}
#else
inline float composite_exp2(float x) { return exp2f(x); }

inline uint32_t composite_pair_float16(float low, float high) {
  const _Float16 both[2] = {(_Float16)low, (_Float16)high};
  uint32_t bits;
  memcpy(&bits, both, 4);
  return bits;
}

inline uint32_t composite_bfloat16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return isnan(x) ? 0x7FFF : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
inline uint32_t composite_pair_bfloat16(float low, float high) {
  return composite_bfloat16(low) | composite_bfloat16(high) << 16;
}
#endif
