"""merge-blocks: several small blocks in one, every thread with the ids that it had; no move where threads cooperate."""

from __future__ import annotations

import pytest

from fsr.transform.launch.merge_blocks import MergeBlocks

SIZES = [{"w": w, "h": h} for w, h in [(1, 1), (3, 2), (65, 4), (130, 9), (257, 1)]]


def kernel(body: str, *, grid: str = '["w", "h"]', block: str = "1", before: str = "", params: str = "float *y") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// w = {{min = 0, max = 4096, timed = 1280}}
// h = {{min = 0, max = 4096, timed = 720}}
// [args]
// y = {{role = "inout", shape = ["h", "w"]}}
// [launch]
// grid = {grid}
// block = {block}
// ///
{before}
__global__ void k({params})
{{
{body}
}}
"""


COLOUR = """
struct Point {
    float re;
    __device__ Point(float x) : re(x) {}
    __device__ float doubled() { return re + re; }
};
__device__ int shade(int x, int y) { Point p(x - y); return p.doubled(); }
"""
PIXEL = "int x = blockIdx.x, y_ = blockIdx.y; y[x + y_ * gridDim.x] += shade(x, y_) + blockDim.x * 3 + threadIdx.x;"
ROWS = """
    const unsigned row = blockIdx.x, parts = blockDim.x * blockDim.y;
    if (threadIdx.y == 3) return;
    for (int c = threadIdx.y * blockDim.x + threadIdx.x; c < width; c += parts)
        y[row * width + c] += row + gridDim.x + threadIdx.x;
"""


@pytest.mark.parametrize(
    "text",
    [
        kernel(PIXEL, before=COLOUR),
        kernel(ROWS.replace("width", "W"), grid='"h"', block="[4, 5]", before="#define W 4096").replace(
            'shape = ["h", "w"]', 'shape = ["h", 4096]'
        ),
        kernel("y[blockIdx.y * gridDim.x + blockIdx.x] += threadIdx.x;", grid='["w", "h"]', block="1"),
        kernel("y[blockIdx.y] += blockIdx.x + gridDim.y;", grid='[1, "h"]'),
    ],
    ids=["a pixel a block", "rows", "plain", "along y"],
)
def test_every_thread_has_the_ids_of_before(text: str, subject_from, runner) -> None:
    subject, action = subject_from(text), MergeBlocks()
    moves = list(action.moves(subject))
    assert moves
    for move in moves:
        changed = action.apply(subject, move)
        threads = int(changed.plan.launches[0].block[0])
        assert int(move.param("threads")) // 2 < threads <= int(move.param("threads"))
        runner.check(subject, changed, *SIZES)


def test_the_fewer_threads_a_block_had_the_more_is_promised(subject_from) -> None:
    gains = [
        max(m.gain for m in MergeBlocks().moves(subject_from(kernel(PIXEL, before=COLOUR, block=block))))
        for block in ("1", "8", "32", "64")
    ]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 4 > 1.1 > gains[-1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("block = 1\n", "block = 128\n"),
        ("block = 1\n", 'block = "min(w, 32)"\n'),
        ("y[x +", "__syncthreads(); y[x +"),
        ("y[x +", "__shared__ float s; s = 1.0f; y[x +"),
        ("return p.doubled();", "return __shfl_sync(~0u, p.doubled(), 0);"),
        ("return re + re;", "return re + threadIdx.x;"),
        ("shade(x, y_)", "elsewhere(x, y_)"),
        ('grid = ["w", "h"]', "grid = 1"),
    ],
)
def test_nothing_is_offered_where_blocks_matter(old: str, new: str, subject_from) -> None:
    text = kernel(PIXEL, before=COLOUR)
    assert old in text
    assert not list(MergeBlocks().moves(subject_from(text.replace(old, new))))
