"""more-blocks: turns that a block's threads share are shared by several blocks, each done once; no move where a turn
hands anything on that does not fold, or touches what another one writes."""

from __future__ import annotations

import pytest

from fsr.transform.turns.action import MoreBlocks

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
    assert not list(MoreBlocks().moves(subject_from(kernel(QUERY, grid='["images", 256]'))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("y[j * K + l] = best", "y[j % 128 * K + l] = best"),
        ("y[j * K + l] = best", "y[l] = best"),
        ("y[j * K + l] = best + l", "y[(j + 1) * K + l] = best + l"),
        ("float best = x[j];", "float best = x[j] + (j < stride ? 0.0f : y[(j - stride) * K]);"),
        ("float best = x[j];", "float best = x[j] + y[0];"),
        ("float best = x[j];", "float *own = y + (int)x[j]; own[j] = 1.0f; float best = x[j];"),
        ("int j = index", "short j = index"),
        ("float best = x[j];", "float best = x[j]; if (best > 2.0f) j += stride;"),
        ("float best = x[j];", "float best = *x; x += 1;"),
        ("float best = x[j];", "int k = (int)x[j]; float best = y[j * K + k];"),
        ("int image", "float carried = 0.0f; int image"),
        ("if (best > 0.5f) y", "if (best > 0.5f) break; y"),
        ("if (best > 0.5f) y", "if (best > 0.5f) return; y"),
        ("j += stride", "j += stride / 2"),
        ("int j = index", "int j = 2 * index"),
        ("x += image * m;", "x += image * m; y[0] = 1.0f;"),
        ("x += image * m;", "__shared__ float s; s = 1.0f; x += y[0] * s;"),
        ('grid = "images"', 'grid = ["images", "k", "k"]'),
    ],
)
def test_nothing_is_offered_where_turns_matter(old: str, new: str, subject_from) -> None:
    text = kernel(QUERY)
    if "carried" in new:
        text = text.replace("float best = x[j];", "carried += x[j]; float best = carried;")
    assert old in text
    assert not list(MoreBlocks().moves(subject_from(text.replace(old, new))))


def test_a_turn_may_know_its_thread_which_stays_what_it_was(subject_from, runner) -> None:
    subject = subject_from(kernel(QUERY.replace("best + l", "best + index")))
    moves = list(MoreBlocks().moves(subject))
    assert moves
    assert not any("threads" in dict(m.params) for m in moves)
    runner.check(subject, MoreBlocks().apply(subject, moves[0]), *SIZES)


def test_blocks_keep_their_size_where_strides_are_numbers(subject_from, runner) -> None:
    subject = subject_from(kernel(QUERY.replace("stride = blockDim.x", "stride = 128")))
    moves = list(MoreBlocks().moves(subject))
    assert moves
    assert not any("threads" in dict(m.params) for m in moves)
    runner.check(subject, MoreBlocks().apply(subject, moves[0]), *SIZES)


BALL = """
    x += blockIdx.x * m;
    y += blockIdx.x * m * K;
    for (int j = threadIdx.x; j < m; j += blockDim.x) {
        int found = 0;
        for (int k = 0; k < m && found < K; ++k) {
            if (x[k] < x[j]) {
                if (found == 0) for (int l = 0; l < K; ++l) y[j * K + l] = k;
                y[j * K + found] = k;
                ++found;
            }
        }
    }
"""
ENDED = BALL.replace(" && found < K", "").replace("++found;", "++found; if (found >= K) break;")
ASKED = BALL.replace(" && found < K", "").replace("if (x[k] < x[j]) {", "if (x[k] < x[j] && found < K) {")


@pytest.mark.parametrize("text", [BALL, ENDED, ASKED], ids=["ball", "ended", "asked"])
def test_a_counter_below_a_bound_tells_elements_of_a_turn(text: str, subject_from, runner) -> None:
    subject = subject_from(kernel(text))
    moves = [m for m in MoreBlocks().moves(subject) if m.region == "kernel"]
    assert moves
    runner.check(subject, MoreBlocks().apply(subject, moves[1]), *SIZES)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (BALL, "found < K", "found < m"),
        (BALL, " && found < K", ""),
        (BALL, "y[j * K + found] = k;\n                ++found;", "++found; y[j * K + found] = k;"),
        (BALL, "++found;", "found -= 1;"),
        (BALL, "int found = 0", "int found = -1"),
        (BALL, "y[j * K + found] = k;", "while (found < m) { y[j * K + found] = k; ++found; }"),
        (ENDED, "found >= K", "found >= K + 1"),
        (ENDED, "int found = 0", "int found = 1"),
        (ENDED, "if (found >= K) break;", "if (found >= K) continue;"),
        (ENDED, "if (x[k] < x[j]) {", "if (x[k] > 2.0f) ++found; if (x[k] < x[j]) {"),
        (ENDED, "++found; if", "found += 2; if"),
        (ASKED, "++found;", "++found; y[j * K + found] = 1.0f;"),
        (ASKED, "x[k] < x[j] && found < K", "x[k] < x[j] || found < K"),
    ],
)
def test_a_counter_that_may_reach_other_turns_does_not(text: str, old: str, new: str, subject_from) -> None:
    assert old in text
    changed = text.replace(old, new)
    if "found += 2" in new:
        changed = changed.replace("found >= K", "found == K")
    assert not [m for m in MoreBlocks().moves(subject_from(kernel(changed))) if m.region == "kernel"]


TOLD = """
// /// fsr
// entry = "k"
// [sizes]
// n = {min = 0, max = 100000, timed = 65536}
// [args]
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// [args.info]
// role = "ROLE"
// shape = [1]
// steps = {low = 1, high = 100}
// rate = {low = -2.0, high = 2.0}
// [launch]
// grid = 16
// block = 32
// ///
struct Told { int steps; float rate; };
__global__ void k(float *__restrict__ y, Told *__restrict__ info, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = i % info->steps * info->rate;
    }
}
"""


def test_a_structure_that_nobody_writes_tells_every_block_the_same(subject_from, runner) -> None:
    subject = subject_from(TOLD.replace("ROLE", "in"))
    moves = list(MoreBlocks().moves(subject))
    assert moves
    for move in moves:
        runner.check(subject, MoreBlocks().apply(subject, move), {"n": 0}, {"n": 7}, {"n": 5000})


@pytest.mark.parametrize(
    ("role", "old", "new"),
    [
        ("inout", "y[i] =", "info->steps = 3; y[i] ="),
        ("in", "        y[i]", "        info += i / n; y[i]"),
        ("in", "        y[i]", "        Told *info = at + i; y[i]"),
    ],
)
def test_one_that_may_change_does_not(role: str, old: str, new: str, subject_from) -> None:
    text = TOLD.replace("ROLE", role).replace(old, new)
    text = text.replace("Told *__restrict__ info", "Told *__restrict__ at") if "at +" in new else text
    text = text.replace("[args.info]", "[args.at]") if "at +" in new else text
    assert not list(MoreBlocks().moves(subject_from(text)))
