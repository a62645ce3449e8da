"""split-blocks: every thread keeps its ids whatever block it lands in, and no move where threads need their block."""

from __future__ import annotations

import pytest

from fsr.transform.launch.split_blocks import SplitBlocks

SIZES = [{"images": b, "steps": t, "channels": c} for b, t, c in [(1, 1, 1), (3, 4, 33), (2, 7, 100), (5, 2, 64)]]
LOOP = """
#define KERNEL_LOOP(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
"""


def kernel(body: str, *, grid: str = '"images"', block: str = '"channels"', before: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// images = {{min = 1, max = 64, timed = 8}}
// steps = {{min = 1, max = 256, timed = 64}}
// channels = {{min = 1, max = 1024, timed = 512}}
// [args]
// u = {{role = "in", shape = ["images", "steps", "channels"]}}
// v = {{role = "inout", shape = ["images", "steps", "channels"]}}
// T = {{value = "steps"}}
// C = {{value = "channels"}}
// total = {{value = "images * steps * channels"}}
// [launch]
// grid = {grid}
// block = {block}
// ///
{before}
__global__ void k(const float *u, float *v, int T, int C, int total)
{{
{body}
}}
"""


RECURRENCE = """
    const int b = blockIdx.x, c = threadIdx.x;
    if (c == 7) return;
    float s = 0.0f;
    for (int t = 0; t < T; t++) {
        s = 0.5f * s + u[(b * T + t) * C + c];
        v[(b * T + t) * C + c] = s + blockDim.x + gridDim.x + blockIdx.y + gridDim.y;
    }
"""
STRIDED = "    KERNEL_LOOP(i, total) v[i] = u[i] + blockDim.x;"
ROWS = """
    const int b = blockIdx.x, t = blockIdx.y;
    for (int c = threadIdx.y * blockDim.x + threadIdx.x; c < C; c += blockDim.x * blockDim.y)
        v[(b * T + t) * C + c] = u[(b * T + t) * C + c] * (threadIdx.y + 1);
"""


@pytest.mark.parametrize("text", [
    kernel(RECURRENCE),
    kernel(STRIDED, before=LOOP, grid="2", block="512"),
    kernel(ROWS, grid='["images", "steps"]', block="[32, 8]"),
], ids=["recurrence", "strided", "rows"])  # fmt: skip
def test_every_thread_keeps_its_ids(text, subject_from, runner) -> None:
    subject, action = subject_from(text), SplitBlocks()
    moves = list(action.moves(subject))
    assert len(moves) >= 3
    for move in moves:
        changed = action.apply(subject, move)
        x, y, z = changed.plan.launches[0].block
        assert int(x) * int(y) * int(z) == move.param("threads")
        runner.check(subject, changed, *SIZES)


def test_few_blocks_promise_more_than_many(subject_from) -> None:
    few = max(m.gain for m in SplitBlocks().moves(subject_from(kernel(RECURRENCE))))
    many = max(m.gain for m in SplitBlocks().moves(subject_from(kernel(RECURRENCE, grid='"images * steps"'))))
    assert few > 2 > many


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("float s = 0.0f;", "float s = 0.0f; __syncthreads();"),
        ("float s = 0.0f;", "float s = 0.0f; __syncwarp();"),
        ("float s = 0.0f;", "__shared__ float s; s = 0.0f;"),
        ("float s = 0.0f;", "float s = __shfl_sync(0xffffffffu, u[0], 0);"),
        ("float s = 0.0f;", "dim3 at = threadIdx; float s = at.x;"),
        ("float s = 0.0f;", "float s = 0.0f; C = 1;"),  # the kernel does not hold the extent any more
    ],
)
def test_no_move_where_threads_need_their_block(old: str, new: str, subject_from) -> None:
    assert old in RECURRENCE
    assert list(SplitBlocks().moves(subject_from(kernel(RECURRENCE.replace(old, new))))) == []


def test_no_move_where_the_launch_leaves_no_room_or_stays(subject_from) -> None:
    taken = kernel(RECURRENCE, grid='["images", "steps", 2]')
    assert list(SplitBlocks().moves(subject_from(taken))) == []
    assert list(SplitBlocks().moves(subject_from(kernel(RECURRENCE), keep_launch=True))) == []


def test_kernels_over_global_ids_are_left_to_block_size(subject_from) -> None:
    body = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < total) v[i] = u[i];"
    subject = subject_from(kernel(body, grid='"ceil_div(images * steps * channels, 256)"', block="256"))
    assert list(SplitBlocks().moves(subject)) == []
