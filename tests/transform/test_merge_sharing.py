"""merge-sharing-blocks: several blocks that share memory and wait in one, every thread with the ids and the part of the
shared memory that it had; no move where blocks may come to different barriers."""

from __future__ import annotations

import pytest

from fsr.transform.launch.merge_sharing import MergeSharingBlocks

SIZES = [{"w": w, "h": h} for w, h in [(1, 1), (3, 2), (65, 16), (130, 9), (257, 1)]]


def kernel(
    body: str,
    *,
    block: str = "16",
    grid: str = '"w"',
    shared: str = "0",
    before: str = "",
    params: str = "int w, int h",
) -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// w = {{min = 1, max = 4096, timed = 1280}}
// h = {{min = 1, max = 16, timed = 16}}
// [args]
// y = {{role = "inout", dtype = "float32", shape = [16, "w"], low = -9, high = 9}}
// x = {{role = "in", dtype = "float32", shape = ["w", 16], low = -9, high = 9}}
// n = {{role = "in", dtype = "int32", shape = ["w"], low = 0, high = "h"}}
// w = {{value = "w"}}
// h = {{value = "h"}}
// [launch]
// grid = {grid}
// block = {block}
// shared_bytes = "{shared}"
// ///
{before}
__global__ void k(float *y, const float *x, const int *n, {params})
{{
{body}
}}
"""


PLACES = """
    extern __shared__ float held[];
    const int b = blockIdx.x, t = threadIdx.x, many = min(n[b], h);
    float own = 0;
    if (t < many) { own = y[t * w + b]; held[t] = own; }
    __syncthreads();
    int before = 0;
    for (int j = 0; j < many; ++j) before += own > held[j] || (own == held[j] && t > j);
    if (t < many) y[before * w + b] = own;
"""
LEAVES = """
    const auto b = blockIdx.x;
    if (n[b] > h / 2) return;
    __shared__ float row[16];
    row[threadIdx.x] = x[b * 16 + threadIdx.x];
    __syncthreads();
    y[threadIdx.x * w + b] += row[15 - threadIdx.x] * gridDim.x;
"""
TREE = """
    __shared__ float part[16], scale;
    const int t = threadIdx.x;
    part[t] = x[blockIdx.x * 16 + t];
    if (t == 0) scale = n[blockIdx.x];
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = part[0] * scale;
"""
TILE = """
    __shared__ float tile[4][5];
    tile[threadIdx.y][threadIdx.x] = x[blockIdx.x * 16 + threadIdx.y * 4 + threadIdx.x];
    __syncthreads();
    y[(threadIdx.y * 4 + threadIdx.x) * w + blockIdx.x] = tile[threadIdx.x][threadIdx.y] + blockDim.y;
