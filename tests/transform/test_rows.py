"""row-per-warp and row-per-block: same results as one row a thread, whatever the loops do; no move where unproven."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.analysis.aliasing import may_alias
from fsr.analysis.effects import pointers
from fsr.source.parse import parse_kernels
from fsr.transform.protocol import Subject
from fsr.transform.rows.action import ROW_PER_BLOCK, ROW_PER_WARP
from fsr.transform.target import target_for

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = [{"rows": r, "cols": c} for r, c in [(0, 1), (1, 1), (3, 31), (130, 32), (2, 61), (5, 128), (3, 257)]]
CACHES = ["cache=none,width=1]", "cache=none,width=4]", "cache=register,width=4]", "cache=shared,width=4]"]


def kernel(
    body: str, *, out: str = '["rows", "cols"]', role: str = "out", dtype: str = "float", tolerance: str = ""
) -> str:
    numpy_name = {"float": "float32", "double": "float64"}.get(dtype, "int32")
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// rows = {{min = 0, max = 4096, timed = 512}}
// cols = {{min = 1, max = 4096, timed = 128}}
// [args]
// x = {{role = "in", shape = ["rows", "cols"], dtype = "{numpy_name}"}}
// y = {{role = "{role}", shape = {out}, dtype = "{numpy_name}"}}
// rows = {{value = "rows"}}
// cols = {{value = "cols"}}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// {tolerance or 'sum_length = "cols"'}
// ///
__global__ void k(const {dtype} *x, {dtype} *y, int rows, int cols)
{{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
{body}
}}
"""


LAYER = """
    if (row >= rows) return;
    const float *in = x + (size_t)row * cols;
    float mean = 0.0f, square = 0.0f;
    for (int c = 0; c < cols; ++c) { float v = in[c]; mean += v; square = fmaf(v, v, square); }
    mean /= cols;
    float inv = rsqrtf(square / cols - mean * mean + 1.0f);
    for (int c = 0; c < cols; ++c) y[row * cols + c] = (in[c] - mean) * inv;
"""
STORED_EXP = """
    if (row < rows) {
        float top = -1e30f;
        for (int j = 0; j < cols; j++) if (x[row * cols + j] > top) top = x[row * cols + j];
        float sum = 0;
        for (int j = 0; j < cols; j++) {
            float e = expf(x[row * cols + j] - top);
            y[row * cols + j] = e;
            sum += e;
        }
        for (int j = 0; j < cols; j++) y[row * cols + j] /= sum;
    }
"""
IN_PLACE = """
    if (row >= rows) return;
    float norm = 1.0f;
    for (int j = 0; j < cols; j++) norm += y[row * cols + j] * y[row * cols + j];
    norm = sqrtf(norm);
    for (int j = 0; j < cols; j++) {
        if (x[row * cols + j] < 0.0f) continue;
        y[row * cols + j] = y[row * cols + j] / norm;
    }
"""
KEPT_HERE = """
    if (row >= rows) return;
    float sum = 1.0f;
    for (int j = 0; j < cols; j++) sum += fabsf(x[row * cols + j]);
    for (int j = 0; j < cols; j++) {
        float now = x[row * cols + j] / sum;
        y[row * cols + j] = now > 0.0f ? y[row * cols + j] : now;
    }
"""
SHIFTED = """
    if (row >= rows) return;
    for (int j = 0; j < cols; j++) y[row * cols + j] = x[row * cols + j] * 2.0f;
    for (int j = 0; j < cols - 1; j++) y[row * cols + j] = y[row * cols + j + 1 - 1] + 1.0f;
    float last = y[row * cols + cols - 1];
    float sum = 0.0f;
    for (int j = 0; j < cols; j++) sum += y[row * cols + (cols - 1 - j)];
    y[row * cols] = sum + last;
"""
SEVERAL = """
    if (row >= rows) return;
    float low = x[row * cols], high = x[row * cols], product = 1.0f;
    int positive = 3;
    for (int j = 0; j < cols; j++) {
        float v = x[row * cols + j];
        low = fminf(v, low);
        high = v > high ? v : high;
        product *= 1.0f + 0.001f * v;
        if (v > 0.0f) positive += 1;
    }
    y[row] = low + 10.0f * high + product + positive;
"""
TWICE = """
    if (row >= rows) return;
    float total = 1.0f;
    for (int half = 0; half < 2; ++half) {
        for (int j = half; j < cols; j += 2) total += x[row * cols + j] * (half + 1);
        if (total > 1000.0f) break;
    }
    y[row] = total;
"""
MOVING = """
    if (row >= rows) return;
    float *p = y + row * cols;
    int half = cols / 2;
    for (int j = 0; j < half; j++) p[j] = x[row * cols + j];
    p += half;
    for (int j = 0; j < half; j++) p[j] = p[j - half] + 1.0f;
    if (half > 0) p[half - 1] = 6.0f;
    float total = 0.0f;
    for (int j = 0; j < half; j++) total += p[j];
    y[row * cols] = total;
"""
PER_ROW = '["rows"]'


