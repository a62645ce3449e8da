"""tile-size of blocks that go through something of their own in strides: a row a block, however many threads."""

from __future__ import annotations

import pytest

from fsr.transform.launch.block_size import BlockSize
from fsr.transform.launch.tile_size import TileSize

SIZES = [{"n": 1, "m": 1}, {"n": 3, "m": 70}, {"n": 5, "m": 700}]
MOST = """
// /// fsr
// entry = "most"
// [sizes]
// n = {min = 1, max = 4096, timed = 1000}
// m = {min = 1, max = 4096, timed = 1000}
// [args]
// x = {role = "in", dtype = "int32", shape = ["n", "m"], low = -1000000, high = 1000000}
// y = {role = "out", dtype = "int32", shape = ["n"]}
// z = {role = "inout", dtype = "int32", shape = ["n", "m"], low = -9, high = 9}
// m = {value = "m"}
// [launch]
// grid = "n"
// block = 512
// ///
#define THREADS 512

__global__ void most(const int *x, int *y, int *z, int m)
{
    __shared__ int held[THREADS];
    const int row = blockIdx.x;
    const long long thread = threadIdx.x;
    int own = -2000000;
    for (long long j = thread; j < m; j += THREADS) own = max(own, x[row * m + j]);
    held[thread] = own;
    for (int u = 0; (1 << u) < THREADS; u++) {
        __syncthreads();
        if (thread < (THREADS >> (u + 1))) {
            int a = (thread * 2) << u, b = (thread * 2 + 1) << u;
            held[a] = max(held[a], held[b]);
        }
    }
    __syncthreads();
    for (int j = threadIdx.x; j < m; j += blockDim.x) z[row * m + j] += held[0];
    if (thread == 0) y[row] = held[0];
}
"""


def test_any_number_of_threads_goes_through_a_row(subject_from, runner) -> None:
    subject, action = subject_from(MOST), TileSize()
    moves = list(action.moves(subject))
    assert {int(m.param("THREADS")) for m in moves} == {1024, 256, 128, 64}
    for move in moves:
        changed = action.apply(subject, move)
        assert changed.plan.launches[0].grid == ("n", "1", "1")
        runner.check(subject, changed, *SIZES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (thread == 0) y", "if (thread < m) z[row * m + thread] = 1; if (thread == 0) y"),
        ("held[thread] = own;", "held[thread] = own; if (thread < 400) held[thread] += 1;"),
        ("j += THREADS", "j += 512"),
        ("own = max(own, x[row * m + j]);", "if (x[row * m + j] > own) { own = x[row * m + j]; at = j; }"),
        ("for (long long j = thread;", "for (long long j = 0;"),
        ('grid = "n"', 'grid = "ceil_div(n * m, 512)"'),
        ("block = 512", "block = [256, 2]"),
        ("// [launch]", "// [tolerance]\n// exact = true\n// [launch]"),
    ],
    ids=["a thread an element", "asks many", "the number", "places", "no stride", "other blocks", "two axes", "exact"],
)
def test_a_block_keeps_its_threads_where_something_hangs_on_them(old: str, new: str, subject_from) -> None:
    assert old in MOST
    text = MOST.replace(old, new)
    text = text.replace("int own =", "int at = 0, own =").replace("held[thread] = own;", "held[thread] = own + at % 2;")
    if "j = 0" in new:
        text = text.replace("j = threadIdx.x", "j = 0")
    assert not list(TileSize().moves(subject_from(text)))


ROWS = (
    MOST[: MOST.index("#define")].replace("block = 512", "block = 128").replace('"most"', '"rows"')
    + """
__device__ int most_of_block(int v)
{
    __shared__ int held[32];
    for (int d = 16; d > 0; d /= 2) v = max(v, __shfl_xor_sync(~0u, v, d));
    if (threadIdx.x % 32 == 0) held[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? held[threadIdx.x] : -2000000;
    for (int d = 16; d > 0; d /= 2) v = max(v, __shfl_xor_sync(~0u, v, d));
    return v;
}
__global__ void rows(const int *x, int *y, int *z, int m)
{
    const int row = blockIdx.x, stride = blockDim.x;
    const int *own = x + row * m;
    int v = -2000000;
    for (int j = threadIdx.x; j < m; j += stride) v = max(v, own[j]);
    v = most_of_block(v);
    if (threadIdx.x == 0) y[row] = v;
    for (int j = threadIdx.x; j < m; j += stride) z[row * m + j] -= own[j];
}
"""
)


def test_blocks_that_ask_how_many_they_are_get_other_sizes(subject_from, runner) -> None:
    subject, action = subject_from(ROWS), BlockSize()
    moves = list(action.moves(subject))
    assert {int(m.param("threads")) for m in moves} == {64, 256, 512, 1024}
    for move in moves:
        runner.check(subject, action.apply(subject, move), *SIZES)


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("int v = -2000000;", "__shared__ int room[256]; room[threadIdx.x] = 0; int v = -2000000;", {64, 256}),
        ("own[j];", "own[j] + own[threadIdx.x] * 0;", set()),
        ("own = x + row * m", "own = x + row * m + threadIdx.x * 0 + threadIdx.x / blockDim.x", set()),
        ("stride = blockDim.x", "stride = 128", set()),
        ("v = most_of_block(v);", "v = most_of_block(v); atomicMax(y + threadIdx.x / 128, v);", set()),
        ('grid = "n"', 'grid = "ceil_div(n * 128, 128)"', set()),
        ("block = 128", "block = 32", set()),
    ],
    ids=["room", "a thread an element", "a pointer of its own", "the number", "by thread", "other blocks", "one warp"],
)
def test_and_none_where_threads_are_counted_on(old: str, new: str, left: set[int], subject_from) -> None:
    assert old in ROWS
    assert {int(m.param("threads")) for m in BlockSize().moves(subject_from(ROWS.replace(old, new)))} == left
