"""more-blocks for grids that are capped: where small sizes give each turn a block of its own, any number of blocks will
do, whatever the indices are made of."""

from __future__ import annotations

import pytest

from fsr.transform.turns.action import MoreBlocks

SIZES = [{"rows": r, "cols": c} for r, c in [(1, 1), (40, 33), (65, 70), (200, 130)]]
CHUNKED = """
// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 4096, timed = 4096}
// cols = {min = 1, max = 256, timed = 128}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "inout", dtype = "float32", shape = ["rows", "cols"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "min(ceil_div(cols, 32) * rows, 48)"
// block = 32
// ///
__global__ void k(const float *x, float *y, const long long rows, const long long cols)
{
    const long long chunks = 1 + (cols - 1) / blockDim.x;
    const long long all = chunks * rows;
    for (long long c = blockIdx.x; c < all; c += gridDim.x) {
        const long long row = c / chunks, from = (c % chunks) * blockDim.x;
        const float *one = x + row * cols;
        float *mine = y + row * cols + from;
        if (from + threadIdx.x >= cols) continue;
        float sum = mine[threadIdx.x];
        for (long long j = 0; j < cols && sum < 40.0f; ++j) sum += one[j];
        mine[threadIdx.x] = sum;
    }
}
"""


def test_a_capped_grid_gets_more_blocks(subject_from, runner) -> None:
    subject = subject_from(CHUNKED)
    moves = [m for m in MoreBlocks().moves(subject) if "blocks=" in m.name]
    assert moves
    for move in moves:
        assert "threads=" not in move.name  # the number of turns is one of blocks of 32 threads
        runner.check(subject, MoreBlocks().apply(subject, move), *SIZES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('grid = "min(ceil_div(cols, 32) * rows, 48)"', "grid = 48"),
        ("float sum = mine[threadIdx.x];", "float sum = mine[threadIdx.x] + gridDim.x;"),
        ("    for (long long c", "    float sum = 0;\n    for (long long c"),
        ("float *mine = y + row * cols + from;", "float *mine = y + blockIdx.x * 32;"),
    ],
    ids=["never a turn each", "knows of blocks", "hands on", "room of a block"],
)
def test_no_move_where_turns_of_a_block_may_have_to_do_with_one_another(old: str, new: str, subject_from) -> None:
    assert old in CHUNKED
    text = CHUNKED.replace(old, new)
    if "float sum = 0" in new:
        text = text.replace("float sum = mine[threadIdx.x];", "sum = sum * 0.5f + mine[threadIdx.x];")
    assert not [m for m in MoreBlocks().moves(subject_from(text)) if "blocks=" in m.name]
