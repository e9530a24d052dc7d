// Products of four warps together (wgmma), on threads of the host (threads.h).
//
// A product begins when its thread asks for it and is computed as late as it may: when its thread
// waits. What it reads of shared memory must have arrived and been published by all threads of the
// block before it begins, and stay until it ends: a copy that begins over it leaves NaN there.
#pragma once

namespace composite_threads {

constexpr int kGroupRows = 64, kSquare = 64, kApart = 8192;

struct Product {
  std::function<void()> compute;
};

// Of a thread: its products by groups, the last of which is not committed yet.
struct Products {
  std::vector<std::vector<Product>> groups{1};
  bool began = false;  // wgmma.fence, since the last group
};
inline std::vector<Products> products;  // of each thread of the block

inline Products& OwnProducts() {
  if (products.size() < fibers.size()) products.resize(fibers.size());
  return products[size_t(current - fibers.data())];
}

inline void EndProducts(size_t groups) {
  auto& own = OwnProducts().groups;
  while (own.size() > groups + 1) {
    for (const Product& product : own.front()) product.compute();
    own.erase(own.begin());
  }
}

// Element (other, inner) of a factor at an address. The 16 bytes in which it lies are swizzled by
// the address, as the hardware does.
inline uint16_t Element(const void* at, int other, int inner, bool far) {
  const size_t row = far ? inner : other, column = far ? other : inner;
  const size_t square = far ? column / kSquare : 0;
  const uintptr_t place = (uintptr_t)at + square * kApart + row * 128 + (column % kSquare) * 2;
  const uint16_t* element = (const uint16_t*)(place ^ (place >> 7 & 7) << 4);
  return *element;
}

// The same of TF32, the inner dimension of which is the near one: 10 bits of the mantissa are read.
inline float WideElement(const void* at, int other, int inner) {
  const uintptr_t place = (uintptr_t)at + other * 128 + inner * 4;
  const uint32_t bits = *(const uint32_t*)(place ^ (place >> 7 & 7) << 4);
#ifdef COMPOSITE_RING
  return float ::Of(bits);
#else
  const uint32_t cut = bits & ~uint32_t{0x1FFF};
  float value;
  memcpy(&value, &cut, 4);
  return value;
#endif
}

inline void CheckPublished(const void* at, size_t bytes) {
  CheckArrived(at, bytes);
  for (const Copies& thread : copies)
    if (IsTo(thread.unpublished, at, bytes))
      Fail("a product begins before a copy was published to it");
}

inline void CheckFactor(const void* at, int others, bool far) {
  if ((uintptr_t)at % 1024 / 128 != 0 || (far && (uintptr_t)at % 1024 != 0))
    Fail("a swizzle does not begin where its rows do");
  const char* const row = (const char*)((uintptr_t)at & ~uintptr_t{127});
  if (!far) return CheckPublished(row, size_t(others) * 128);
  for (int square = 0; square < others / kSquare; ++square)
    CheckPublished(row + square * kApart, 16 * 128);
}

constexpr int kTf32 = 2;

// How many elements of the inner dimension a product has.
inline int Depth(int kind) { return kind == kTf32 ? 8 : 16; }

// The first factor: its elements of each of the two rows that a lane has sums of.
using Rows = std::array<std::array<float, 16>, 2>;

template <class First>
void BeginProduct(float* sums, int columns, bool b_far, const void* b, int kind, First first) {
  Products& own = OwnProducts();
  if (!own.began) Fail("a product begins before its registers were written");
  CheckFactor(b, columns, b_far);
  const int lane = int(thread.x) % kWarp;
  auto compute = [=] {
    const Rows a = first();
    for (int i = 0; i < columns / 2; ++i) {
      const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      for (int k = 0; k < Depth(kind); ++k)
        sums[i] += a[i / 2 % 2][k] * (kind == kTf32 ? WideElement(b, column, k)
                                                    : Decode(Element(b, column, k, b_far), kind));
    }
  };
  own.groups.back().push_back({compute});
}

template <int columns, int a_far, int b_far>
void MultiplyShared(float* sums, const void* a, const void* b, int kind) {
  CheckFactor(a, kGroupRows, a_far);
  const int row = int(thread.x) % (4 * kWarp) / kWarp * 16 + int(thread.x) % kWarp / 4;
  BeginProduct(sums, columns, b_far, b, kind, [=] {
    Rows rows;
    for (int half = 0; half < 2; ++half)
      for (int k = 0; k < 16; ++k)
        rows[half][k] = Decode(Element(a, row + 8 * half, k, a_far), kind);
    return rows;
  });
}

template <int columns, int b_far>
void MultiplyHeld(float* sums, const uint32_t* a, const void* b, int kind) {
  uint32_t own[4];
  memcpy(own, a, sizeof own);
  const auto sent = Exchange(own, sizeof own);
  const int lane = int(thread.x) % kWarp;
  Rows rows;
  const int together = kind == kTf32 ? 1 : 2;  // elements of a register
  for (int half = 0; half < 2; ++half)
    for (int k = 0; k < Depth(kind); ++k) {
      const int cell = k / together;
      uint32_t bits;
      memcpy(&bits, sent[lane / 4 * 4 + cell % 4] + 4 * (cell / 4 * 2 + half), 4);
      if (kind != kTf32) bits = bits >> (k % 2 * 16) & 0xFFFF;
      rows[half][k] = Decode(bits, kind);
    }
  BeginProduct(sums, columns, b_far, b, kind, [=] {
    if (memcmp(own, a, sizeof own) != 0) Fail("a register changes while a product reads it");
    return rows;
  });
}

}  // namespace composite_threads

inline void composite_wgmma_publish() { composite_threads::OwnCopies().unpublished.clear(); }

inline void composite_wgmma_begin() {
  composite_threads::Wait(composite_threads::State::kInWarp);
  composite_threads::OwnProducts().began = true;
}

inline void composite_wgmma_commit() {
  auto& own = composite_threads::OwnProducts();
  own.groups.emplace_back();
  own.began = false;
}

template <int groups>
void composite_wgmma_wait() {
  composite_threads::EndProducts(groups);
}

template <int count>
void composite_wgmma_end(float*) {
  composite_threads::EndProducts(0);
}

template <int groups, int count>
void composite_wgmma_release(uint32_t*) {
  composite_threads::EndProducts(groups);
}

inline uint64_t composite_matrix(const void* at) {
  if ((uintptr_t)at % 16 != 0) composite_threads::Fail("a factor lies at no multiple of 16 bytes");
  return (uintptr_t)at / 16;
}

#define COMPOSITE_WGMMA(name, kind)                                                        \
  template <int columns, int a_far, int b_far>                                             \
  void composite_wgmma_##name(float* sums, uint64_t a, uint64_t b) {                       \
    composite_threads::MultiplyShared<columns, a_far, b_far>(sums, (const void*)(a * 16),  \
                                                             (const void*)(b * 16), kind); \
  }                                                                                        \
  template <int columns, int b_far>                                                        \
  void composite_wgmma_held_##name(float* sums, const uint32_t* a, uint64_t b) {           \
    composite_threads::MultiplyHeld<columns, b_far>(sums, a, (const void*)(b * 16), kind); \
  }
COMPOSITE_WGMMA(float16, 0)
COMPOSITE_WGMMA(bfloat16, 1)

template <int columns>
void composite_wgmma_held_tf32(float* sums, const uint32_t* a, uint64_t b) {
  composite_threads::MultiplyHeld<columns, 0>(sums, a, (const void*)(b * 16),
                                              composite_threads::kTf32);
}
