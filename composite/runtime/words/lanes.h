// What instructions compute, lane by lane. Each unit that includes this file has a copy of its own,
// compiled for its level of CPUs.
#ifndef COMPOSITE_RUNTIME_WORDS_LANES_H_
#define COMPOSITE_RUNTIME_WORDS_LANES_H_

#include <cstdint>
#include <type_traits>

#include "composite/runtime/words/memory.h"
#include "composite/runtime/words/program.h"

namespace composite {
namespace words {
namespace {

// Words of narrow kinds are computed in 64 bits, in which nothing overflows that is signed.
template <typename T>
using Wide = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <typename T>
T Quotient(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == static_cast<T>(-1))
    return static_cast<T>(Wide<T>(0) - Wide<T>(a));
  return static_cast<T>(a / b);
}

template <typename T>
T Rest(T a, T b) {
  if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
  return static_cast<T>(a % b);
}

template <typename T>
T FloorQuotient(T a, T b) {
  const T rest = Rest(a, b);
  const bool below = std::is_signed_v<T> && rest != 0 && (rest < 0) != (b < 0);
  return static_cast<T>(Quotient(a, b) - (below ? 1 : 0));
}

template <typename T>
T FloorRest(T a, T b) {
  const T rest = Rest(a, b);
  const bool below = std::is_signed_v<T> && rest != 0 && (rest < 0) != (b < 0);
  return static_cast<T>(below ? rest + b : rest);
}

template <int64_t op, typename T>
T Of(T a, T b) {
  constexpr int kBits = sizeof(T) * 8;
  if constexpr (op == kAdd) return static_cast<T>(Wide<T>(a) + Wide<T>(b));
  if constexpr (op == kSub) return static_cast<T>(Wide<T>(a) - Wide<T>(b));
  if constexpr (op == kMul) return static_cast<T>(Wide<T>(a) * Wide<T>(b));
  if constexpr (op == kAnd) return static_cast<T>(a & b);
  if constexpr (op == kOr) return static_cast<T>(a | b);
  if constexpr (op == kXor) return static_cast<T>(a ^ b);
  if constexpr (op == kShl) return static_cast<T>(Wide<T>(a) << (Wide<T>(b) & (kBits - 1)));
  if constexpr (op == kShr) return static_cast<T>(a >> (Wide<T>(b) & (kBits - 1)));
  if constexpr (op == kDiv) return Quotient(a, b);
  if constexpr (op == kMod) return Rest(a, b);
  if constexpr (op == kFloorDiv) return FloorQuotient(a, b);
  if constexpr (op == kFloorMod) return FloorRest(a, b);
  if constexpr (op == kMin) return b < a ? b : a;
  if constexpr (op == kMax) return b > a ? b : a;
  return T{};
}

template <int64_t op, typename T>
uint8_t Holds(T a, T b) {
  if constexpr (op == kEq) return a == b;
  if constexpr (op == kNe) return a != b;
  if constexpr (op == kLt) return a < b;
  return a <= b;
}

// A loop over lanes, whose number is known if it is not 0. A result may lie where an operand does,
// lane by lane, so that no trip depends on another one.
template <int64_t lanes, typename Each>
inline void ForLanes(const Instruction& i, Each each) {
  const int64_t count = lanes > 0 ? lanes : i.lanes;
#pragma GCC ivdep
  for (int64_t n = 0; n < count; ++n) each(n);
}

template <typename T>
T* Words(Place place, char* const* buffers) {
  return reinterpret_cast<T*>(At(buffers, place));
}

template <int64_t op, typename T, int64_t lanes>
void Binary(const Instruction& i, char* const* buffers) {
  const T* const a = Words<T>(i.a, buffers);
  const T* const b = Words<T>(i.b, buffers);
  T* const to = Words<T>(i.to, buffers);
  ForLanes<lanes>(i, [=](int64_t n) { to[n] = Of<op, T>(a[n], b[n]); });
}

template <int64_t op, typename T, int64_t lanes>
void Comparison(const Instruction& i, char* const* buffers) {
  const T* const a = Words<T>(i.a, buffers);
  const T* const b = Words<T>(i.b, buffers);
  uint8_t* const to = Words<uint8_t>(i.to, buffers);
  ForLanes<lanes>(i, [=](int64_t n) { to[n] = Holds<op, T>(a[n], b[n]); });
}

bool IsInFrame(const Instruction& i) { return ((i.to | i.a | i.b | i.c) >> 32) == 0; }

// What products of matrices consist of: most of them find all their words in the frame.
template <typename T, int64_t lanes, bool in_frame>
void MulAdd(const Instruction& i, char* const* buffers) {
  const auto words = [&](Place place) {
    return in_frame ? reinterpret_cast<T*>(buffers[0] + place) : Words<T>(place, buffers);
  };
  const T* const a = words(i.a);
  const T* const b = words(i.b);
  const T* const sum = words(i.c);
  T* const to = words(i.to);
  ForLanes<lanes>(i, [=](int64_t n) {
    to[n] = static_cast<T>(Wide<T>(sum[n]) + Wide<T>(a[n]) * Wide<T>(b[n]));
  });
}

template <typename T, int64_t lanes>
void Choice(const Instruction& i, char* const* buffers) {
  const uint8_t* const holds = Words<uint8_t>(i.a, buffers);
  const T* const a = Words<T>(i.b, buffers);
  const T* const b = Words<T>(i.c, buffers);
  T* const to = Words<T>(i.to, buffers);
  ForLanes<lanes>(i, [=](int64_t n) { to[n] = holds[n] ? a[n] : b[n]; });
}

template <typename T, typename To, int64_t lanes>
void CastTo(const Instruction& i, char* const* buffers) {
  const T* const a = Words<T>(i.a, buffers);
  To* const to = Words<To>(i.to, buffers);
  ForLanes<lanes>(i, [=](int64_t n) { to[n] = static_cast<To>(a[n]); });
}

template <typename T, int64_t lanes>
void Cast(const Instruction& i, char* const* buffers) {
  switch (i.extra) {
    case kUint8:
      return CastTo<T, uint8_t, lanes>(i, buffers);
    case kInt8:
      return CastTo<T, int8_t, lanes>(i, buffers);
    case kUint16:
      return CastTo<T, uint16_t, lanes>(i, buffers);
    case kInt16:
      return CastTo<T, int16_t, lanes>(i, buffers);
    case kUint32:
      return CastTo<T, uint32_t, lanes>(i, buffers);
    case kInt32:
      return CastTo<T, int32_t, lanes>(i, buffers);
    case kUint64:
      return CastTo<T, uint64_t, lanes>(i, buffers);
    default:
      return CastTo<T, int64_t, lanes>(i, buffers);
  }
}

template <typename T, int64_t lanes>
void Spread(const Instruction& i, char* const* buffers) {
  const T word = *Words<T>(i.a, buffers);
  T* const to = Words<T>(i.to, buffers);
  ForLanes<lanes>(i, [=](int64_t n) { to[n] = word; });
}

template <typename T, int64_t lanes>
void Ramp(const Instruction& i, char* const* buffers) {
  const Wide<T> base = Wide<T>(*Words<T>(i.a, buffers));
  const Wide<T> stride = Wide<T>(*Words<T>(i.b, buffers));
  T* const to = Words<T>(i.to, buffers);
  ForLanes<lanes>(
      i, [=](int64_t n) { to[n] = static_cast<T>(base + stride * static_cast<Wide<T>>(n)); });
}

template <typename T, int64_t lanes>
Compute OfKind(int64_t op, bool in_frame) {
  switch (op) {
    case kAdd:
      return Binary<kAdd, T, lanes>;
    case kSub:
      return Binary<kSub, T, lanes>;
    case kMul:
      return Binary<kMul, T, lanes>;
    case kMulAdd:
      return in_frame ? MulAdd<T, lanes, true> : MulAdd<T, lanes, false>;
    case kAnd:
      return Binary<kAnd, T, lanes>;
    case kOr:
      return Binary<kOr, T, lanes>;
    case kXor:
      return Binary<kXor, T, lanes>;
    case kShl:
      return Binary<kShl, T, lanes>;
    case kShr:
      return Binary<kShr, T, lanes>;
    case kDiv:
      return Binary<kDiv, T, lanes>;
    case kMod:
      return Binary<kMod, T, lanes>;
    case kFloorDiv:
      return Binary<kFloorDiv, T, lanes>;
    case kFloorMod:
      return Binary<kFloorMod, T, lanes>;
    case kMin:
      return Binary<kMin, T, lanes>;
    case kMax:
      return Binary<kMax, T, lanes>;
    case kEq:
      return Comparison<kEq, T, lanes>;
    case kNe:
      return Comparison<kNe, T, lanes>;
    case kLt:
      return Comparison<kLt, T, lanes>;
    case kLe:
      return Comparison<kLe, T, lanes>;
    case kSelect:
      return Choice<T, lanes>;
    case kCast:
      return Cast<T, lanes>;
    case kSpread:
      return Spread<T, lanes>;
    case kRamp:
      return Ramp<T, lanes>;
    default:
      return nullptr;
  }
}

template <typename T>
Compute OfLanes(const Instruction& i) {
  const bool in_frame = IsInFrame(i);
  switch (i.lanes) {
    case 1:
      return OfKind<T, 1>(i.op, in_frame);
    case 4:
      return OfKind<T, 4>(i.op, in_frame);
    case 8:
      return OfKind<T, 8>(i.op, in_frame);
    case 16:
      return OfKind<T, 16>(i.op, in_frame);
    default:
      return OfKind<T, 0>(i.op, in_frame);
  }
}

// What computes the result of an instruction; null if it is none of these.
Compute InLanes(const Instruction& instruction) {
  switch (instruction.kind) {
    case kUint8:
      return OfLanes<uint8_t>(instruction);
    case kInt8:
      return OfLanes<int8_t>(instruction);
    case kUint16:
      return OfLanes<uint16_t>(instruction);
    case kInt16:
      return OfLanes<int16_t>(instruction);
    case kUint32:
      return OfLanes<uint32_t>(instruction);
    case kInt32:
      return OfLanes<int32_t>(instruction);
    case kUint64:
      return OfLanes<uint64_t>(instruction);
    case kInt64:
      return OfLanes<int64_t>(instruction);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace words
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_WORDS_LANES_H_
