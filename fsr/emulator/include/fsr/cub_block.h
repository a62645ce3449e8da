// cub::BlockReduce and cub::BlockScan: warps first, then what they found in shared memory, as CUB's algorithm of
// warp reductions (the default one) and of warp scans have it. The other algorithms group the same terms differently.
// TempStorage that is used again without a barrier in between is a race here as there.
#pragma once
#include "barriers.h"
#include "cub_warp.h"

namespace fsr {

// A block's threads, which must be as many as a collective was made for.
template <int Threads>
struct BlockThreads : Lanes<32> {
  static constexpr int warps = (Threads + 31) / 32;
  unsigned warp = fsr_thread / 32u;
  explicit BlockThreads(int line_) : Lanes<32>(line_) {
    if (blockDim.x * blockDim.y * blockDim.z != Threads)
      fsr_trap("a collective of CUB is used in a block of another size than it was made for", line_);
  }
  void meet() const { __syncthreads(this->line); }
};

// Memory for values that nobody has made yet, whatever their constructors do.
template <class T, int Count>
struct Unmade {
  alignas(T) unsigned char bytes[sizeof(T) * Count];
  T& operator[](unsigned i) { return reinterpret_cast<T*>(bytes)[i]; }
};

}  // namespace fsr

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0>
class BlockReduce {
  static constexpr int threads = X * Y * Z;
  fsr::BlockThreads<threads> block;

 public:
  struct TempStorage {
    fsr::Unmade<T, fsr::BlockThreads<threads>::warps> found;
  };
  explicit BlockReduce(int line = __builtin_LINE()) : block(line), storage(own()) {}
  explicit BlockReduce(TempStorage& given, int line = __builtin_LINE()) : block(line), storage(given) {}

  // All of these answer thread 0 alone.
  template <class Op>
  T Reduce(T input, Op op, int valid) {
    T found = block.folded(input, op, valid - 32 * (int)block.warp);
    if (block.lane == 0) storage.found[block.warp] = found;
    block.meet();
    if (fsr_thread == 0)
      for (int warp = 1; warp * 32 < valid; ++warp) found = op(found, storage.found[warp]);
    return found;
  }
  template <class Op>
  T Reduce(T input, Op op) { return Reduce(input, op, threads); }
  template <int N, class Op>
  T Reduce(T (&inputs)[N], Op op) {
    T own_part = inputs[0];
    for (int i = 1; i < N; ++i) own_part = op(own_part, inputs[i]);
    return Reduce(own_part, op);
  }
  T Sum(T input) { return Reduce(input, cub::Sum()); }
  T Sum(T input, int valid) { return Reduce(input, cub::Sum(), valid); }
  template <int N>
  T Sum(T (&inputs)[N]) { return Reduce(inputs, cub::Sum()); }

 private:
  static TempStorage& own() {
    __shared__ TempStorage storage_of_its_own;
    return storage_of_its_own;
  }
  TempStorage& storage;
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0>
class BlockScan {
  static constexpr int threads = X * Y * Z;
  fsr::BlockThreads<threads> block;

 public:
  struct TempStorage {
    fsr::Unmade<T, fsr::BlockThreads<threads>::warps> found;
    fsr::Unmade<T, 1> prefix;
  };
  explicit BlockScan(int line = __builtin_LINE()) : block(line), storage(own()) {}
  explicit BlockScan(TempStorage& given, int line = __builtin_LINE()) : block(line), storage(given) {}

  // Of one item a thread. `aggregate`: of all items, without the first value or prefix.
  template <class Op>
  void InclusiveScan(T input, T& output, Op op, T& aggregate) {
    T before;
    bool any = scanned(input, op, before, output, aggregate);
    if (any) output = op(before, output);
  }
  template <class Op>
  void ExclusiveScan(T input, T& output, Op op, T& aggregate) {
    T before, inclusive;
    bool any = scanned(input, op, before, inclusive, aggregate);
    T lower = block.up(inclusive, 1);
    output = block.lane == 0 ? (any ? before : input) : (any ? op(before, lower) : lower);
  }
  template <class Op>
  void ExclusiveScan(T input, T& output, T initial, Op op, T& aggregate) {
    ExclusiveScan(input, output, op, aggregate);
    output = fsr_thread == 0 ? initial : op(initial, output);
  }
  template <class Op, class Callback>
  auto ExclusiveScan(T input, T& output, Op op, Callback& callback) -> decltype((void)T(callback(input))) {
    T aggregate;
    ExclusiveScan(input, output, op, aggregate);
    const T& first = before_all(callback, aggregate);
    output = fsr_thread == 0 ? first : op(first, output);
  }
  template <class Op, class Callback>
  auto InclusiveScan(T input, T& output, Op op, Callback& callback) -> decltype((void)T(callback(input))) {
    T aggregate;
    InclusiveScan(input, output, op, aggregate);
    output = op(before_all(callback, aggregate), output);
  }
  template <class Op>
  void InclusiveScan(T input, T& output, Op op) { T all; InclusiveScan(input, output, op, all); }
  template <class Op>
  void ExclusiveScan(T input, T& output, Op op) { T all; ExclusiveScan(input, output, op, all); }
  template <class Op>
  void ExclusiveScan(T input, T& output, T initial, Op op) { T all; ExclusiveScan(input, output, initial, op, all); }