"""
SUMMED = (
    "__device__ float summed(const float *a, int n) { float s = 0; for (int i = 0; i < n; ++i) s += a[i]; return s; }"
)
POINTER = """
    __shared__ float row[16];
    row[threadIdx.x] = x[blockIdx.x * 16 + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = summed(row, h) + summed(row + 1, h - 1);
"""


@pytest.mark.parametrize(
    "text",
    [
        kernel(PLACES, block='"h"', shared="4 * h"),
        kernel(PLACES.replace("held[j]", "(*(held + j))"), block='"h"', shared="4 * h"),
        kernel(LEAVES),
        kernel(LEAVES.replace("blockIdx.x", "blockIdx.y").replace("gridDim.x", "gridDim.y"), grid='[1, "w"]'),
        kernel(TREE),
        kernel(TILE, block="[4, 4]"),
        kernel(POINTER, before=SUMMED),
    ],
    ids=["places", "places by pointer", "leaves", "along y", "tree", "tile", "pointer"],
)
def test_every_thread_has_the_ids_and_the_memory_of_before(text: str, subject_from, runner) -> None:
    subject, action = subject_from(text), MergeSharingBlocks()
    moves = list(action.moves(subject))
    assert {m.param("order") for m in moves} == {"inner", "outer"}
    for move in moves:
        runner.check(subject, action.apply(subject, move), *SIZES)


def test_elements_of_neighbours_lie_side_by_side(subject_from, apply_move) -> None:
    changed = apply_move(MergeSharingBlocks(), subject_from(kernel(TREE)), "[axis=x,order=inner,blocks=8]")
    assert "__shared__ float part[16][8]" in changed.source
    assert "scale[8]" in changed.source
    changed = apply_move(MergeSharingBlocks(), subject_from(kernel(TREE)), "[axis=x,order=outer,blocks=8]")
    assert "__shared__ float part[8][16]" in changed.source


def test_rows_that_threads_read_are_not_read_across(subject_from) -> None:
    row = LEAVES.replace("y[threadIdx.x * w + b] +=", "y[b * 16 + threadIdx.x] +=").replace("15 - ", "")
    orders = {m.param("order") for m in MergeSharingBlocks().moves(subject_from(kernel(row)))}
    assert orders == {"outer"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int s = blockDim.x / 2", "int s = n[blockIdx.x]"),
        ("        __syncthreads();\n    }", "        __syncthreads();\n        if (part[0] > 3) break;\n    }"),
        ("    __syncthreads();\n    for", "    if (blockIdx.x > 3) __syncthreads();\n    for"),
        ("    __syncthreads();\n    for", "    if (__syncthreads_or(t > 3)) scale = 1;\n    for"),
        ("part[0] * scale", "__shfl_sync(1u, part[0], 0) * scale"),
        ("part[0] * scale", "part[0] * elsewhere()"),
        ("__shared__ float part[16], scale;", "__shared__ float part[16], scale; static int calls;"),
        ("if (t == 0) y", "{ __shared__ int more; more = t; } if (t == 0) y"),
    ],
    ids=["turns by data", "leaves a loop", "some blocks", "votes", "a warp", "elsewhere", "static", "inside"],
)
def test_nothing_is_offered_where_blocks_may_not_meet_alike(old: str, new: str, subject_from) -> None:
    assert old in TREE
    assert list(MergeSharingBlocks().moves(subject_from(kernel(TREE))))
    assert not list(MergeSharingBlocks().moves(subject_from(kernel(TREE.replace(old, new)))))


def test_blocks_that_are_large_are_merged_side_by_side_alone(subject_from) -> None:
    wide = TREE.replace("[16]", "[128]").replace("threadIdx.x", "threadIdx.x % 16")
    orders = {m.param("order") for m in MergeSharingBlocks().moves(subject_from(kernel(wide, block="128")))}
    assert orders <= {"inner"}


def test_blocks_that_share_much_are_merged_by_few(subject_from) -> None:
    much = TREE.replace("__shared__ float part[16]", "__shared__ float more[2048], part[16]").replace(
        "part[0] * scale", "part[0] * scale + more[0] * 0", 1
    )
    blocks = {int(m.param("blocks")) for m in MergeSharingBlocks().moves(subject_from(kernel(much)))}
    assert blocks == {2, 4}


def test_as_many_as_a_block_has_room_for_at_each_size(subject_from, runner) -> None:
    text = kernel(PLACES, block='"h"', shared="4 * h").replace("h = {min = 1, max = 16", "h = {min = 1, max = 1024")
    subject, action = subject_from(text.replace("shape = [16,", 'shape = ["h",')), MergeSharingBlocks()
    moves = list(action.moves(subject))
    assert {m.param("blocks") for m in moves if m.param("order") == "inner"} == {2, 4, 8, 16, 32}
    for move in moves:
        changed = action.apply(subject, move)
        assert "1024 // (h)" in changed.plan.launches[0].block[0]
        runner.check(subject, changed, {"w": 65, "h": 16}, {"w": 5, "h": 100}, {"w": 3, "h": 1024})


TILES = """// /// fsr
// entry = "k"
// [sizes]
// m = {min = 1, max = 512, timed = TIMED}
// [args]
// y = {role = "inout", shape = ["8 * m", "8 * m"]}
// x = {role = "in", shape = ["8 * m", "8 * m"]}
// m = {value = "m"}
// [launch]
// grid = ["m", "m"]
// block = [8, 8]
// ///
__global__ void k(float *y, const float *x, int m) {
    __shared__ float tile[8][8];
    const int u = threadIdx.x, v = threadIdx.y, at = (blockIdx.y * 8 + v) * m * 8 + blockIdx.x * 8 + u;
    tile[u][v] = x[at];
    __syncthreads();
    float sum = 0;
    if (u > 0 && u < 7 && v > 0 && v < 7) sum = tile[u - 1][v] + tile[u + 1][v] + tile[u][v - 1] + tile[u][v + 1];
    y[at] = sum;
}
"""


@pytest.mark.parametrize(("timed", "offered"), [("256", True), ("64", False)])
def test_blocks_of_two_warps_are_merged_where_starting_them_takes_the_time(
    timed, offered, subject_from, runner
) -> None:
    subject = subject_from(TILES.replace("TIMED", timed))
    moves = list(MergeSharingBlocks().moves(subject))
    assert {m.param("order") for m in moves} == ({"outer"} if offered else set())
    assert max((64 * int(m.param("blocks")) for m in moves), default=512) == 512
    for move in moves:
        runner.check(subject, MergeSharingBlocks().apply(subject, move), {"m": 1}, {"m": 3}, {"m": 9})
