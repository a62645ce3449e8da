"""Blocks of one warp become warps of larger blocks: composed kernels give the same, bit for bit, whatever their lanes
do as a warp; no move where more than the warp is meant."""

from __future__ import annotations

import random

import pytest

from fsr.transform.launch.merge_blocks import MergeBlocks
from fsr.transform.launch.merge_sharing import MergeSharingBlocks
from fsr.transform.launch.one_warp import block_aware

HEAD = """#include <cstdint>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
#define FULL 0xffffffffu
#define WARP 32
template <typename T> static __device__ T summed(T v)
{
    for (int far = warpSize / 2; far > 0; far >>= 1) v += __shfl_down_sync(FULL, v, far);
    return __shfl_sync(FULL, v, 0);
}
template <int N> __device__ int largest(int v)
{
    for (int far = N / 2; far > 0; far /= 2) v = max(v, __shfl_xor_sync(FULL, v, far, N));
    return v;
}
template <typename G> __device__ int of_group(const G &group, int v)
{
    return cg::reduce(group, v, cg::plus<int>()) * 2 - group.thread_rank();
}
__device__ int lane_number() { unsigned n; asm("mov.u32 %0, %%laneid;" : "=r"(n)); return n; }
"""


def kernel(body: str, *, grid: str = '"h"', block: str = "32", head: str = HEAD, shared: str = "0") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// h = {{min = 1, max = 65535, timed = 4096}}
// w = {{min = 1, max = 300, timed = 128}}
// [args]
// y = {{role = "inout", dtype = "int32", shape = ["h", "w"], low = -99, high = 99}}
// x = {{role = "in", dtype = "int32", shape = ["h", "w"], low = -99, high = 99}}
// count = {{role = "inout", dtype = "int32", shape = [4], low = 0, high = 9}}
// h = {{value = "h"}}
// w = {{value = "w"}}
// [launch]
// grid = {grid}
// block = {block}
// shared_bytes = {shared}
// ///
{head}
__global__ void k(int *y, const int *x, int *count, int h, int w)
{{
{body}
}}
"""


START = """
    const int row = blockIdx.{axis}, lane = {lane};
    {leave}
    int v = 0;
    for (int c = lane; c < w; c += {wide}) v += x[(long long)row * w + c];
