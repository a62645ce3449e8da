"""Functions shown to combine a block's values: every style people write, and none that only looks like it."""

from __future__ import annotations

import pytest

from fsr.analysis.collective import combined_value
from fsr.source.parse import parse_device_functions
from fsr.transform.collectives import helper_text


def block_reduction(*args):
    """The operator by which a function combines a block's values for every thread."""
    found = combined_value(*args)
    return found.operator if found is not None and found.everywhere else None


WARP = """
__device__ float down(float v) { for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(~0u, v, o); return v; }
__device__ float both(float v) { for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o); return v; }
"""
TWO = """
__device__ float f(float v)
{
    __shared__ float s[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = down(v);
    if (lane == 0) s[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? s[lane] : 0.0f;
    if (warp == 0) { v = down(v); if (lane == 0) s[0] = v; }
    __syncthreads();
    return s[0];
}
"""
TREE = """
__device__ float f(float v)
{
    __shared__ float s[256];
    int tid = threadIdx.x;
    s[tid] = v;
    __syncthreads();
    for (int i = 128; i >= 1; i /= 2) {
        if (tid < i) s[tid] = fmaxf(s[tid], s[tid + i]);
        __syncthreads();
    }
    return s[0];
}
"""
LINE = """
__device__ float f(float v)
{
    __shared__ float s[8];
    v = both(v);
    if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = v;
    __syncthreads();
    float t = 0;
    for (int i = 0; i < 8; i++) t += s[i];
    return t;
}
"""


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        (TWO, "+"), (TREE, "max"), (LINE, "+"),
        (TREE.replace("i = 128", "i = 64"), None),  # half of the block is left out
        (TREE.replace("s[tid + i])", "s[tid + 1])"), None),
        (TWO.replace("if (lane == 0) s[0] = v;", ""), None),  # only warp 0 goes in
        (TWO.replace("return s[0];", "return v;"), None),  # only thread 0 knows
        (LINE.replace("t += s[i]", "t += s[0]"), None),  # counted eight times
        (LINE.replace("float t = 0", "float t = 1"), None),
        (LINE.replace("i < 8", "i < 4"), None),
        (LINE.replace("i < 8", "i <= threadIdx.x / 32"), None),  # a prefix sum
        (LINE.replace("return t;", "return t * 2;"), None),
        (LINE.replace("float t", 'asm("nop;"); float t'), None),
        (LINE.replace("float t", "static int q; float t"), None),
        ("__device__ float f(float v) { return both(v); }", None),  # one warp only
        ("__device__ float f(float v) { while (true) {} return v; }", None),
        ("__device__ float f(float v) { return f(v); }", None),
        ("__device__ float f(float v, int n) { return v; }", None),
    ],
)  # fmt: skip
def test_block_reductions(text, operator):
    functions = parse_device_functions(WARP + text)
    assert block_reduction(functions["f"], 256, functions, {}) == operator


def test_our_own_helpers_are_among_them():
    functions = parse_device_functions(helper_text("fsr_warp_max") + helper_text("fsr_block_max"))
    assert block_reduction(functions["fsr_block_max"], 128, functions, {"THREADS": 128}) == "max"
    assert block_reduction(functions["fsr_block_max"], 100000, functions, {"THREADS": 128}) is None


FLOOR = """
template <typename T> __device__ T f(T v)
{
    static __shared__ T s[32];
    for (int o = 16; o > 0; o >>= 1) v = max(v, __shfl_xor_sync(~0u, v, o, 32));
    if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = v;
    __syncthreads();
    v = (threadIdx.x & 31) < blockDim.x / 32.f ? s[threadIdx.x & 31] : FLOOR;
    for (int o = 16; o > 0; o >>= 1) v = max(v, __shfl_xor_sync(~0u, v, o, 32));
    return v;
}
"""


@pytest.mark.parametrize(
    ("floor", "limit"),
    [("-1e20f", -1e20), ("T(-1e20f)", -1e20), ("(T)0", 0), ("-INFINITY", None), ("fmaxf(-3.0f, -2.0f)", -2.0)],
)
def test_a_number_among_the_values_is_told(floor, limit):
    functions = parse_device_functions(FLOOR.replace("FLOOR", floor))
    found = combined_value(functions["f"], 128, functions, {})
    assert found is not None
    assert (found.operator, found.everywhere, found.limit) == ("max", True, limit)


def test_a_number_among_values_that_are_added_is_none():
    text = FLOOR.replace("FLOOR", "1.0f").replace("max(v, ", "(v + ")
    functions = parse_device_functions(text)
    assert combined_value(functions["f"], 128, functions, {}) is None
