// Registers of inline PTX: words that instructions read as their own types. The functions in ptx_*.h stand in for
// instructions: see fsr/backends/host/ptx/.
#pragma once
#include "reinterpret.h"
#include "runtime.h"

namespace fsr_ptx {

using B8 = uint8_t;
using B16 = uint16_t;
using B32 = uint32_t;
using B64 = uint64_t;
using S8 = int8_t;
using S16 = int16_t;
using S32 = int32_t;
using S64 = int64_t;
struct Tf32 {};  // as a target of conversions

#define FSR_INSTRUCTION inline __attribute__((always_inline))

// Modifiers of instructions, by the names that they have there.
enum Mode : unsigned {
  kRn = 1, kRz = 2, kRm = 3, kRp = 4, kRna = 5, kRni = 9, kRzi = 10, kRmi = 11, kRpi = 12,
  kRounding = 7, kWhole = 8, kFtz = 16, kSat = 32, kRelu = 64, kNaN = 128, kApprox = 256, kFull = 512,
};

// The variable of a statement's operand, and back. What nvcc does not take is no operand here.
template <class R, class T>
FSR_INSTRUCTION R taken(T value) {
  static_assert(std::is_floating_point_v<R> ? std::is_same_v<R, T> : !std::is_floating_point_v<T>,
                "fsr host device: an asm operand of another kind than its constraint");
  static_assert(std::is_scalar_v<T> && (sizeof(T) == sizeof(R) || std::is_same_v<R, long long>),
                "fsr host device: an asm operand of another size than its constraint");
  if constexpr (std::is_pointer_v<T>)
    return (R)reinterpret_cast<uintptr_t>(value);
  else
    return (R)value;
}
template <class T, class R>
FSR_INSTRUCTION void given(T& place, R value) {
  static_assert(std::is_floating_point_v<R> ? std::is_same_v<R, std::remove_cv_t<T>> : !std::is_floating_point_v<T>,
                "fsr host device: an asm operand of another kind than its constraint");
  static_assert(std::is_scalar_v<T> && sizeof(T) == sizeof(R), "fsr host device: an asm operand of another size than its constraint");
  if constexpr (std::is_pointer_v<T>)
    place = reinterpret_cast<T>((uintptr_t)value);
  else
    place = (T)value;
}

// A register's bits as an instruction's type; low: of a wider one the low bits.
template <class T, class R>
FSR_INSTRUCTION T as(R value) {
  static_assert(sizeof(T) == sizeof(R), "fsr host device: a register of another width than the instruction's type");
  if constexpr (std::is_integral_v<T> && std::is_integral_v<R>)
    return (T)value;
  else
    return fsr::bits<T>(value);
}
template <class T, class R>
FSR_INSTRUCTION T low(R value) {
  static_assert(sizeof(T) <= sizeof(R), "fsr host device: a register narrower than the instruction's type");
  if constexpr (sizeof(T) == sizeof(R))
    return as<T>(value);
  else
    return (T)as<std::conditional_t<sizeof(R) == 8, B64, std::conditional_t<sizeof(R) == 4, B32, B16>>>(value);
}
template <class R, class T>
FSR_INSTRUCTION void put(R& place, T value) {
  static_assert(sizeof(T) == sizeof(R), "fsr host device: a register of another width than the instruction's result");
  static_assert(std::is_same_v<R, bool> == std::is_same_v<T, bool>, "fsr host device: a predicate where a register belongs");
  place = as<R>(value);
}
// Into a wider register by sign, or with zeros.
template <class R, class T>
FSR_INSTRUCTION void put_wide(R& place, T value) {
  static_assert(sizeof(T) <= sizeof(R), "fsr host device: a register narrower than the instruction's result");
  if constexpr (sizeof(T) == sizeof(R))
    place = as<R>(value);
  else
    place = as<R>((std::conditional_t<sizeof(R) == 8, S64, std::conditional_t<sizeof(R) == 4, S32, S16>>)value);
}

// mov with a vector: the first part has the lowest bits.
template <class T, class P>
FSR_INSTRUCTION T joined(const P (&parts)[sizeof(T) / sizeof(P)]) {
  T value = 0;
  for (unsigned n = 0; n < sizeof(T) / sizeof(P); n++) value |= (T)((T)parts[n] << (8 * sizeof(P) * n));
  return value;
}
template <class P, unsigned n, class T>
FSR_INSTRUCTION P part(T value) {
  return (P)(value >> (8 * sizeof(P) * n));
}

template <class T, int n>
struct Several {
  T at[n];
};

// Comparisons; those that end in u hold where one is not a number.
#define FSR_COMPARED(name, condition)         \
  template <class T>                          \
  FSR_INSTRUCTION bool name(T a, T b) {       \
    return condition;                         \
  }
FSR_COMPARED(eq, a == b)
FSR_COMPARED(ne, a < b || a > b)
FSR_COMPARED(lt, a < b)
FSR_COMPARED(le, a <= b)
FSR_COMPARED(gt, a > b)
FSR_COMPARED(ge, a >= b)
FSR_COMPARED(equ, !(a < b || a > b))
FSR_COMPARED(neu, a != b)
FSR_COMPARED(ltu, !(a >= b))
FSR_COMPARED(leu, !(a > b))
FSR_COMPARED(gtu, !(a <= b))
FSR_COMPARED(geu, !(a < b))
FSR_COMPARED(num, a == a && b == b)
FSR_COMPARED(nan, a != a || b != b)
#undef FSR_COMPARED

}  // namespace fsr_ptx