"""
STEPS = [
    "v = summed(v) + lane;",
    "v += largest<32>(v) - largest<8>(v);",
    "v += __popc(__ballot_sync(FULL, v > 3));",
    "if (__any_sync(FULL, v > 90)) v -= 5; else v += __all_sync(FULL, v < 50);",
    "if (v > 0) { const unsigned mask = __activemask(); v += __popc(mask); }",
    "v += __shfl_up_sync(FULL, v, 1); __syncwarp();",
    "v += __reduce_max_sync(FULL, v);",
    "{ auto tile = cg::tiled_partition<32>(cg::this_thread_block()); v = of_group(tile, v) + tile.meta_group_rank(); }",
    "{ cg::thread_block all = cg::this_thread_block(); cg::thread_block_tile<WARP> t = cg::tiled_partition<WARP>(all);"
    " v += t.shfl_xor(v, 3) + all.thread_rank() * t.meta_group_size(); all.sync(); }",
    "{ auto eight = cg::tiled_partition<8>(cg::this_thread_block()); v += cg::reduce(eight, v, cg::greater<int>()); }",
    "if (v < 7) { cg::coalesced_group some = cg::coalesced_threads(); v += some.size(); }",
    "v += lane_number() + int(int64_t(v) % 7);",
    "if (lane == 0) atomicAdd(count + row % 4, v);",
    "if (lane < w) y[(long long)row * w + lane] = v; __syncthreads(); if (lane < w) v += y[(long long)row * w + w - 1];"
    " __syncthreads();",
]
SHARED = [
    "part[lane] = v; __syncthreads(); v += part[31 - lane]; __syncthreads();",
    "if (v > 5) part[lane] = 1; else part[lane] = 2; __syncwarp(); v += part[lane ^ 1]; __syncwarp();",
    "for (int s = 16; s > 0; s >>= 1) { part[lane] = v; __syncthreads(); if (lane < s) v += part[lane + s];"
    " __syncthreads(); if (x[row * w] > 60) break; }",
]
END = "for (int c = lane; c < w; c += {wide}) y[(long long)row * w + c] += v + gridDim.{axis};"
SIZES = [{"h": h, "w": w} for h, w in [(1, 1), (3, 40), (8, 32), (21, 5), (65, 33)]]


def composed(seed: int, shared: str = "") -> str:
    draw = random.Random(seed)
    axis, block, lane = draw.choice(
        [
            ("x", "32", "threadIdx.x"),
            ("y", "32", "(int)threadIdx.x % WARP"),
            ("x", "[8, 4]", "threadIdx.y * blockDim.x + threadIdx.x"),
        ]
    )
    steps = [s for s in STEPS if block == "32" or "thread_rank() *" not in s]
    steps = draw.sample(steps, 3) + (draw.sample(SHARED, 2) if shared else [])
    draw.shuffle(steps)
    names = {
        "axis": axis,
        "lane": lane,
        "wide": draw.choice(["WARP", "blockDim.x * blockDim.y"]),
        "leave": draw.choice(["", "if (x[(long long)row * w] < -20) return;"]),
    }
    body = "\n    ".join([shared, START.format(**names), *steps, END.format(**names)])
    grid = '"h"' if axis == "x" else '[1, "h"]'
    return kernel(body, grid=grid, block=block, shared='"128"' if "extern" in shared else "0")


@pytest.mark.parametrize("seed", range(8))
def test_warps_of_larger_blocks_do_as_blocks_of_one_did(seed: int, subject_from, runner) -> None:
    subject, action = subject_from(composed(seed)), MergeBlocks()
    moves = list(action.moves(subject))
    assert [m.param("threads") for m in moves] == [256, 128, 64]
    for move in moves[seed % 3 :: 3]:
        changed = action.apply(subject, move)
        runner.check(subject, changed, *SIZES)
        assert not [fault for sizes in SIZES[1:3] for fault in runner.faults(changed, subject.contract, sizes)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shared", ["__shared__ int part[32];", "extern __shared__ int part[];"])
def test_each_warp_has_the_shared_memory_of_its_block(seed: int, shared: str, subject_from, runner) -> None:
    subject, action = subject_from(composed(100 + seed, shared)), MergeSharingBlocks()
    moves = list(action.moves(subject))
    assert {m.param("order") for m in moves} == {"outer"}
    for move in moves[seed % len(moves) :: len(moves)]:
        runner.check(subject, action.apply(subject, move), *SIZES)
    assert not list(MergeBlocks().moves(subject))


PLAIN = START.format(axis="x", lane="threadIdx.x", leave="", wide="32") + STEPS[0] + END.format(axis="x", wide="32")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v = summed(v)", "v += __syncthreads_or(v > 3)"),
        ("v = summed(v)", "v = summed(v) + placed()"),
        ("v = summed(v)", "v += elsewhere(v)"),
        ("v = summed(v)", "v += waits(v)"),
        ("v = summed(v)", "v += register_of_block()"),
        ("v = summed(v)", "v += cg::this_thread_block().thread_rank()"),
        ("v = summed(v)", "cg::this_grid().sync(); v = summed(v)"),
        ("v = summed(v)", "auto b = cg::this_thread_block(); v = of_group(b, v)"),
        ("v = summed(v)", "auto b = cg::this_thread_block(); auto also = b; v += also.thread_rank()"),
        ("v = summed(v)", "auto t = cg::tiled_partition<8>(cg::this_thread_block()); v += t.meta_group_rank()"),
        ("v = summed(v)", 'asm volatile("bar.sync 0;"); v = summed(v)'),
        ("v = summed(v)", "dim3 all = blockDim; v += all.x"),
        ("v = summed(v)", "static int calls; v += calls"),
        ("block = 32", "block = 16"),
        ("block = 32", "block = 64"),
        ("block = 32", 'block = "min(w, 32)"'),
    ],
)
def test_no_move_where_more_than_the_warp_is_meant(old: str, new: str, subject_from) -> None:
    others = """
__device__ int placed() { return threadIdx.x / 32; }
__device__ int waits(int v) { __syncthreads(); return v; }
__device__ int register_of_block() { unsigned n; asm("mov.u32 %0, %%ctaid.x;" : "=r"(n)); return n; }
"""
    text = kernel(PLAIN, head=HEAD + others)
    assert old in text
    assert list(MergeBlocks().moves(subject_from(text)))
    assert not list(MergeBlocks().moves(subject_from(text.replace(old, new, 1))))


def test_words_of_ptx_matter_in_ptx_alone() -> None:
    text = """
__device__ int one(int cluster, int bar) { return cluster + bar; }
__device__ int two() { int n; asm("mov.u32 %0, %%laneid;" : "=r"(n)); return n; }
__device__ void three() { asm volatile("barrier.sync 0;"); }
__device__ int four() { int n; asm("mov.u32 %0, %%warpid;" : "=r"(n)); return n; }
__device__ int five() { return four(); }
"""
    assert block_aware(text) == {"three", "four", "five"}