@pytest.mark.parametrize(
    ("body", "out", "role"),
    [
        (LAYER, '["rows", "cols"]', "out"),
        (STORED_EXP, '["rows", "cols"]', "out"),
        (IN_PLACE, '["rows", "cols"]', "inout"),
        (KEPT_HERE, '["rows", "cols"]', "inout"),
        (SHIFTED, '["rows", "cols"]', "out"),
        (MOVING, '["rows", "cols"]', "inout"),
        (SEVERAL, PER_ROW, "out"),
        (TWICE, PER_ROW, "out"),
    ],
    ids=["layer", "stored-exp", "in-place", "kept-here", "shifted", "moving", "several", "twice"],
)
def test_every_way_gives_the_rows_of_the_original(
    body: str, out: str, role: str, subject_from: Callable[..., Subject], runner, close_outputs
) -> None:
    subject = subject_from(kernel(body, out=out, role=role))
    tried = 0
    for action, threads in ((ROW_PER_WARP, 128), (ROW_PER_BLOCK, 256)):
        for move in action.moves(subject):
            if move.param("threads") != threads:
                continue
            changed = action.apply(subject, move)
            assert set(parse_kernels(changed.source)) == {"k"}
            close_outputs(subject, changed, SIZES)
            tried += 1
    assert tried >= 2


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
@pytest.mark.parametrize("ending", CACHES)
def test_examples_at_every_size_and_alignment(name: str, ending: str, subject_from, runner, close_outputs) -> None:
    subject = subject_from((EXAMPLES / f"{name}.cu").read_text())
    for action in (ROW_PER_WARP, ROW_PER_BLOCK):
        moves = [m for m in action.moves(subject) if m.name.endswith(ending) and m.param("threads") == 256]
        assert len(moves) == 1
        changed = action.apply(subject, moves[0])
        assert changed.plan.launches[0].block == ("256", "1", "1")
        close_outputs(subject, changed, [{"rows": 5, "cols": c} for c in (1, 36, 1024, 1028)], alignment=4)


@pytest.mark.parametrize(
    ("declared", "place"),
    [
        ("float *to = y + row * cols;", "to[c]"),
        ("const int base = row * cols; float *to = y + base;", "to[c]"),
        ("const int base = row * cols;", "y[base + c]"),
        ("const int base = row * cols + (int)(sum * 0.0f);", "y[base + c]"),
    ],
)
def test_addresses_may_be_declared_between_the_loops(declared, place, subject_from, close_outputs) -> None:
    body = f"""
    if (row >= rows) return;
    const float *in = x + row * cols;
    float sum = 0.0f;
    for (int c = 0; c < cols; ++c) sum += in[c];
    {declared}
    for (int c = 0; c < cols; ++c) {place} = in[c] - sum;
"""
    subject = subject_from(kernel(body))
    packs = 0
    for move in ROW_PER_BLOCK.moves(subject):
        if "threads=128" in move.name and "width=4" in move.name:
            changed = ROW_PER_BLOCK.apply(subject, move)
            packs += ("(&" + place.split("[")[0] + "[") in changed.source
            close_outputs(subject, changed, [{"rows": 3, "cols": 32}, {"rows": 2, "cols": 61}])
    assert bool(packs) == ("sum" not in declared)


