// PTX's integer instructions. Meanings: PTX ISA 8.7, "Integer Arithmetic", "Extended-Precision Integer Arithmetic", "Logic
// and Shift", "Data Movement: prmt".
#pragma once
#include "ptx_registers.h"

namespace fsr_ptx {

namespace integers {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, S64, B64>,
                       std::conditional_t<std::is_signed_v<T>, S32, B32>>>;
template <class T>
constexpr int bits = 8 * (int)sizeof(T);

template <class T, class W>
FSR_INSTRUCTION T clamped(W value) {
  return value > (W)std::numeric_limits<T>::max()   ? std::numeric_limits<T>::max()
         : value < (W)std::numeric_limits<T>::min() ? std::numeric_limits<T>::min()
                                                    : (T)value;
}

template <class T, unsigned mode = 0>
FSR_INSTRUCTION T add_(T a, T b) {
  if constexpr (mode & kSat) return clamped<T>((Wide<T>)a + (Wide<T>)b);
  return (T)((Unsigned<T>)a + (Unsigned<T>)b);
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T sub_(T a, T b) {
  if constexpr (mode & kSat) return clamped<T>((Wide<T>)a - (Wide<T>)b);
  return (T)((Unsigned<T>)a - (Unsigned<T>)b);
}
template <class T>
FSR_INSTRUCTION Wide<T> mul_wide_(T a, T b) {
  return (Wide<T>)a * (Wide<T>)b;
}
template <class T>
FSR_INSTRUCTION T mul_lo_(T a, T b) {
  return (T)((B64)a * (B64)b);
}
template <class T>
FSR_INSTRUCTION T mul_hi_(T a, T b) {
  return (T)(mul_wide_(a, b) >> bits<T>);
}
template <class T>
FSR_INSTRUCTION T mad_lo_(T a, T b, T c) {
  return (T)((B64)a * (B64)b + (B64)c);
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T mad_hi_(T a, T b, T c) {
  return add_<T, mode>(mul_hi_(a, b), c);
}
template <class T>
FSR_INSTRUCTION Wide<T> mad_wide_(T a, T b, Wide<T> c) {
  return (Wide<T>)((Unsigned<Wide<T>>)mul_wide_(a, b) + (Unsigned<Wide<T>>)c);
}
// Of 24 bits, sign or zeros above.
template <class T>
FSR_INSTRUCTION S64 mul24_(T a, T b) {
  return std::is_signed_v<T> ? (S64)((S32)((B32)a << 8) >> 8) * ((S32)((B32)b << 8) >> 8)
                             : (S64)((B64)((B32)a & 0xffffffu) * ((B32)b & 0xffffffu));
}
template <class T>
FSR_INSTRUCTION T mul24_lo_(T a, T b) {
  return (T)mul24_(a, b);
}
template <class T>
FSR_INSTRUCTION T mul24_hi_(T a, T b) {
  return (T)(mul24_(a, b) >> 16);
}
template <class T>
FSR_INSTRUCTION T div_(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b == (T)-1) return (T)(0 - (Unsigned<T>)a);
  return (T)(a / b);
}
template <class T>
FSR_INSTRUCTION T rem_(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b == (T)-1) return 0;
  return (T)(a % b);
}
template <class T>
FSR_INSTRUCTION T sad_(T a, T b, T c) {
  return (T)((Unsigned<T>)c + (a < b ? (Unsigned<T>)b - (Unsigned<T>)a : (Unsigned<T>)a - (Unsigned<T>)b));
}
template <class T>
FSR_INSTRUCTION T min_(T a, T b) {
  return b < a ? b : a;
}
template <class T>
FSR_INSTRUCTION T max_(T a, T b) {
  return b > a ? b : a;
}
template <class T>
FSR_INSTRUCTION T neg_(T a) {
  return (T)(0 - (Unsigned<T>)a);
}
template <class T>
FSR_INSTRUCTION T abs_(T a) {
  return a < 0 ? neg_(a) : a;
}

// Sums with carries: in, and where the carry out goes.
template <class T>
FSR_INSTRUCTION T add_carrying(T a, T b, bool in, bool& out) {
  Wide<T> sum = (Wide<T>)a + b + in;
  out = (bool)(sum >> bits<T>);
  return (T)sum;
}
template <class T>
FSR_INSTRUCTION T sub_carrying(T a, T b, bool in, bool& out) {
  Wide<T> difference = (Wide<T>)a - b - in;
  out = (bool)(difference >> bits<T> & 1);
  return (T)difference;
}
template <class T>
FSR_INSTRUCTION T mad_lo_carrying(T a, T b, T c, bool in, bool& out) {
  return add_carrying<T>(mul_lo_(a, b), c, in, out);
}
template <class T>
FSR_INSTRUCTION T mad_hi_carrying(T a, T b, T c, bool in, bool& out) {
  return (T)add_carrying<Unsigned<T>>((Unsigned<T>)mul_hi_(a, b), (Unsigned<T>)c, in, out);
}

template <class T>
FSR_INSTRUCTION T and_(T a, T b) {
  return a & b;
}
template <class T>
FSR_INSTRUCTION T or_(T a, T b) {
  return a | b;
}
template <class T>
FSR_INSTRUCTION T xor_(T a, T b) {
  return a ^ b;
}
template <class T>
FSR_INSTRUCTION T not_(T a) {
  if constexpr (std::is_same_v<T, bool>) return !a;
  return (T)~a;
}
template <class T>
FSR_INSTRUCTION T cnot_(T a) {
  return a == 0;
}
// Counts beyond the width shift everything out.
template <class T>
FSR_INSTRUCTION T shl_(T a, B32 count) {
  return count >= (B32)bits<T> ? (T)0 : (T)((B64)a << count);
}
template <class T>
FSR_INSTRUCTION T shr_(T a, B32 count) {
  if (count >= (B32)bits<T>) return a < 0 ? (T)-1 : (T)0;
  return (T)(a >> count);
}
FSR_INSTRUCTION B32 left(B32 a, B32 b, B32 count) { return (B32)(((B64)b << 32 | a) << count >> 32); }
FSR_INSTRUCTION B32 right(B32 a, B32 b, B32 count) { return (B32)(((B64)b << 32 | a) >> count); }
template <class T>
FSR_INSTRUCTION B32 shf_l_clamp_(T a, T b, B32 count) {
  return left(a, b, count < 32 ? count : 32);
}
template <class T>
FSR_INSTRUCTION B32 shf_l_wrap_(T a, T b, B32 count) {
  return left(a, b, count & 31);
}
template <class T>
FSR_INSTRUCTION B32 shf_r_clamp_(T a, T b, B32 count) {
  return right(a, b, count < 32 ? count : 32);
}
template <class T>
FSR_INSTRUCTION B32 shf_r_wrap_(T a, T b, B32 count) {
  return right(a, b, count & 31);
}
template <class T>
FSR_INSTRUCTION B32 lop3_(T a, T b, T c, B32 table) {
  B32 result = 0;
  for (int row = 0; row < 8; row++)
    if (table >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  return result;
}

// Byte `pick` of {b, a}; its highest bit asks for copies of the byte's sign.
FSR_INSTRUCTION B32 byte_of(B32 a, B32 b, B32 pick) {
  B32 byte = (B32)(((B64)b << 32 | a) >> (8 * (pick & 7))) & 0xff;
  return pick & 8 ? (byte >> 7 ? 0xffu : 0u) : byte;
}
#define FSR_PERMUTED(name, picks)                                  \
  template <class T>                                               \
  FSR_INSTRUCTION B32 name(T a, T b, B32 c) {                      \
    B32 result = 0;                                                \
    for (B32 n = 0; n < 4; n++) result |= byte_of(a, b, picks) << (8 * n); \
    return result;                                                 \
  }
FSR_PERMUTED(prmt_, c >> (4 * n) & 15)
FSR_PERMUTED(prmt_f4e_, ((c & 3) + n) & 7)
FSR_PERMUTED(prmt_b4e_, ((c & 3) - n) & 7)
FSR_PERMUTED(prmt_rc8_, c & 3)
FSR_PERMUTED(prmt_ecl_, n > (c & 3) ? n : (c & 3))
FSR_PERMUTED(prmt_ecr_, n < (c & 3) ? n : (c & 3))
FSR_PERMUTED(prmt_rc16_, ((c & 1) << 1) + (n & 1))
#undef FSR_PERMUTED

template <class T>
FSR_INSTRUCTION T bfe_(T a, B32 start, B32 length) {
  constexpr B32 msb = bits<T> - 1;
  start &= 0xff, length &= 0xff;
  if (!length) return 0;
  B32 last = start + length - 1 < msb ? start + length - 1 : msb;
  bool sign = std::is_signed_v<T> && (a >> last & 1);
  Unsigned<T> field = start > msb ? 0 : (Unsigned<T>)a >> start;
  B32 kept = start > msb ? 0 : msb - start + 1 < length ? msb - start + 1 : length;
  Unsigned<T> mask = kept > msb ? (Unsigned<T>)~(Unsigned<T>)0 : (Unsigned<T>)(((Unsigned<T>)1 << kept) - 1);
  return (T)((field & mask) | (sign ? (Unsigned<T>)~mask : 0));
}
template <class T>
FSR_INSTRUCTION T bfi_(T a, T b, B32 start, B32 length) {
  constexpr B32 msb = bits<T> - 1;
  start &= 0xff, length &= 0xff;
  if (start > msb || !length) return b;
  T mask = length > msb ? (T)~(T)0 : (T)(((T)1 << length) - 1);
  return (T)((b & ~(T)(mask << start)) | ((T)(a & mask) << start));
}
template <class T>
FSR_INSTRUCTION T brev_(T a) {
  T result = 0;
  for (int n = 0; n < bits<T>; n++) result |= (T)((a >> n & 1) << (bits<T> - 1 - n));
  return result;
}
template <class T>
FSR_INSTRUCTION B32 clz_(T a) {
  return a == 0 ? (B32)bits<T> : sizeof(T) == 8 ? (B32)__builtin_clzll(a) : (B32)__builtin_clz((B32)a);
}
template <class T>
FSR_INSTRUCTION B32 popc_(T a) {
  return (B32)__builtin_popcountll(a);
}
// The highest bit that is not the sign; all ones without one.
template <class T>
FSR_INSTRUCTION B32 bfind_(T a) {
  Unsigned<T> word = (Unsigned<T>)(a < 0 ? ~a : a);
  return word ? bits<T> - 1 - clz_(word) : ~0u;
}
template <class T>
FSR_INSTRUCTION B32 bfind_shiftamt_(T a) {
  B32 found = bfind_(a);
  return found == ~0u ? found : bits<T> - 1 - found;
}
template <class T>
FSR_INSTRUCTION T szext_clamp_(T a, B32 count) {
  if (count >= 32) return a;
  if (!count) return 0;
  return (T)((T)((B32)a << (32 - count)) >> (32 - count));
}
template <class T>
FSR_INSTRUCTION T szext_wrap_(T a, B32 count) {
  return szext_clamp_(a, count & 31);
}
template <class T>
FSR_INSTRUCTION B32 bmsk_clamp_(T start, B32 width) {
  if (start > 31) return 0;
  B32 ones = width > 31 ? ~0u : (1u << width) - 1;
  return ones << start;
}
template <class T>
FSR_INSTRUCTION B32 bmsk_wrap_(T start, B32 width) {
  return bmsk_clamp_<T>(start & 31, width & 31);
}

template <class A, class B, class C>
FSR_INSTRUCTION C dot(A a, B b, C c, int count, int wide, int first) {
  B32 sum = (B32)c;
  for (int n = 0; n < count; n++) {
    S32 left = wide == 16 ? (std::is_signed_v<A> ? (S32)(S16)(a >> 16 * n) : (S32)(B16)(a >> 16 * n))
                          : (std::is_signed_v<A> ? (S32)(S8)(a >> 8 * n) : (S32)(B8)(a >> 8 * n));
    S32 right = std::is_signed_v<B> ? (S32)(S8)(b >> 8 * (n + first)) : (S32)(B8)(b >> 8 * (n + first));
    sum += (B32)(left * right);
  }
  return (C)sum;
}
template <class A, class B, class C>
FSR_INSTRUCTION C dp4a_(A a, B b, C c) {
  return dot(a, b, c, 4, 8, 0);
}
template <class A, class B, class C>
FSR_INSTRUCTION C dp2a_lo_(A a, B b, C c) {
  return dot(a, b, c, 2, 16, 0);
}
template <class A, class B, class C>
FSR_INSTRUCTION C dp2a_hi_(A a, B b, C c) {
  return dot(a, b, c, 2, 16, 2);
}

}  // namespace integers
}  // namespace fsr_ptx
