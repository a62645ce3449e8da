// CUDA's atomic functions. One operating-system thread plays all CUDA threads, so that each is a plain update;
// the recorder is told of it by fsr_atomic_update.
#pragma once
#include "math_functions.h"
#include "reinterpret.h"
#include "runtime.h"
#include "vector_types.h"

namespace fsr {
template <class T>
inline bool adds_nothing(T v) {
  if constexpr (std::is_integral_v<T>) return v == 0;
  return false;
}

#ifdef FSR_TRACE  // what is lifted is the sum
inline float added(const float*, float old, float v) { return old + v; }
#else
inline float added(const float* p, float old, float v) { return fsr_added(p, old, v); }
#endif
}  // namespace fsr

// One function a scope: they do the same here, and the recorder is told which.
#define FSR_ATOMIC(name, T, expression)                                                     \
  FSR_ATOMIC_SCOPE(name, T, expression, 0)                                                  \
  FSR_ATOMIC_SCOPE(name##_block, T, expression, FSR_BLOCK)                                  \
  FSR_ATOMIC_SCOPE(name##_system, T, expression, 0)
#define FSR_ATOMIC_SCOPE(name, T, expression, scope)                                        \
  inline T name(T* p, T v, int line = __builtin_LINE()) {                                   \
    if (fsr::adds_nothing(v)) fsr_yield(line);                                              \
    return fsr_atomic_update(p, line, [=](T old) -> T { return expression; }, scope);       \
  }

FSR_ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)v))
FSR_ATOMIC(atomicAdd, unsigned, old + v)
FSR_ATOMIC(atomicAdd, unsigned long long, old + v)
FSR_ATOMIC(atomicAdd, float, fsr::added(p, old, v))
FSR_ATOMIC(atomicAdd, double, old + v)
FSR_ATOMIC(atomicAdd, float2, make_float2(old.x + v.x, old.y + v.y))
FSR_ATOMIC(atomicAdd, float4, make_float4(old.x + v.x, old.y + v.y, old.z + v.z, old.w + v.w))
FSR_ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)v))
FSR_ATOMIC(atomicSub, unsigned, old - v)

#define FSR_ATOMIC_ORDERED(T)                           \
  FSR_ATOMIC(atomicMin, T, v < old ? v : old)           \
  FSR_ATOMIC(atomicMax, T, v > old ? v : old)
#define FSR_ATOMIC_BITS(T)                              \
  FSR_ATOMIC(atomicAnd, T, old & v)                     \
  FSR_ATOMIC(atomicOr, T, old | v)                      \
  FSR_ATOMIC(atomicXor, T, old ^ v)
FSR_ATOMIC_ORDERED(int)
FSR_ATOMIC_ORDERED(unsigned)
FSR_ATOMIC_ORDERED(long long)
FSR_ATOMIC_ORDERED(unsigned long long)
FSR_ATOMIC_BITS(int)
FSR_ATOMIC_BITS(unsigned)
FSR_ATOMIC_BITS(unsigned long long)

FSR_ATOMIC(atomicInc, unsigned, old >= v ? 0u : old + 1u)
FSR_ATOMIC(atomicDec, unsigned, old == 0u || old > v ? v : old - 1u)

#undef FSR_ATOMIC
#undef FSR_ATOMIC_SCOPE
#undef FSR_ATOMIC_ORDERED
#undef FSR_ATOMIC_BITS

// Exchange and compare-and-swap are what spin locks are made of, and adding zero is a load: they let others move on.
#define FSR_ATOMIC_SWAP(name, T, scope)                                                     \
  inline T name(T* p, T v, int line = __builtin_LINE()) {                                   \
    fsr_yield(line);                                                                        \
    return fsr_atomic_update(p, line, [v](T) -> T { return v; }, scope);                    \
  }
#define FSR_ATOMIC_CAS(name, T, scope)                                                      \
  inline T name(T* p, T expected, T v, int line = __builtin_LINE()) {                       \
    fsr_yield(line);                                                                        \
    return fsr_atomic_update(p, line, [=](T old) -> T { return old == expected ? v : old; }, scope); \
  }
#define FSR_ATOMIC_SCOPES(define, name, T) define(name, T, 0) define(name##_block, T, FSR_BLOCK) define(name##_system, T, 0)
FSR_ATOMIC_SCOPES(FSR_ATOMIC_SWAP, atomicExch, int)
FSR_ATOMIC_SCOPES(FSR_ATOMIC_SWAP, atomicExch, unsigned)
FSR_ATOMIC_SCOPES(FSR_ATOMIC_SWAP, atomicExch, unsigned long long)
FSR_ATOMIC_SCOPES(FSR_ATOMIC_SWAP, atomicExch, float)
FSR_ATOMIC_SCOPES(FSR_ATOMIC_CAS, atomicCAS, int)
FSR_ATOMIC_SCOPES(FSR_ATOMIC_CAS, atomicCAS, unsigned)
FSR_ATOMIC_SCOPES(FSR_ATOMIC_CAS, atomicCAS, unsigned long long)
FSR_ATOMIC_SCOPES(FSR_ATOMIC_CAS, atomicCAS, unsigned short)
#undef FSR_ATOMIC_SWAP
#undef FSR_ATOMIC_CAS
#undef FSR_ATOMIC_SCOPES
