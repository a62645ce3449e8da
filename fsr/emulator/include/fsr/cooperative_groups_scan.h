// cg::inclusive_scan and cg::exclusive_scan over tiles and coalesced groups.
#pragma once
#include "cooperative_groups_reduce.h"

namespace cooperative_groups {

template <class Group, class T, class Op = plus<T>>
inline T inclusive_scan(const Group& group, T value, Op op = Op(), int line = __builtin_LINE()) {
  unsigned size = group.num_threads(), rank = group.thread_rank();
  for (unsigned distance = 1; distance < size; distance *= 2) {
    T other = group.shfl_up(value, distance, line);
    if (rank >= distance) value = op(other, value);
  }
  return value;
}
template <class Group, class T, class Op = plus<T>>
inline T exclusive_scan(const Group& group, T value, Op op = Op(), int line = __builtin_LINE()) {
  T before = group.shfl_up(inclusive_scan(group, value, op, line), 1, line);
  return group.thread_rank() == 0 ? T() : before;
}

}  // namespace cooperative_groups