@pytest.mark.parametrize(
    ("groups", "distinct"), [((("x", "z"), ("z", "y")), True), ((("x", "y"), ("y", "z")), False), ((), True)]
)
def test_aliasing_is_what_a_group_names_together(groups, distinct, subject_from) -> None:
    """y may overlap x and z without x overlapping z; where x and y may overlap, no order of rows is another's."""
    text = kernel(
        "if (row < rows) { for (int c = 0; c < cols; ++c) { y[row * cols + c] = x[row * cols + c] + z[0]; } }"
    )
    text = text.replace("float *x, float *y", "float *x, float *y, const float *z")
    text = text.replace("// rows = {value", '// z = {role = "in", shape = [1], dtype = "float32"}\n// rows = {value')
    subject = subject_from(text)
    subject = replace(subject, contract=replace(subject.contract, aliasing=groups))
    apart = any("__restrict__" in ROW_PER_BLOCK.apply(subject, m).source for m in ROW_PER_BLOCK.moves(subject))
    assert apart == (not groups)
    found = next(place for place in (target_for(subject, k) for k in subject.kernels.values()) if place is not None)
    roots = pointers(found.kernel, found.passed, groups).roots
    assert (roots["x"] != roots["y"]) == (not groups)
    assert may_alias("x", "y", groups) != distinct


def test_launch_stays_with_keep_launch(subject_from, runner, close_outputs) -> None:
    subject = subject_from(kernel(LAYER), keep_launch=True)
    names = []
    for action in (ROW_PER_WARP, ROW_PER_BLOCK):
        for move in action.moves(subject):
            changed = action.apply(subject, move)
            assert changed.plan == subject.candidate.plan
            close_outputs(subject, changed, SIZES[:4])
            names.append(move.name)
    assert "row-per-warp@k[threads=64,cache=register,width=4]" in names


def test_one_row_a_block_launches_as_many_blocks_as_rows(subject_from, apply_move) -> None:
    subject = subject_from(kernel(LAYER))
    block = apply_move(ROW_PER_BLOCK, subject, "[threads=128,cache=none,width=1]").plan.launches[0]
    warp = apply_move(ROW_PER_WARP, subject, "[threads=128,cache=none,width=1]").plan.launches[0]
    assert (block.grid[0], warp.grid[0]) == ("rows", "ceil_div(rows, 4)")


@pytest.mark.parametrize(
    "body",
    [
        # each element needs the one before
        "if (row >= rows) return; float a = 0; "
        "for (int j = 0; j < cols; j++) { a = a * 0.5f + x[row * cols + j]; } y[row] = a;",
        # a prefix sum: the accumulator is read
        "if (row < rows) { float a = 0; "
        "for (int j = 0; j < cols; j++) { a += x[row * cols + j]; y[row * cols + j] = a; } }",
        # iterations touch one another's elements
        "if (row < rows) { for (int j = 1; j < cols; j++) y[row * cols + j] = y[row * cols + j - 1] + x[j]; }",
        # the first hit ends the loop
        "if (row < rows) { int j = 0; for (j = 0; j < cols; j++) { if (x[row * cols + j] > 0) break; } y[row] = j; }",
        # threads talk to one another
        "__shared__ float s[64]; s[threadIdx.x] = 1; __syncthreads(); float a = 0; "
        "for (int j = 0; j < cols; j++) a += x[row * cols + j]; y[row] = a + s[0];",
        # which thread runs it shows
        "if (row >= rows) return; float a = 0; "
        "for (int j = 0; j < cols; j++) a += x[row * cols + j]; y[row] = a + threadIdx.x;",
        # the loop variable is looked at afterwards
        "if (row >= rows) return; int j; float a = 0; "
        "for (j = 0; j < cols; j++) a += x[row * cols + j]; y[row] = a + j;",
        # memory that changes behind the kernel's back
        "if (row >= rows) return; const volatile float *p = x + row * cols; float a = 0; "
        "for (int j = 0; j < cols; j++) a += p[j]; y[row] = a;",
        # a variable of the whole block inside the loop
        "if (row >= rows) return; float a = 0; "
        "for (int j = 0; j < cols; j++) { __shared__ float s; s = 1; a += s * x[row * cols + j]; } y[row] = a;",
        # an array that all iterations add to
        "if (row >= rows) return; float t[2]; t[0] = 0; t[1] = 0; "
        "for (int j = 0; j < cols; j++) t[j & 1] += x[row * cols + j]; y[row] = t[0] - t[1];",
        # an unknown function may do anything
        "if (row >= rows) return; float a = 0; for (int j = 0; j < cols; j++) a += helper(x, j); y[row] = a;",
    ],
)
def test_no_move_where_the_loop_is_not_shown_to_be_parallel(body: str, subject_from) -> None:
    subject = subject_from("__device__ float helper(const float *p, int j) { return p[j]; }" + kernel(body))
    assert list(ROW_PER_WARP.moves(subject)) == []
    assert list(ROW_PER_BLOCK.moves(subject)) == []


