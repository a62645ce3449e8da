"""What NVRTC is given as <cub/cub.cuh>: of CUB what kernels call. Its own file brings what host code launches as well,
which NVRTC refuses."""

from __future__ import annotations

_BLOCK = (
    "adjacent_difference", "discontinuity", "exchange", "histogram", "load", "radix_sort", "reduce", "scan", "shuffle",
    "store",
)  # fmt: skip
_OTHER = ("warp/warp_reduce", "warp/warp_scan", "thread/thread_operators", "util_type", "version")

# Operators that CUB had until 3.0, under the names of what took their place.
_BEFORE_3 = """#if CUB_VERSION >= 300000
#include <cuda/functional>
#include <cuda/std/functional>
namespace cub {
using Equality = ::cuda::std::equal_to<>; using Inequality = ::cuda::std::not_equal_to<>;
using Sum = ::cuda::std::plus<>; using Difference = ::cuda::std::minus<>; using Division = ::cuda::std::divides<>;
using Max = ::cuda::maximum<>; using Min = ::cuda::minimum<>;
}
#endif
"""

CUB_HEADERS = {
    "cub/cub.cuh": "#pragma once\n"
    + "".join(f"#include <cub/{name}.cuh>\n" for name in (*(f"block/block_{name}" for name in _BLOCK), *_OTHER))
    + _BEFORE_3
}