  // Of several items a thread, which follow one another.
  template <int N, class Op, class... All>
  void InclusiveScan(T (&input)[N], T (&output)[N], Op op, All&... all) {
    T before;
    ExclusiveScan(folded(input, op), before, op, all...);
    const bool any = fsr_thread != 0 || prefixed<All...>;
    T sum = any ? op(before, input[0]) : input[0];
    for (int i = 0; i < N; ++i) {
      T next = i + 1 < N ? op(sum, input[i + 1]) : sum;
      output[i] = sum;
      sum = next;
    }
  }
  template <int N, class Op, class... All>
  void ExclusiveScan(T (&input)[N], T (&output)[N], T initial, Op op, All&... all) {
    T before;
    ExclusiveScan(folded(input, op), before, initial, op, all...);
    spread(input, output, before, op);
  }
  template <int N, class Op, class Callback>
  auto ExclusiveScan(T (&input)[N], T (&output)[N], Op op, Callback& callback) -> decltype((void)T(callback(input[0]))) {
    T before;
    ExclusiveScan(folded(input, op), before, op, callback);
    spread(input, output, before, op);
  }

  template <int N, class... All>
  void InclusiveSum(T (&input)[N], T (&output)[N], All&... all) { InclusiveScan(input, output, cub::Sum(), all...); }
  template <class... All>
  void InclusiveSum(T input, T& output, All&... all) { InclusiveScan(input, output, cub::Sum(), all...); }
  void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T{}, cub::Sum()); }
  void ExclusiveSum(T input, T& output, T& aggregate) { ExclusiveScan(input, output, T{}, cub::Sum(), aggregate); }
  template <class Callback>
  auto ExclusiveSum(T input, T& output, Callback& callback) -> decltype((void)T(callback(input))) {
    ExclusiveScan(input, output, cub::Sum(), callback);
  }
  template <int N>
  void ExclusiveSum(T (&input)[N], T (&output)[N]) { ExclusiveScan(input, output, T{}, cub::Sum()); }
  template <int N>
  void ExclusiveSum(T (&input)[N], T (&output)[N], T& all) { ExclusiveScan(input, output, T{}, cub::Sum(), all); }
  template <int N, class Callback>
  auto ExclusiveSum(T (&input)[N], T (&output)[N], Callback& callback) -> decltype((void)T(callback(input[0]))) {
    ExclusiveScan(input, output, cub::Sum(), callback);
  }

 private:
  template <class... All>
  static constexpr bool prefixed = (sizeof...(All) != 0) && !(std::is_same_v<All, T> && ...);

  static TempStorage& own() {
    __shared__ TempStorage storage_of_its_own;
    return storage_of_its_own;
  }
  template <int N, class Op>
  static T folded(T (&items)[N], Op op) {
    T result = items[0];
    for (int i = 1; i < N; ++i) result = op(result, items[i]);
    return result;
  }
  template <int N, class Op>
  static void spread(T (&input)[N], T (&output)[N], T before, Op op) {
    for (int i = 0; i < N; ++i) {
      T next = op(before, input[i]);
      output[i] = before;
      before = next;
    }
  }
  // The fold within the warp up to this thread, that of the warps before it (returns whether there are any), that of all.
  template <class Op>
  bool scanned(T input, Op op, T& before, T& inclusive, T& aggregate) {
    inclusive = block.running(input, op);
    if (block.lane == 31 || fsr_thread == threads - 1) storage.found[block.warp] = inclusive;
    block.meet();
    aggregate = storage.found[0];
    before = aggregate;
    for (unsigned warp = 1; warp < (unsigned)block.warps; ++warp) {
      if (warp == block.warp) before = aggregate;
      aggregate = op(aggregate, storage.found[warp]);
    }
    return block.warp != 0;
  }
  // What the first warp's callback answers in its first lane; told of all items' fold.
  template <class Callback>
  const T& before_all(Callback& callback, const T& aggregate) {
    if (block.warp == 0) {
      T prefix = callback(aggregate);
      if (block.lane == 0) storage.prefix[0] = prefix;
    }
    block.meet();
    return storage.prefix[0];
  }
  TempStorage& storage;
};

}  // namespace cub