def test_exact_results_allow_integers_and_maxima_only(subject_from, runner) -> None:
    total = "if (row < rows) { %s a = 0; for (int j = 0; j < cols; j++) a += x[row * cols + j]; y[row] = a; }"
    top = (
        "if (row < rows) { float a = x[row * cols]; "
        "for (int j = 0; j < cols; j++) a = fmaxf(a, x[row * cols + j]); y[row] = a; }"
    )
    exact = "exact = true"
    assert not list(ROW_PER_WARP.moves(subject_from(kernel(total % "float", out=PER_ROW, tolerance=exact))))
    for text in (
        kernel(total % "int", out=PER_ROW, dtype="int", tolerance=exact),
        kernel(top, out=PER_ROW, tolerance=exact),
    ):
        subject = subject_from(text)
        for move in list(ROW_PER_WARP.moves(subject))[:2]:
            runner.check(subject, ROW_PER_WARP.apply(subject, move), *SIZES)


def test_a_row_longer_than_the_cache_goes_the_plain_way(subject_from, apply_move, close_outputs) -> None:
    subject = subject_from(kernel(STORED_EXP))
    changed = apply_move(ROW_PER_WARP, subject, "[threads=128,cache=register,width=4]")
    assert "x_row" in changed.source
    close_outputs(subject, changed, [{"rows": 3, "cols": 132}, {"rows": 3, "cols": 2000}])


def test_doubles_are_read_two_at_a_time_or_not_in_packs(subject_from) -> None:
    subject = subject_from(kernel(STORED_EXP.replace("float", "double"), dtype="double"))
    widths = {m.param("width") for m in ROW_PER_BLOCK.moves(subject) if m.param("cache") == "register"}
    assert 4 not in widths
    assert 1 in widths


def test_results_are_those_of_numpy(subject_from, runner, apply_move) -> None:
    subject = subject_from((EXAMPLES / "softmax.cu").read_text())
    changed = apply_move(ROW_PER_BLOCK, subject, "[threads=128,cache=register,width=4]")
    got = runner.outputs(changed, subject.contract, {"rows": 3, "cols": 500})["y"]
    np.testing.assert_allclose(got.sum(axis=1), 1.0, rtol=1e-5)


def test_little_is_expected_where_neighbours_in_a_row_lie_apart(subject_from) -> None:
    text = "if (row < rows) { float a = 0; for (int j = 0; j < cols; j++) a += x[%s]; y[row] = a; }"
    along = subject_from(kernel(text % "row * cols + j", out=PER_ROW))
    across = subject_from(kernel(text % "j * rows + row", out=PER_ROW))
    assert min(m.gain for m in ROW_PER_BLOCK.moves(along)) > 4.0
    assert max(m.gain for m in ROW_PER_BLOCK.moves(across)) < 2.0


ARGMAX = """
    if (row >= rows) return;
    float best = x[row * cols], low = 3.0f;
    int at = 0, lowest = -1;
    for (int j = 1; j < cols; j++) {
        float v = x[row * cols + j];
        if (v > best) { best = v; at = j; }
        if (j % 3 != 1) {
            if (low > v) { lowest = (int)j; low = v; }
        }
    }
    y[row] = best + 100.0f * at + 0.5f * low + 10000.0f * lowest;
"""


COMPRESSED = """
// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 4096, timed = 512}
// [args]
// ends = {role = "in", shape = ["rows + 1"], dtype = "int32", low = -4, HIGH}
// x = {role = "in", shape = ["rows", 9]}
// y = {role = "out", shape = ["rows"]}
// rows = {value = "rows"}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// sum_length = 8
// ///
__global__ void k(const int *ends, const float *x, float *y, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    int end = ends[row + 1];
    for (int j = ends[row]; j < end; j++) sum += x[row * 9 + j + 4];
    y[row] = sum;
}
"""


