// CUDA's built-in vector types: float4, int2 and their make_ functions, aligned as on the device. uint3 and dim3
// are the runtime's.
#pragma once
#include "runtime.h"

// A GPU stops at a vector access whose address is no multiple of the vector's size; a CPU does not notice. So each vector
// of two or four holds an empty member that looks at its own address whenever the vector is copied. (Recordings
// that are not watched are without it, so that a vector stays one access; so is a unit that takes vectors for bytes.)
#if (!defined(FSR_RECORD) || defined(FSR_WATCHED)) && !defined(FSR_PLAIN_VECTORS)
inline uintptr_t fsr_address(const void* p) {  // a number that the compiler takes to be any: it believes in alignment
  uintptr_t address = reinterpret_cast<uintptr_t>(p);
  __asm__("" : "+r"(address));
  return address;
}
template <unsigned N>
struct fsr_aligned_at {
  constexpr fsr_aligned_at() = default;
  constexpr fsr_aligned_at(const fsr_aligned_at& other) noexcept { other.look(); }
  constexpr fsr_aligned_at& operator=(const fsr_aligned_at& other) noexcept {
    look();
    other.look();
    return *this;
  }
  constexpr void look() const noexcept {
    if (!__builtin_is_constant_evaluated() && __builtin_expect(fsr_address(this) % N != 0, 0)) fsr_misaligned(this, N);
  }
};
#define FSR_ALIGNED_AT(n) [[no_unique_address]] fsr_aligned_at<(n)> fsr_alignment;
#else
#define FSR_ALIGNED_AT(n)
#endif

// Sizes and alignments follow the table "Alignment Requirements" of the CUDA C++ Programming Guide: two- and
// four-element vectors are aligned to their size, at most 16 bytes; one and three elements to one element.
#define FSR_VECTOR_TYPES(name, T)                                                              \
  struct name##3 { T x, y, z; };                                                               \
  FSR_VECTOR_TYPES_BUT_3(name, T)
#define FSR_VECTOR_TYPES_BUT_3(name, T)                                                        \
  struct name##1 { T x; };                                                                     \
  struct alignas(2 * sizeof(T) > 16 ? 16 : 2 * sizeof(T)) name##2 { T x, y; FSR_ALIGNED_AT(2 * sizeof(T) > 16 ? 16 : 2 * sizeof(T)) };                 \
  struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; FSR_ALIGNED_AT(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) };           \
  inline constexpr name##1 make_##name##1(T x) { return {x}; }                                 \
  inline constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                         \
  inline constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                 \
  inline constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

FSR_VECTOR_TYPES(char, signed char)
FSR_VECTOR_TYPES(uchar, unsigned char)
FSR_VECTOR_TYPES(short, short)
FSR_VECTOR_TYPES(ushort, unsigned short)
FSR_VECTOR_TYPES(int, int)
FSR_VECTOR_TYPES_BUT_3(uint, unsigned)
FSR_VECTOR_TYPES(long, long)
FSR_VECTOR_TYPES(ulong, unsigned long)
FSR_VECTOR_TYPES(longlong, long long)
FSR_VECTOR_TYPES(ulonglong, unsigned long long)
FSR_VECTOR_TYPES(float, float)
FSR_VECTOR_TYPES(double, double)
#undef FSR_VECTOR_TYPES
#undef FSR_VECTOR_TYPES_BUT_3

// CUDA 13 names the alignment of the 32-byte vectors in the type.
#define FSR_WIDE_VECTOR(name, T)                                                                        \
  using name##4_16a = name##4;                                                                          \
  struct alignas(32) name##4_32a { T x, y, z, w; FSR_ALIGNED_AT(32) };                                                     \
  inline constexpr name##4_16a make_##name##4_16a(T x, T y, T z, T w) { return {x, y, z, w}; }          \
  inline constexpr name##4_32a make_##name##4_32a(T x, T y, T z, T w) { return {x, y, z, w}; }
FSR_WIDE_VECTOR(long, long)
FSR_WIDE_VECTOR(ulong, unsigned long)
FSR_WIDE_VECTOR(longlong, long long)
FSR_WIDE_VECTOR(ulonglong, unsigned long long)
FSR_WIDE_VECTOR(double, double)
#undef FSR_WIDE_VECTOR
