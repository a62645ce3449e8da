// PTX's read-modify-writes: atom and red, in terms of fsr_atomic_update.
#pragma once
#include "ptx_memory.h"

namespace fsr_ptx {

template <class T>
struct Added {
  static T sum(const T*, T a, T b) { return (T)(a + b); }
};
template <>
struct Added<float> {
  static float sum(const float* at, float a, float b) { return fsr::added(at, a, b); }
};
template <class T>
constexpr bool waits(T value) {
  if constexpr (std::is_integral_v<T>) return value == 0;  // adding zero is a load
  return false;
}

#define FSR_UPDATED(name, gives_way, expression)                                                                        \
  template <class T, Space space, unsigned how, class R>                                                                \
  FSR_INSTRUCTION T atom_##name(R address, long long offset, T value, int line = __builtin_LINE()) {                    \
    T* at = reinterpret_cast<T*>(place<space>(address, offset, sizeof(T), line));                                       \
    if (gives_way) fsr_yield(line);                                                                                     \
    return fsr_atomic_update(at, line, [=](T old) -> T { return expression; }, how);                                \
  }
FSR_UPDATED(add, waits(value), Added<T>::sum(at, old, value))
FSR_UPDATED(min, false, value < old ? value : old)
FSR_UPDATED(max, false, value > old ? value : old)
FSR_UPDATED(and, false, old & value)
FSR_UPDATED(or, waits(value), old | value)
FSR_UPDATED(xor, waits(value), old ^ value)
FSR_UPDATED(exch, true, (void(old), value))
FSR_UPDATED(inc, false, old >= value ? 0 : old + 1)
FSR_UPDATED(dec, false, old == 0 || old > value ? value : old - 1)
#undef FSR_UPDATED

template <class T, Space space, unsigned how, class R>
FSR_INSTRUCTION T atom_cas(R address, long long offset, T expected, T value, int line = __builtin_LINE()) {
  T* at = reinterpret_cast<T*>(place<space>(address, offset, sizeof(T), line));
  fsr_yield(line);
  return fsr_atomic_update(at, line, [=](T old) -> T { return old == expected ? value : old; }, how);
}

}  // namespace fsr_ptx
