"""tile-size of blocks that go through something of their own in strides: a row a block, however many threads."""

from __future__ import annotations

import pytest

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
        ("for (long long j = thread;", "for (long long j = 0;"),
        ('grid = "n"', 'grid = "ceil_div(n * m, 512)"'),
        ("block = 512", "block = [256, 2]"),
        ("// [launch]", "// [tolerance]\n// exact = true\n// [launch]"),
    ],
    ids=["a thread an element", "asks many", "the number", "no stride", "other blocks", "two axes", "exact"],
)
def test_a_block_keeps_its_threads_where_something_hangs_on_them(old: str, new: str, subject_from) -> None:
    assert old in MOST
    text = MOST.replace(old, new)
    if "j = 0" in new:
        text = text.replace("j = threadIdx.x", "j = 0")
    assert not list(TileSize().moves(subject_from(text)))
