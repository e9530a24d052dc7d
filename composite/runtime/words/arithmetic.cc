#include "composite/runtime/words/arithmetic.h"

#include <cstring>
#include <type_traits>

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

constexpr int64_t kBlock = 16;  // lanes that are computed at once

// Calls `each(first, count)` for blocks of lanes, each with a count that is known.
template <int64_t lanes, typename Each>
inline void InBlocks(const Instruction& i, Each each) {
  if constexpr (lanes > 0) {
    each(0, std::integral_constant<int64_t, lanes>());
  } else {
    int64_t lane = 0;
    for (; lane + kBlock <= i.lanes; lane += kBlock) {
      each(lane, std::integral_constant<int64_t, kBlock>());
    }
    for (; lane < i.lanes; ++lane) each(lane, std::integral_constant<int64_t, 1>());
  }
}

template <typename T, int64_t count>
struct Lanes {
  T at[count];
  static Lanes Of(const char* place, int64_t first) {
    Lanes lanes;
    std::memcpy(lanes.at, place + first * sizeof(T), sizeof(lanes.at));
    return lanes;
  }
  void Leave(char* place, int64_t first) const {
    std::memcpy(place + first * sizeof(T), at, sizeof(at));
  }
};

template <int64_t op, typename T, int64_t lanes>
void Binary(const Instruction& i, char* const* buffers) {
  InBlocks<lanes>(i, [&](int64_t first, auto known) {
    constexpr int64_t kCount = decltype(known)::value;
    const auto a = Lanes<T, kCount>::Of(At(buffers, i.a), first);
    const auto b = Lanes<T, kCount>::Of(At(buffers, i.b), first);
    Lanes<T, kCount> made;
    for (int64_t n = 0; n < kCount; ++n) made.at[n] = Of<op, T>(a.at[n], b.at[n]);
    made.Leave(At(buffers, i.to), first);
  });
}

template <int64_t op, typename T, int64_t lanes>
void Comparison(const Instruction& i, char* const* buffers) {
  InBlocks<lanes>(i, [&](int64_t first, auto known) {
    constexpr int64_t kCount = decltype(known)::value;
    const auto a = Lanes<T, kCount>::Of(At(buffers, i.a), first);
    const auto b = Lanes<T, kCount>::Of(At(buffers, i.b), first);
    Lanes<uint8_t, kCount> made;
    for (int64_t n = 0; n < kCount; ++n) made.at[n] = Holds<op, T>(a.at[n], b.at[n]);
    made.Leave(At(buffers, i.to), first);
  });
}

template <typename T, int64_t lanes>
void MulAdd(const Instruction& i, char* const* buffers) {
  InBlocks<lanes>(i, [&](int64_t first, auto known) {
    constexpr int64_t kCount = decltype(known)::value;
    const auto a = Lanes<T, kCount>::Of(At(buffers, i.a), first);
    const auto b = Lanes<T, kCount>::Of(At(buffers, i.b), first);
    auto sum = Lanes<T, kCount>::Of(At(buffers, i.c), first);
    for (int64_t n = 0; n < kCount; ++n) {
      sum.at[n] = static_cast<T>(Wide<T>(sum.at[n]) + Wide<T>(a.at[n]) * Wide<T>(b.at[n]));
    }
    sum.Leave(At(buffers, i.to), first);
  });
}

template <typename T, int64_t lanes>
void Choice(const Instruction& i, char* const* buffers) {
  InBlocks<lanes>(i, [&](int64_t first, auto known) {
    constexpr int64_t kCount = decltype(known)::value;
    const auto holds = Lanes<uint8_t, kCount>::Of(At(buffers, i.a), first);
    const auto a = Lanes<T, kCount>::Of(At(buffers, i.b), first);
    const auto b = Lanes<T, kCount>::Of(At(buffers, i.c), first);
    Lanes<T, kCount> made;
    for (int64_t n = 0; n < kCount; ++n) made.at[n] = holds.at[n] ? a.at[n] : b.at[n];
    made.Leave(At(buffers, i.to), first);
  });
}

template <typename T, typename To>
void CastTo(const Instruction& i, char* const* buffers) {
  for (int64_t lane = 0; lane < i.lanes; ++lane) {
    const auto from = Lanes<T, 1>::Of(At(buffers, i.a), lane);
    Lanes<To, 1>{{static_cast<To>(from.at[0])}}.Leave(At(buffers, i.to), lane);
  }
}

template <typename T, int64_t lanes>
void Cast(const Instruction& i, char* const* buffers) {
  switch (i.extra) {
    case kUint8:
      return CastTo<T, uint8_t>(i, buffers);
    case kInt8:
      return CastTo<T, int8_t>(i, buffers);
    case kUint16:
      return CastTo<T, uint16_t>(i, buffers);
    case kInt16:
      return CastTo<T, int16_t>(i, buffers);
    case kUint32:
      return CastTo<T, uint32_t>(i, buffers);
    case kInt32:
      return CastTo<T, int32_t>(i, buffers);
    case kUint64:
      return CastTo<T, uint64_t>(i, buffers);
    default:
      return CastTo<T, int64_t>(i, buffers);
  }
}

template <typename T, int64_t lanes>
void Spread(const Instruction& i, char* const* buffers) {
  const T word = Lanes<T, 1>::Of(At(buffers, i.a), 0).at[0];
  InBlocks<lanes>(i, [&](int64_t first, auto known) {
    Lanes<T, decltype(known)::value> made;
    for (T& one : made.at) one = word;
    made.Leave(At(buffers, i.to), first);
  });
}

template <typename T, int64_t lanes>
void Ramp(const Instruction& i, char* const* buffers) {
  const T base = Lanes<T, 1>::Of(At(buffers, i.a), 0).at[0];
  const T stride = Lanes<T, 1>::Of(At(buffers, i.b), 0).at[0];
  for (int64_t lane = 0; lane < i.lanes; ++lane) {
    const auto steps = Wide<T>(stride) * static_cast<Wide<T>>(lane);
    Lanes<T, 1>{{static_cast<T>(Wide<T>(base) + steps)}}.Leave(At(buffers, i.to), lane);
  }
}

template <typename T, int64_t lanes>
Compute OfKind(int64_t op) {
  switch (op) {
    case kAdd:
      return Binary<kAdd, T, lanes>;
    case kSub:
      return Binary<kSub, T, lanes>;
    case kMul:
      return Binary<kMul, T, lanes>;
    case kMulAdd:
      return MulAdd<T, lanes>;
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
  switch (i.lanes) {
    case 1:
      return OfKind<T, 1>(i.op);
    case 4:
      return OfKind<T, 4>(i.op);
    case 8:
      return OfKind<T, 8>(i.op);
    case 16:
      return OfKind<T, 16>(i.op);
    default:
      return OfKind<T, 0>(i.op);
  }
}

}  // namespace

Compute ComputeOf(const Instruction& instruction) {
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

}  // namespace words
}  // namespace composite
