"""fewer-blocks where blocks leave partial results to a later launch: fewer places, and that launch is told so."""

from __future__ import annotations

import pytest

from fsr.transform.fewer.action import FewerBlocks

SIZES = [{"n": n} for n in (1, 63, 64, 65, 1000, 5000)]
SUMS = """
// /// fsr
// [sizes]
// n = {min = 1, max = 4194304, timed = 4194304}
// [args]
// x = {role = "in", dtype = "int32", shape = ["n"], low = -1000, high = 1000}
// total = {role = "out", dtype = "int32", shape = [1]}
// n = {value = "n"}
// places = {dtype = "int32", value = "ceil_div(n, 64)"}
//
// [[launch]]
// entry = "parts"
// grid = "ceil_div(n, 64)"
// block = 64
// args = ["x", "part", "n"]
//
// [[launch]]
// entry = "all"
// grid = 1
// block = 64
// args = ["part", "total", "places"]
//
// [scratch.part]
// dtype = "int32"
// count = "ceil_div(n, 64)"
// ///
__global__ void parts(const int *x, int *part, int n)
{
    __shared__ int held[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    const unsigned mine = blockIdx.x;
    held[t] = i < n ? x[i] * x[i] : 0;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) {
        if (t < s) held[t] += held[t + s];
        __syncthreads();
    }
    if (t == 0) part[mine] = held[0];
}
__global__ void all(const int *part, int *total, int places)
{
    __shared__ int held[64];
    const int t = threadIdx.x;
    int own = 0;
    for (int i = t; i < places; i += 64) own += part[i];
    held[t] = own;
    __syncthreads();
    if (t == 0) {
        int sum = 0;
        for (int i = 0; i < 64; ++i) sum += held[i];
        total[0] = sum;
    }
}
"""
MOST = (
    SUMS.replace("held[t] += held[t + s]", "held[t] = max(held[t], held[t + s])")
    .replace("x[i] * x[i] : 0", "x[i] : -2000000000")
    .replace("own += part[i]", "own = max(own, part[i])")
    .replace("int own = 0", "int own = -2000000000")
    .replace("int sum = 0", "int sum = -2000000000")
    .replace("sum += held[i]", "sum = max(sum, held[i])")
)


@pytest.mark.parametrize("text", [SUMS, MOST], ids=["sums", "most"])
def test_later_launches_are_told_how_many_places_there_are(text: str, subject_from, runner) -> None:
    subject, action = subject_from(text), FewerBlocks()
    moves = list(action.moves(subject))
    assert moves
    assert all("kernel:parts" in m.name for m in moves)
    for move in moves:
        changed = action.apply(subject, move)
        first, last = changed.plan.launches
        assert last.args[2].value == first.grid[0]
        runner.check(subject, changed, *SIZES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"total", "places"]', '"total", "n"]'),
        ('count = "ceil_div(n, 64)"', 'count = "n"'),
        ('count = "ceil_div(n, 64)"', 'count = "ceil_div(n, 64)"\n// zeroed = true'),
        ("part[mine] = held[0]", "part[mine] = held[0] + blockIdx.x"),
        ("part[mine] = held[0]", "part[gridDim.x - 1 - mine] = held[0]"),
        ("part[mine] = held[0]", "part[mine] = held[0] * held[1]"),
        ("part[mine] = held[0]", "part[mine] += held[0]"),
    ],
    ids=["not told", "more room", "zeroed", "knows its block", "another's place", "no fold", "adds"],
)
def test_blocks_stay_where_their_places_may_matter(old: str, new: str, subject_from) -> None:
    assert old in SUMS
    assert not list(FewerBlocks().moves(subject_from(SUMS.replace(old, new))))
