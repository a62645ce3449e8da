"""tile-size: the constant that blocks and tiles are made of, grids and blocks behind it; none that cannot follow."""

from __future__ import annotations

import pytest

from fsr.transform.launch.tile_size import TileSize
from fsr.transform.registry import all_actions

PRODUCT = """
// /// fsr
// entry = "product"
// [sizes]
// n = {min = 1, max = 256, timed = 128}
// m = {min = 1, max = 256, timed = 192}
// [args]
// c = {role = "out", shape = ["n", "m"]}
// a = {role = "in", shape = ["n", "n"]}
// b = {role = "in", shape = ["n", "m"]}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = ["ceil_div(m, 16)", "(n + 15) // 16"]
// block = [16, 16]
// ///
#define TILE 16  // a side
#define PAD TILE
#define WIDE 64

__global__ void product(float *c, const float *a, const float *b, int n, int m)
{
    __shared__ float left[TILE][PAD + 1], right[TILE][TILE];
    int i = blockIdx.y * TILE + threadIdx.y, j = TILE * blockIdx.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < (n + TILE - 1) / TILE; k++) {
        int at = k * TILE + threadIdx.x, down = k * TILE + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = i < n && at < n ? a[i * n + at] : 0.0f;
        right[threadIdx.y][threadIdx.x] = down < n && j < m ? b[down * m + j] : 0.0f;
        __syncthreads();
        for (int t = 0; t < TILE; t++) sum += left[threadIdx.y][t] * right[t][threadIdx.x];
        __syncthreads();
    }
    if (i < n && j < m) c[i * m + j] = sum;
}
"""
RANKS = """
// /// fsr
// entry = "rank"
// [sizes]
// n = 600
// [args]
// x = {role = "in", shape = ["n"], unique = true}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "n // 5"
// block = 5
// ///
const int COUNT = 600;
static const int EACH = 5;
__global__ void rank(const int *x, int *y)
{
    __shared__ int some[EACH];
    int own = x[blockIdx.x * EACH + threadIdx.x], less = 0;
    for (int i = threadIdx.x; i < COUNT; i += EACH) {
        some[threadIdx.x] = x[i];
        __syncthreads();
        for (int j = 0; j < EACH; j++) less += own > some[j];
        __syncthreads();
    }
    y[less] = own;
}
"""
SIZES = [{"n": n, "m": m} for n, m in [(1, 1), (15, 17), (33, 8), (64, 40)]]


def values(subject) -> list[int | str]:
    return [m.params[0][1] for m in TileSize().moves(subject)]


@pytest.mark.parametrize("side", [8, 32])
def test_a_tile_of_two_sides(side, subject_from, apply_move, runner):
    subject = subject_from(PRODUCT)
    assert set(values(subject)) == {8, 32}
    changed = apply_move(TileSize(), subject, f"[TILE={side}]")
    (launch,) = changed.plan.launches
    assert launch.block == (str(side), str(side), "1")
    assert launch.grid == (f"ceil_div(m, {side})", f"(n + {side - 1}) // {side}", "1")
    assert f"#define TILE {side}  // a side" in changed.source
    runner.check(subject, changed, *SIZES)


def test_blocks_of_a_few_threads_become_whole_warps(subject_from, apply_move, runner):
    subject = subject_from(RANKS)
    moves = list(TileSize().moves(subject))
    found = values(subject)
    assert found
    assert all(isinstance(v, int) and v >= 32 and v % 5 == 0 and 600 % v == 0 for v in found)
    assert moves[0].gain > 2
    changed = apply_move(TileSize(), subject, f"[EACH={found[0]}]")
    assert changed.plan.launches[0].grid[0] == f"n // {found[0]}"
    runner.check(subject, changed, {"n": 600})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(n + TILE - 1) / TILE", "(n + TILE - 1) / 16"),  # the number itself, too
        ("#define WIDE 64", "#define WIDE 16\n#define USES(x) ((x) + WIDE - WIDE)"),
        ("block = [16, 16]", "block = [4, 64]"),  # no extent of a block
        ("block = [16, 16]", 'block = [16, 16]\n// shared_bytes = "64 * n"'),
        ("TILE * blockIdx.x", "blockDim.x * blockIdx.x"),
    ],
)
def test_what_cannot_follow_is_not_offered(old, new, subject_from):
    assert old in PRODUCT
    text = PRODUCT.replace(old, new).replace("sum += left", "sum += USES(0) + left" if "USES" in new else "sum += left")
    text = text.replace("blockIdx.y * TILE", "blockIdx.y * blockDim.y") if "blockDim" in new else text
    assert values(subject_from(text)) == []


def test_no_more_threads_than_a_kernel_is_compiled_for(subject_from):
    bound = PRODUCT.replace("void product", "void __launch_bounds__(256) product")
    found = [m.params for m in TileSize().moves(subject_from(bound))]
    assert (("TILE", 8),) in found
    assert (("TILE", 32),) not in found
    assert (("TILE", 32),) in [m.params for m in TileSize().moves(subject_from(PRODUCT))]


def test_sizes_that_were_whole_tiles_stay_so(subject_from):
    """No guard is to be expected where every size is a multiple."""
    text = RANKS.replace("n = 600", "n = 300").replace("COUNT = 600", "COUNT = 300")
    assert all(300 % v == 0 for v in values(subject_from(text)))
    one = RANKS.replace('"n // 5"', "1").replace("block = 5", "block = 600").replace("EACH = 5", "EACH = 600")
    assert values(subject_from(one)) == []


def test_it_is_registered():
    assert any(a.name == "tile-size" for a in all_actions())
