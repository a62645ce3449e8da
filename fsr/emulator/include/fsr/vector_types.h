// CUDA's built-in vector types: float4, int2 and their make_ functions, aligned as on the device. uint3 and dim3
// are the runtime's.
#pragma once
#include "runtime.h"

// Sizes and alignments follow the table "Alignment Requirements" of the CUDA C++ Programming Guide: two- and
// four-element vectors are aligned to their size, at most 16 bytes; one and three elements to one element.
#define FSR_VECTOR_TYPES(name, T)                                                              \
  struct name##3 { T x, y, z; };                                                               \
  FSR_VECTOR_TYPES_BUT_3(name, T)
#define FSR_VECTOR_TYPES_BUT_3(name, T)                                                        \
  struct name##1 { T x; };                                                                     \
  struct alignas(2 * sizeof(T) > 16 ? 16 : 2 * sizeof(T)) name##2 { T x, y; };                 \
  struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; };           \
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
  struct alignas(32) name##4_32a { T x, y, z, w; };                                                     \
  inline constexpr name##4_16a make_##name##4_16a(T x, T y, T z, T w) { return {x, y, z, w}; }          \
  inline constexpr name##4_32a make_##name##4_32a(T x, T y, T z, T w) { return {x, y, z, w}; }
FSR_WIDE_VECTOR(long, long)
FSR_WIDE_VECTOR(ulong, unsigned long)
FSR_WIDE_VECTOR(longlong, long long)
FSR_WIDE_VECTOR(ulonglong, unsigned long long)
FSR_WIDE_VECTOR(double, double)
#undef FSR_WIDE_VECTOR
