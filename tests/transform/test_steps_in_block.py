"""steps-in-block: launches in a row are steps of one block that compute the same; where sizes may be too large for one
block the launches stay for those."""

from __future__ import annotations

import pytest

from fsr.contract.model import concrete_launches
from fsr.transform.launch.steps_in_block import MOST, StepsInBlock

ROWS = """
// /// fsr
// entry = "dp::row"
// [sizes]
// h = {min = 1, max = 64, timed = 64}
// w = {min = 1, max = 4096, timed = 700}
// [args]
// cost = {role = "inout", dtype = "int32", shape = ["h", "w"], low = 0, high = 1000}
// [[launch]]
// entry = "dp::row"
// grid = "ceil_div(w, 256)"
// block = 256
// repeat = "h - 1"
// args = ["cost", "w", "step + 1"]
// ///
#define AT(r, c) ((r) * w + (c))
namespace dp {
__device__ int smaller(int a, int b) { return a < b ? a : b; }
__global__ void row(int *cost, int w, int r)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= w) return;
    int best = cost[AT(r - 1, c)];
    if (c > 0) best = smaller(best, cost[AT(r - 1, c - 1)]);
    if (c + 1 < w) best = smaller(best, cost[AT(r - 1, c + 1)]);
    cost[AT(r, c)] += best;
}
}
"""
# Along diagonals: each has another number of blocks.
DIAGONALS = """
// /// fsr
// entry = "wave"
// [sizes]
// n = {min = 1, max = 300, timed = 128}
// [args]
// table = {role = "inout", dtype = "float32", shape = ["n", "n"], low = 0, high = 1}
// [[launch]]
// entry = "wave"
// grid = "ceil_div(min(step + 1, 2 * n - 1 - step), 32)"
// block = 32
// repeat = "2 * n - 1"
// args = ["table", "n", "step", "max(0, step - n + 1)"]
// ///
__global__ void wave(float *table, int n, int diagonal, int first)
{
    const int i = first + blockIdx.x * blockDim.x + threadIdx.x, j = diagonal - i;
    if (i >= n || j < 0 || j >= n) return;
    float up = i ? table[(i - 1) * n + j] : 0.0f, left = j ? table[i * n + j - 1] : 0.0f;
    table[i * n + j] += fmaxf(up, left);
}
"""
# Kernels that pass on what they made, one of them launched twice with buffers the other way round.
CHAIN = """
// /// fsr
// entry = "spread"
// [sizes]
// h = {min = 1, max = 2000, timed = 24}
// w = {min = 1, max = 2000, timed = 40}
// [args]
// x = {role = "in", dtype = "float32", shape = ["h", "w"], low = -1, high = 1}
// y = {role = "out", dtype = "float32", shape = ["h", "w"]}
// [scratch.t]
// dtype = "float32"
// count = "h * w"
// [scratch.sums]
// dtype = "float32"
// count = "h"
// [[launch]]
// entry = "spread"
// grid = ["ceil_div(w, 16)", "ceil_div(h, 4)"]
// block = [16, 4]
// args = ["x", "t", "h", "w", 0.5]
// [[launch]]
// entry = "spread"
// grid = ["ceil_div(w, 16)", "ceil_div(h, 4)"]
// block = [16, 4]
// args = ["t", "y", "h", "w", 0.25]
// [[launch]]
// entry = "total"
// grid = "ceil_div(h, 64)"
// block = 64
// args = ["y", "sums", "h", "w"]
// [[launch]]
// entry = "scale"
// grid = "ceil_div(h * w, 128)"
// block = 128
// args = ["y", "sums", "h", "w"]
// ///
__global__ void spread(const float *__restrict__ from, float *__restrict__ to, int h, int w, float share)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < h && c < w) {
        float beside = from[r * w + (c + 1) % w] + from[(r + 1) % h * w + c];
        to[r * w + c] = from[r * w + c] + share * beside;
    }
}
__global__ void total(const float *y, float *sums, int h, int w)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float sum = 1.0f;
    for (int c = 0; c < w; ++c) sum += fabsf(y[r * w + c]);
    sums[r] = sum;
}
__global__ void scale(float *y, const float *sums, int h, int w)
{
    unsigned step = gridDim.x * blockDim.x;
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < (unsigned)(h * w); at += step) y[at] /= sums[at / w];
}
"""


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (ROWS, [{"h": h, "w": w} for h, w in ((1, 5), (2, 1), (9, 300), (5, 1025))]),
        (DIAGONALS, [{"n": n} for n in (1, 2, 33, 70)]),
        (CHAIN, [{"h": h, "w": w} for h, w in ((1, 1), (3, 70), (65, 17), (130, 90))]),
    ],
    ids=["rows", "diagonals", "chain"],
)
def test_the_steps_compute_what_the_launches_did(text: str, sizes: list[dict[str, int]], subject_from, runner) -> None:
    subject, action = subject_from(text), StepsInBlock()
    moves = list(action.moves(subject))
    assert {int(m.param("threads")) for m in moves} >= {512, 1024}
    for move in moves[:2]:
        runner.check(subject, action.apply(subject, move), *sizes)


def test_one_launch_is_left_where_one_block_will_do(subject_from) -> None:
    subject, action = subject_from(ROWS), StepsInBlock()
    made = action.apply(subject, next(iter(action.moves(subject))))
    assert [one.entry for one in made.plan.launches] == ["dp::row_steps"]
    assert "__global__ void row(" not in made.source
    assert "row_thread(cost, w, r, at / 256u, at % 256u, 256u);" in made.source


def test_sizes_that_are_too_large_keep_their_launches(subject_from) -> None:
    subject, action = subject_from(CHAIN), StepsInBlock()
    made = action.apply(subject, next(iter(action.moves(subject))))
    for side, entries in ((80, ["spread_steps"]), (200, ["spread", "spread", "total", "scale"])):
        assert (side * side <= MOST) == (len(entries) == 1)
        found = concrete_launches(made.plan, subject.contract, {"h": side, "w": side}, {})
        assert [one.entry for one in found] == entries
    assert made.source.count("__global__") == 4


def test_the_more_work_the_less_is_promised(subject_from) -> None:
    def best(text: str) -> float:
        return max(m.gain for m in StepsInBlock().moves(subject_from(text)))

    assert best(ROWS) > best(ROWS.replace("timed = 700", "timed = 4000")) > 1.0


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (ROWS, "int best = ", "__syncthreads(); int best = "),
        (ROWS, "int best = ", "__shared__ int kept[256]; kept[threadIdx.x] = c; int best = "),
        (ROWS, "= cost[AT(r - 1, c)]", "= __ldg(&cost[AT(r - 1, c)])"),  # a cache that steps do not update
        (ROWS, "int best = ", "best = __shfl_sync(~0u, c, 0); int best = "),
        (ROWS, 'repeat = "h - 1"', 'repeat = "1 * 1"'),
        (ROWS, "max = 4096, timed = 700", "max = 100000, timed = 100000"),
        (ROWS, "block = 256", 'block = "min(256, w)"'),
    ],
)
def test_nothing_is_offered_where_it_could_not_be(text: str, old: str, new: str, subject_from) -> None:
    assert old in text
    assert not list(StepsInBlock().moves(subject_from(text.replace(old, new))))
