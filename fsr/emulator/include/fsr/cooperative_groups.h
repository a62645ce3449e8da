// Cooperative groups: the block, tiles of it, coalesced lanes, and the grid.
#pragma once
#include "barriers.h"
#include "warp.h"

namespace cooperative_groups {

namespace fsr_detail {
inline unsigned rank_in(unsigned mask) { return (unsigned)__builtin_popcount(mask & ((1u << fsr_lane()) - 1u)); }
inline unsigned lane_of(unsigned mask, unsigned rank) {  // the rank-th lane of the mask
  for (; rank; --rank) mask &= mask - 1u;
  return mask ? (unsigned)__builtin_ctz(mask) : fsr_lane();
}
inline unsigned tile_mask(unsigned size) {
  return (size == 32 ? 0xffffffffu : (1u << size) - 1u) << (fsr_lane() & ~(size - 1u));
}
inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
}  // namespace fsr_detail

// What every group can do, given the warp lanes it is made of; `Group` has mask(), a size and a rank.
template <class Group>
class warp_group {
 public:
  void sync(int line = __builtin_LINE()) const { fsr_syncwarp(mask(), line); }
  template <class T>
  T shfl(T value, int rank, int line = __builtin_LINE()) const {
    return fsr::exchange(mask(), value, fsr_detail::lane_of(mask(), (unsigned)rank % size()), line);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, int line = __builtin_LINE()) const {
    unsigned rank = self().thread_rank(), from = rank >= delta ? rank - delta : rank;
    return fsr::exchange(mask(), value, fsr_detail::lane_of(mask(), from), line);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, int line = __builtin_LINE()) const {
    unsigned rank = self().thread_rank(), from = rank + delta < size() ? rank + delta : rank;
    return fsr::exchange(mask(), value, fsr_detail::lane_of(mask(), from), line);
  }
  template <class T>
  T shfl_xor(T value, unsigned other, int line = __builtin_LINE()) const {
    unsigned rank = self().thread_rank(), from = (rank ^ other) < size() ? rank ^ other : rank;
    return fsr::exchange(mask(), value, fsr_detail::lane_of(mask(), from), line);
  }
  int any(int predicate, int line = __builtin_LINE()) const { return fsr_ballot(mask(), predicate, line) != 0; }
  int all(int predicate, int line = __builtin_LINE()) const { return fsr_ballot(mask(), !predicate, line) == 0; }
  unsigned ballot(int predicate, int line = __builtin_LINE()) const {  // bit r: the thread of rank r
    return by_rank(fsr_ballot(mask(), predicate, line));
  }
  template <class T>
  unsigned match_any(T value, int line = __builtin_LINE()) const {
    return by_rank(__match_any_sync(mask(), value, line));
  }
  template <class T>
  unsigned match_all(T value, int& all, int line = __builtin_LINE()) const {
    return by_rank(__match_all_sync(mask(), value, &all, line));
  }

 private:
  const Group& self() const { return static_cast<const Group&>(*this); }
  unsigned mask() const { return self().lane_mask(); }
  unsigned size() const { return self().num_threads(); }
  unsigned by_rank(unsigned lanes) const {
    unsigned ranks = 0, at = 0;
    for (unsigned left = mask(); left; left &= left - 1u, ++at)
      if (lanes >> __builtin_ctz(left) & 1u) ranks |= 1u << at;
    return ranks;
  }
};

class thread_block {
 public:
  static void sync(int line = __builtin_LINE()) { fsr_syncthreads(line); }
  static unsigned thread_rank() { return fsr_thread; }
  static unsigned num_threads() { return fsr_detail::block_size(); }
  static unsigned size() { return num_threads(); }
  static dim3 group_index() { return dim3(blockIdx); }
  static dim3 thread_index() { return dim3(threadIdx); }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
  // Arrival apart from waiting needs two barriers at one line, which a fiber cannot tell from a divergent one.
  template <int N = 0>
  int barrier_arrive() const {
    static_assert(N != 0, "fsr host device: a split barrier (thread_block::barrier_arrive) is not executed on the CPU");
    return 0;
  }
};
inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  static void sync(int line = __builtin_LINE()) { fsr_syncgrid(line); }
  static bool is_valid() { return false; }
  static unsigned long long block_rank() {
    return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
  }
  static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long thread_rank() { return block_rank() * fsr_detail::block_size() + fsr_thread; }
  static unsigned long long num_threads() { return num_blocks() * fsr_detail::block_size(); }
  static unsigned long long size() { return num_threads(); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return dim3(blockIdx); }
};
inline grid_group this_grid() { return {}; }