def test_rows_that_begin_where_an_array_says_are_shared_too(subject_from, apply_move, close_outputs) -> None:
    subject = subject_from(COMPRESSED.replace("HIGH", "high = 4"))
    for action, ending in ((ROW_PER_WARP, "[threads=128,cache=none,width=1]"), (ROW_PER_BLOCK, "width=1]")):
        close_outputs(subject, apply_move(action, subject, ending), [{"rows": 70}, {"rows": 1}])
    assert next(iter(ROW_PER_WARP.moves(subject))).gain > 5
    assert not list(ROW_PER_WARP.moves(subject_from(COMPRESSED.replace(", HIGH", ""))))  # as long as an int counts


STRIDED = COMPRESSED.partition("{\n    int row")[0].replace("HIGH", "high = 4").replace("ceil_div(rows, 64)", "3")
OWN_ROWS = """{
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += blockDim.x * gridDim.x) {
        float sum = 0;
        const int begin = ends[row], end = ends[row + 1];
        for (int j = begin; j < end; ++j) sum += x[row * 9 + j + 4];
        y[row] = sum;
    }
}
"""


def test_threads_that_take_rows_a_grid_apart_are_threads_of_one_row(subject_from, apply_move, close_outputs) -> None:
    subject = subject_from(STRIDED + OWN_ROWS)
    for action, blocks in ((ROW_PER_WARP, "ceil_div(rows, 4)"), (ROW_PER_BLOCK, "rows")):
        changed = apply_move(action, subject, "[threads=128,cache=none,width=1]")
        assert changed.plan.launches[0].grid[0] == blocks
        close_outputs(subject, changed, [{"rows": 500}, {"rows": 1}])
    assert next(iter(ROW_PER_WARP.moves(subject))).gain > 5  # a row begins where it is told to, in a variable
    assert not list(ROW_PER_WARP.moves(subject_from(STRIDED + OWN_ROWS, keep_launch=True)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    for (int row", "    float sum = 0;\n    for (int row"),  # goes on from row to row
        ("        float sum = 0;", "        float sum = 0; if (x[row * 9] > 3.0f) return;"),  # ends rows to come
        ("row += blockDim.x * gridDim.x", "row += blockDim.x"),
        ("row < rows; row", "row < (int)x[0]; row"),
    ],
)
def test_rows_that_are_not_their_own_stay_with_one_thread(old: str, new: str, subject_from) -> None:
    body = OWN_ROWS.replace(old, new, 1)
    body = body.replace("        float sum = 0;\n", "", 1) if old.startswith("    for") else body
    assert body != OWN_ROWS
    assert not list(ROW_PER_WARP.moves(subject_from(STRIDED + body)))


def test_the_first_of_equal_extremes_stays_the_place(subject_from, runner) -> None:
    """Inputs are whole numbers from -4 to 4: nearly every row has ties, and rows in which nothing is below 3."""
    subject = subject_from(kernel(ARGMAX, out=PER_ROW, tolerance="exact = true"))
    tried = 0
    for action in (ROW_PER_WARP, ROW_PER_BLOCK):
        for move in action.moves(subject):
            if move.param("threads") == 128:
                changed = action.apply(subject, move)
                runner.check(subject, changed, *SIZES)
                assert runner.faults(changed, subject.contract, {"rows": 3, "cols": 70}) == []
                tried += 1
    assert tried >= 4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (v > best)", "if (v >= best)"),  # the last of equal ones
        ("if (v > best)", "if (v > best + 1.0f)"),
        ("at = j;", "at = cols - j;"),
        ("at = j;", "at = j; low = v;"),
        ("best = v;", "best = 2.0f * v;"),
        ("float v = x[row * cols + j];", "float v = x[row * cols + j] + at;"),
        ("if (v > best)", "if (at == 7) best = 0.0f; if (v > best)"),
        ("lowest = (int)j; low = v;", "lowest = (int)j; low = v; best = v;"),
        ("lowest = (int)j; low = v;", "at = (int)j; low = v;"),  # one place for two extremes
    ],
)
def test_other_ways_to_note_a_place_stop_the_move(old: str, new: str, subject_from) -> None:
    assert old in ARGMAX
    subject = subject_from(kernel(ARGMAX.replace(old, new), out=PER_ROW, tolerance="exact = true"))
    assert list(ROW_PER_WARP.moves(subject)) == []


