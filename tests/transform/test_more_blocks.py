"""more-blocks: turns that a block's threads share are shared by several blocks, each done once; no move where a turn
knows its thread, hands anything on, or writes where another may."""

from __future__ import annotations

import pytest

from fsr.transform.launch.more_blocks import MoreBlocks

SIZES = [{"images": b, "m": m, "k": k} for b, m, k in [(1, 1, 1), (3, 65, 2), (2, 300, 5), (1, 0, 3), (4, 1025, 1)]]


def kernel(body: str, *, grid: str = '"images"', block: str = "128") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// images = {{min = 1, max = 64, timed = 8}}
// m = {{min = 0, max = 4096, timed = 4096}}
// k = {{min = 1, max = 16, timed = 4}}
// [args]
// x = {{role = "in", shape = ["images", "m"]}}
// y = {{role = "inout", shape = ["images", "m", "k"]}}
// m = {{value = "m"}}
// K = {{value = "k"}}
// [launch]
// grid = {grid}
// block = {block}
// ///
__global__ void k(const float *x, float *y, int m, int K)
{{
{body}
}}
"""


QUERY = """
    int image = blockIdx.x, index = threadIdx.x, stride = blockDim.x;
    x += image * m;
    y += image * m * K;
    for (int j = index; j < m; j += stride) {
        float best = x[j];
        for (int l = 0; l < K; ++l) {
            if (best < 0.25f && l > 2) break;
            y[j * K + l] = best + l;
        }
        if (best > 0.5f) y[j * K] += 1.0f;
    }
"""
TWO = """
    for (int j = threadIdx.x; j < m; j += blockDim.x) y[(blockIdx.x * m + j) * K] = x[blockIdx.x * m + j] * 0.5f;
    for (int j = threadIdx.x; j <= m - 1; j += blockDim.x) y[(blockIdx.x * m + j) * K + K - 1] += gridDim.y;
"""
FLAT = """
    const unsigned lane = threadIdx.y * blockDim.x + threadIdx.x;
    for (unsigned j = lane; j < m; j += blockDim.x * blockDim.y) {
        const float *row = x + blockIdx.x * m;
        y[(blockIdx.x * m + j) * K] += row[m - 1 - j];
    }
"""


@pytest.mark.parametrize(
    "text", [kernel(QUERY), kernel(TWO), kernel(FLAT, block="[32, 4]")], ids=["query", "two loops", "two axes"]
)
def test_every_turn_is_done_once(text: str, subject_from, runner) -> None:
    subject, action = subject_from(text), MoreBlocks()
    moves = list(action.moves(subject))
    assert moves
    for move in moves:
        changed = action.apply(subject, move)
        assert changed.plan.launches[0].grid[2] == str(move.param("parts"))
        runner.check(subject, changed, *SIZES)


def test_blocks_are_smaller_where_only_strides_know_of_threads(subject_from) -> None:
    shapes = [dict(m.params) for m in MoreBlocks().moves(subject_from(kernel(QUERY)))]
    assert any(shape.get("threads") == 64 for shape in shapes)
    flat = [dict(m.params) for m in MoreBlocks().moves(subject_from(kernel(FLAT, block="[32, 4]")))]
    assert flat
    assert not any("threads" in shape for shape in flat)


def test_full_grids_are_left_alone(subject_from) -> None:
    assert not list(MoreBlocks().moves(subject_from(kernel(QUERY, grid='["images", 64]'))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("y[j * K + l] = best", "y[j % 128 * K + l] = best"),
        ("y[j * K + l] = best", "y[l] = best"),
        ("y[j * K + l] = best + l", "y[j * K + l] = best + index"),
        ("y[j * K + l] = best + l", "y[j * K + l] = best + threadIdx.x"),
        ("int image", "float carried = 0.0f; int image"),
        ("if (best > 0.5f) y", "if (best > 0.5f) break; y"),
        ("if (best > 0.5f) y", "if (best > 0.5f) return; y"),
        ("j += stride", "j += stride / 2"),
        ("int j = index", "int j = 2 * index"),
        ("x += image * m;", "x += image * m; y[0] = 1.0f;"),
        ("x += image * m;", "__shared__ float s; s = 1.0f; x += image * m;"),
        ('grid = "images"', 'grid = ["images", "k", "k"]'),
    ],
)
def test_nothing_is_offered_where_turns_matter(old: str, new: str, subject_from) -> None:
    text = kernel(QUERY)
    if "carried" in new:
        text = text.replace("float best = x[j];", "carried += x[j]; float best = carried;")
    assert old in text
    assert not list(MoreBlocks().moves(subject_from(text.replace(old, new))))
