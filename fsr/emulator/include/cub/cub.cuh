// Stand-in for <cub/cub.cuh>: reductions and scans of warps and blocks; the other collectives are refused by name.
#pragma once
#include "../fsr/cub_block.h"

namespace cub {
#define FSR_CUB_REFUSE(name)                                                                                    \
  template <class T, auto...>                                                                                   \
  struct name {                                                                                                 \
    static_assert(fsr::executed<T>, "fsr host device: CUB's collective cub::" #name " is not executed on the CPU"); \
  };
FSR_CUB_REFUSE(BlockAdjacentDifference)
FSR_CUB_REFUSE(BlockDiscontinuity)
FSR_CUB_REFUSE(BlockExchange)
FSR_CUB_REFUSE(BlockHistogram)
FSR_CUB_REFUSE(BlockLoad)
FSR_CUB_REFUSE(BlockMergeSort)
FSR_CUB_REFUSE(BlockShuffle)
FSR_CUB_REFUSE(BlockStore)
FSR_CUB_REFUSE(WarpLoad)
FSR_CUB_REFUSE(WarpMergeSort)
FSR_CUB_REFUSE(WarpStore)
#undef FSR_CUB_REFUSE
template <class Key, int Threads, int Items, class Value = NullType, auto...>
struct BlockRadixSort {
  static_assert(fsr::executed<Key>, "fsr host device: CUB's collective cub::BlockRadixSort is not executed on the CPU");
};
}  // namespace cub
