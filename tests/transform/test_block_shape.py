"""block-shape, swap-ids and coarsen-rows deal the same points out to other threads."""

from __future__ import annotations

import pytest

from fsr.transform.launch.block_shape import BlockShape, CoarsenRows, SwapIds

SIZES = [{"h": h, "w": w} for h, w in [(1, 1), (9, 33), (70, 31), (2, 257)]]

CONTRACT = """
// /// fsr
// entry = "k"
// [sizes]
// h = {min = 0, max = 4096, timed = 512}
// w = {min = 0, max = 4096, timed = 512}
// [args]
// a = {role = "in", shape = ["h", "w"]}
// o = {role = "inout", shape = ["h", "w"]}
// h = {value = "h"}
// w = {value = "w"}
// [launch]
// grid = ["ceil_div(w, 16)", "ceil_div(h, 16)"]
// block = [16, 16]
// ///
"""

BY_BLOCK_DIM = """
__global__ void k(const float *a, float *o, int h, int w) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= w || r >= h) return;
    o[r * w + c] += a[r * w + c] * r;
}
"""
BY_MACRO = """
#define TILE 16
__global__ void k(const float *a, float *o, int h, int w) {
    int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int c = bx * TILE + tx, r = by * TILE + ty;
    if (c < w) {
        if (r < h) {
            if (c == 0) { o[r * w] = -1.0f; return; }
            int at = r * w + c;
            o[at] = a[at] + a[at - 1];
        }
    }
}
"""
ALONG_Y = BY_BLOCK_DIM.replace("blockIdx.x * blockDim.x + threadIdx.x", "@").replace(
    "blockIdx.y * blockDim.y + threadIdx.y", "blockIdx.x * blockDim.x + threadIdx.x"
).replace("@", "blockIdx.y * blockDim.y + threadIdx.y")  # fmt: skip


@pytest.mark.parametrize("code", [BY_BLOCK_DIM, BY_MACRO], ids=["blockDim", "macro"])
@pytest.mark.parametrize(
    ("action", "ending"), [(BlockShape(), "[x=32,y=8]"), (CoarsenRows(), "[rows=4,x=32,y=8]")], ids=lambda v: str(v)[:6]
)
def test_the_same_points_are_computed(code, action, ending, subject_from, apply_move, runner):
    subject = subject_from(CONTRACT + code)
    changed = apply_move(action, subject, ending)
    assert changed.plan.launches[0].block == ("32", "8", "1")
    runner.check(subject, changed, *SIZES)


def test_text_stays_where_it_reads_block_dim(subject_from, apply_move):
    subject = subject_from(CONTRACT + BY_BLOCK_DIM)
    assert apply_move(BlockShape(), subject, "[x=64,y=4]").source == subject.candidate.source
    written = subject_from(CONTRACT + BY_MACRO)
    assert "threadIdx.x" in apply_move(BlockShape(), written, "[x=64,y=4]").source
    assert apply_move(BlockShape(), written, "[x=64,y=4]").source != written.candidate.source


def test_swap_ids_where_memory_runs_along_y(subject_from, apply_move, runner):
    text = (
        CONTRACT.replace('["ceil_div(w, 16)", "ceil_div(h, 16)"]', '["ceil_div(h, 16)", "ceil_div(w, 16)"]') + ALONG_Y
    )
    subject = subject_from(text)
    changed = apply_move(SwapIds(), subject, "[x=32,y=8]")
    assert changed.plan.launches[0].grid[:2] == ("ceil_div(w, 32)", "ceil_div(h, 8)")
    runner.check(subject, changed, *SIZES)
    assert list(SwapIds().moves(subject_from(CONTRACT + BY_BLOCK_DIM))) == []


@pytest.mark.parametrize("ending", ["[x=32,y=8]", "[x=128,y=1]"])
@pytest.mark.parametrize("action", [BlockShape(), SwapIds()], ids=lambda a: a.name)
def test_a_launch_that_stops_short_of_the_guards_computes_no_more(action, ending, subject_from, apply_move, runner):
    """Its grid is for the other order of the ids, so that of tall or wide matrices a part stays as it was."""
    subject = subject_from(CONTRACT + ALONG_Y)
    runner.check(subject, apply_move(action, subject, ending), *SIZES)


def test_a_bound_is_called_by_no_name_that_the_kernel_uses(subject_from, apply_move, runner):
    """Where a move before this one has added a bound of its own."""
    text = CONTRACT + ALONG_Y.replace("r * w", "r * fsr_y_points")
    for old, new in [
        ("int h, int w)", "int fsr_x_points, int fsr_y_points)"),
        ("c >= w || r >= h", "c >= fsr_y_points || r >= fsr_x_points"),
        ("// h = {value", "// fsr_x_points = {value"), ("// w = {value", "// fsr_y_points = {value"),
    ]:  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    subject = subject_from(text)
    made = apply_move(BlockShape(), subject, "[x=32,y=8]")
    assert "fsr_x_points2" in made.source
    runner.check(subject, made, *SIZES)


@pytest.mark.parametrize("action", [BlockShape(), SwapIds(), CoarsenRows()], ids=lambda a: a.name)
@pytest.mark.parametrize(
    "code",
    [
        BY_BLOCK_DIM.replace("* r;", "* threadIdx.x;"),
        BY_BLOCK_DIM.replace("* r;", "+ gridDim.x;"),
        BY_BLOCK_DIM.replace("* r;", "; __syncthreads();"),
        BY_BLOCK_DIM.replace("* r;", "+ __shfl_xor_sync(~0u, 1.0f, 1);"),
    ],
)
def test_no_move_where_threads_are_more_than_points(action, code, subject_from):
    assert list(action.moves(subject_from(CONTRACT + code))) == []


@pytest.mark.parametrize("action", [BlockShape(), SwapIds(), CoarsenRows()], ids=lambda a: a.name)
def test_no_move_when_the_launch_must_stay(action, subject_from):
    assert list(action.moves(subject_from(CONTRACT + BY_BLOCK_DIM, keep_launch=True))) == []
    assert list(action.moves(subject_from(CONTRACT + ALONG_Y, keep_launch=True))) == []