class coalesced_group : public warp_group<coalesced_group> {
 public:
  explicit coalesced_group(unsigned lanes) : lanes_(lanes) {}
  unsigned lane_mask() const { return lanes_; }
  unsigned thread_rank() const { return fsr_detail::rank_in(lanes_); }
  unsigned num_threads() const { return (unsigned)__builtin_popcount(lanes_); }
  unsigned size() const { return num_threads(); }
  unsigned meta_group_rank() const { return 0; }
  unsigned meta_group_size() const { return 1; }

 private:
  unsigned lanes_;
};
inline coalesced_group coalesced_threads(int line = __builtin_LINE()) { return coalesced_group(fsr_activemask(line)); }

template <unsigned Size, class Parent>
class thread_block_tile;

// How many threads a tile's parent has, which its meta group counts within: the block's unless it is a tile itself.
template <class Parent>
struct parent_threads {
  static unsigned rank() { return fsr_thread; }
  static unsigned count() { return fsr_detail::block_size(); }
};
template <unsigned Size, class Parent>
struct parent_threads<thread_block_tile<Size, Parent>> {
  static unsigned rank() { return fsr_thread & (Size - 1u); }
  static unsigned count() { return Size; }
};

template <unsigned Size, class Parent = void>
class thread_block_tile : public warp_group<thread_block_tile<Size, Parent>> {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                "fsr host device: a tile of more than 32 threads is not executed on the CPU");

 public:
  thread_block_tile() = default;
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>&) {}
  static unsigned lane_mask() { return fsr_detail::tile_mask(Size); }
  static unsigned thread_rank() { return fsr_thread & (Size - 1u); }
  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static unsigned meta_group_rank() { return parent_threads<Parent>::rank() / Size; }
  static unsigned meta_group_size() { return (parent_threads<Parent>::count() + Size - 1u) / Size; }
};
template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

// A group whose kind is known at run time only: the block, or lanes of a warp.
class thread_group : public warp_group<thread_group> {
 public:
  thread_group(thread_block) : block_(true), lanes_(0) {}
  thread_group(coalesced_group g) : block_(false), lanes_(g.lane_mask()) {}
  template <unsigned Size, class Parent>
  thread_group(thread_block_tile<Size, Parent> g) : block_(false), lanes_(g.lane_mask()) {}
  explicit thread_group(unsigned lanes) : block_(false), lanes_(lanes) {}
  void sync(int line = __builtin_LINE()) const { block_ ? fsr_syncthreads(line) : fsr_syncwarp(lanes_, line); }
  unsigned lane_mask() const { return lanes_; }
  unsigned thread_rank() const { return block_ ? fsr_thread : fsr_detail::rank_in(lanes_); }
  unsigned num_threads() const { return block_ ? fsr_detail::block_size() : (unsigned)__builtin_popcount(lanes_); }
  unsigned size() const { return num_threads(); }

 private:
  bool block_;
  unsigned lanes_;
};
template <class Parent>
inline thread_group tiled_partition(const Parent&, unsigned size) {
  return thread_group(fsr_detail::tile_mask(size));
}

// Splits a tile or coalesced group by a value: threads of one value form one group.
template <class Group, class T>
inline coalesced_group labeled_partition(const Group& group, T label, int line = __builtin_LINE()) {
  return coalesced_group(__match_any_sync(group.lane_mask(), label, line));
}
template <class Group>
inline coalesced_group binary_partition(const Group& group, bool side, int line = __builtin_LINE()) {
  unsigned yes = fsr_ballot(group.lane_mask(), side, line);
  return coalesced_group(side ? yes : group.lane_mask() & ~yes);
}

template <class Group>
inline void sync(const Group& group, int line = __builtin_LINE()) {
  group.sync(line);
}
template <class Group>
inline unsigned thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
inline unsigned group_size(const Group& group) {
  return group.size();
}

}  // namespace cooperative_groups
