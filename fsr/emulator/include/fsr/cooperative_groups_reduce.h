// cg::reduce and its operators over tiles and coalesced groups.
#pragma once
#include "cooperative_groups.h"

namespace cooperative_groups {

#define FSR_OPERATOR(name, expression)                 \
  template <class T = void>                            \
  struct name {                                        \
    T operator()(T a, T b) const { return expression; } \
  };
FSR_OPERATOR(plus, a + b)
FSR_OPERATOR(less, b < a ? b : a)
FSR_OPERATOR(greater, a < b ? b : a)
FSR_OPERATOR(bit_and, a& b)
FSR_OPERATOR(bit_or, a | b)
FSR_OPERATOR(bit_xor, a ^ b)
#undef FSR_OPERATOR

// A tree of halving distances, as the device reduces floating point: the order of additions is the same. A
// coalesced group whose size is no power of two takes the lanes beyond its lower half first.
template <class Group, class T, class Op>
inline T reduce(const Group& group, T value, Op op, int line = __builtin_LINE()) {
  unsigned size = group.num_threads(), rank = group.thread_rank();
  unsigned reach = 1;
  while (reach * 2 <= size) reach *= 2;
  if (reach < size) {
    T other = group.shfl_down(value, reach, line);
    if (rank + reach < size) value = op(value, other);
  }
  for (unsigned distance = reach / 2; distance; distance /= 2) {
    T other = group.shfl_xor(value, distance, line);
    if (rank < reach) value = op(value, other);
  }
  return group.shfl(value, 0, line);
}

}  // namespace cooperative_groups