HELPERS = """
#define LIMIT 100.0f
#define SQUARE(v) ((v) * (v))
__device__ __forceinline__ float clipped(float v) { return fminf(v, LIMIT); }
__device__ float smooth(float v, int j) { float e = expf(-clipped(v)); if (j > 2) { e *= 0.5f; } return SQUARE(e); }
"""


SECOND = """
    if (row >= rows) return;
    float best = -INFINITY, last = x[row * cols];
    int at = -1;
    for (int j = 0; j < cols; j++) {
        float v = x[row * cols + j];
        bool left = v != last;
        if (left && (at < 0 || v > best)) { best = v; at = j; }
    }
    y[row] = best + 100.0f * at;
"""
OTHERS = {
    "begins elsewhere": ("best = -INFINITY", "best = -2"),
    "a value that is made": ("float v = x[row * cols + j]", "float v = x[row * cols + j] - 1"),
    "places below zero": ("int j = 0", "int j = -1"),
    "begins anew": ("bool left = v != last", "bool left = v != last; if (j == 5) at = -1"),
}


def test_the_first_of_all_needs_no_test_of_its_own(subject_from, apply_move, runner) -> None:
    subject = subject_from(kernel(SECOND, out=PER_ROW, tolerance="exact = true"))
    for action in (ROW_PER_WARP, ROW_PER_BLOCK):
        changed = apply_move(action, subject, "width=1]")
        for sizes in SIZES[1:]:
            want, got = (runner.outputs(c, subject.contract, sizes)["y"] for c in (subject.candidate, changed))
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("old", "new"), OTHERS.values(), ids=OTHERS)
def test_other_tests_for_a_first_stop_the_move(old: str, new: str, subject_from) -> None:
    assert old in SECOND
    assert not list(ROW_PER_WARP.moves(subject_from(kernel(SECOND.replace(old, new), out=PER_ROW))))


def test_helpers_that_only_compute_are_followed(subject_from, close_outputs) -> None:
    body = (
        "if (row < rows) { float a = 0; for (int j = 0; j < cols; j++) a += smooth(x[row * cols + j], j); y[row] = a; }"
    )
    subject = subject_from(HELPERS + kernel(body, out=PER_ROW))
    moves = [m for m in ROW_PER_BLOCK.moves(subject) if m.param("threads") == 128]
    assert moves
    for move in moves[:2]:
        close_outputs(subject, ROW_PER_BLOCK.apply(subject, move), SIZES)


@pytest.mark.parametrize(
    "helper",
    [
        "__device__ int calls; __device__ float f(float v) { calls += 1; return v; }",
        "__device__ float f(float v) { return v + threadIdx.x; }",
        "__device__ float f(float v) { __syncthreads(); return v; }",
        "__device__ float f(float v) { static float last; last = v; return last; }",
        "#define f(v) (y[0] = (v))\n",
        "#define ME threadIdx.x\n__device__ float f(float v) { return v + ME; }",
    ],
)
def test_helpers_with_effects_stop_the_move(helper: str, subject_from) -> None:
    body = "if (row < rows) { float a = 0; for (int j = 0; j < cols; j++) a += f(x[row * cols + j]); y[row] = a; }"
    assert list(ROW_PER_BLOCK.moves(subject_from(helper + kernel(body, out=PER_ROW)))) == []


def test_a_row_that_is_not_the_threads_number_stops_the_move(subject_from) -> None:
    text = kernel(LAYER)
    moved = text.replace("blockIdx.x * blockDim.x + threadIdx.x", "blockIdx.x * blockDim.x - 1 + threadIdx.x")
    assert moved != text
    assert list(ROW_PER_WARP.moves(subject_from(moved))) == []


def test_a_macro_that_hides_the_thread_stops_the_move(subject_from) -> None:
    body = "if (row < rows) { float a = 0; for (int j = 0; j < cols; j++) a += x[row * cols + j] * ME; y[row] = a; }"
    assert list(ROW_PER_WARP.moves(subject_from("#define ME threadIdx.x\n" + kernel(body, out=PER_ROW)))) == []
    assert list(ROW_PER_WARP.moves(subject_from("#define ME 3\n" + kernel(body, out=PER_ROW)))) != []
