// cub::WarpReduce and cub::WarpScan: the same steps in the same order as the shuffling ones of CUB, so that floats are
// the same bits. What is not specified (a reduction's value in other lanes than the first) is what those steps leave.
#pragma once
#include "cub_operators.h"
#include "warp.h"

namespace fsr {

// The value that another lane passes, of any size: lanes post 16 bytes at a time.
template <class T>
inline T passed(unsigned mask, const T& value, unsigned source, int line) {
  static_assert(__is_trivially_copyable(T), "a warp passes on what can be copied byte by byte");
  if constexpr (sizeof(T) <= sizeof(fsr_post)) {
    return exchange(mask, value, source, line);
  } else {
    T result = value;
    constexpr size_t step = sizeof(fsr_post);
    for (size_t at = 0; at < sizeof(T); at += step) {
      const size_t bytes = sizeof(T) - at < step ? sizeof(T) - at : step;
      fsr_post part{};
      __builtin_memcpy(part.bytes, reinterpret_cast<const char*>(&value) + at, bytes);
      part = exchange(mask, part, source, line);
      __builtin_memcpy(reinterpret_cast<char*>(&result) + at, part.bytes, bytes);
    }
    return result;
  }
}

// Lanes that work together, `Width` of a warp: this thread's place among them.
template <int Width>
struct Lanes {
  static_assert(Width >= 1 && Width <= 32, "a logical warp has 1 to 32 threads");
  unsigned lane = fsr_lane() % Width, first = fsr_lane() - fsr_lane() % Width;
  unsigned mask = (Width == 32 ? 0xffffffffu : (1u << (Width & 31)) - 1u) << first;
  int line;
  explicit Lanes(int line_) : line(line_) {}

  template <class T>
  T down(const T& value, unsigned by) const {
    return passed(mask, value, lane + by < Width ? first + lane + by : first + lane, line);
  }
  template <class T>
  T up(const T& value, unsigned by) const {
    return passed(mask, value, lane >= by ? first + lane - by : first + lane, line);
  }
  template <class T>
  T from(const T& value, unsigned source) const { return passed(mask, value, first + source, line); }

  // The fold of the first `valid` lanes' values, in lane 0.
  template <class T, class Op>
  T folded(T value, Op op, int valid = Width) const {
    for (unsigned by = 1; by < Width; by *= 2) {
      T other = down(value, by);
      if ((int)(lane + by) < valid) value = op(value, other);
    }
    return value;
  }
  // The fold of all values up to this lane's.
  template <class T, class Op>
  T running(T value, Op op) const {
    for (unsigned by = 1; by < Width; by *= 2) {
      T other = up(value, by);
      if (lane >= by) value = op(other, value);
    }
    return value;
  }
};

}  // namespace fsr

namespace cub {

template <class T, int Width = 32, int = 0>
class WarpReduce {
  fsr::Lanes<Width> lanes;

 public:
  struct TempStorage : NullType {};
  explicit WarpReduce(TempStorage&, int line = __builtin_LINE()) : lanes(line) {}
  T Sum(T input) { return lanes.folded(input, cub::Sum()); }
  T Sum(T input, int valid) { return lanes.folded(input, cub::Sum(), valid); }
  template <class Op>
  T Reduce(T input, Op op) { return lanes.folded(input, op); }
  template <class Op>
  T Reduce(T input, Op op, int valid) { return lanes.folded(input, op, valid); }
};

template <class T, int Width = 32, int = 0>
class WarpScan {
  fsr::Lanes<Width> lanes;

  T last(const T& inclusive) const { return lanes.from(inclusive, Width - 1); }

 public:
  struct TempStorage : NullType {};
  explicit WarpScan(TempStorage&, int line = __builtin_LINE()) : lanes(line) {}

  template <class Op>
  void InclusiveScan(T input, T& output, Op op) { output = lanes.running(input, op); }
  template <class Op>
  void InclusiveScan(T input, T& output, Op op, T& aggregate) { aggregate = last(output = lanes.running(input, op)); }
  // Without a first value what the first lane is given is not specified: its own, here.
  template <class Op>
  void ExclusiveScan(T input, T& output, Op op) { output = lanes.up(lanes.running(input, op), 1); }
  template <class Op>
  void ExclusiveScan(T input, T& output, T initial, Op op) {
    T before = lanes.up(lanes.running(input, op), 1);
    output = lanes.lane == 0 ? initial : op(initial, before);
  }
  template <class Op>
  void ExclusiveScan(T input, T& output, T initial, Op op, T& aggregate) {
    T inclusive = lanes.running(input, op), before = lanes.up(inclusive, 1);
    aggregate = last(inclusive);
    output = lanes.lane == 0 ? initial : op(initial, before);
  }
  template <class Op>
  void Scan(T input, T& inclusive, T& exclusive, Op op) {
    inclusive = lanes.running(input, op);
    exclusive = lanes.up(inclusive, 1);
  }
  void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub::Sum()); }
  void InclusiveSum(T input, T& output, T& aggregate) { InclusiveScan(input, output, cub::Sum(), aggregate); }
  void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T{}, cub::Sum()); }
  void ExclusiveSum(T input, T& output, T& aggregate) { ExclusiveScan(input, output, T{}, cub::Sum(), aggregate); }
  T Broadcast(T input, unsigned source) { return lanes.from(input, source); }
};

}  // namespace cub
