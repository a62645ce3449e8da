"""Sparse rows of forces between points, a row a thread, as different hands write them: all are shared out to groups,
and what only looks like them is not."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.source.emit import emit_stmts
from fsr.transform.rows.action import ROW_PER_BLOCK, ROW_PER_WARP
from fsr.transform.rows.row_kernel import row_kernel

HEAD = """
// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 512}
// [args]
// at = {role = "in", shape = ["n + 1"], low = -4, high = 4SORTED}
// col = {role = "in", shape = ["n", 9], low = -4, high = 4}
// w = {role = "in", shape = ["n", 9]}
// p = {role = "in", shape = ["n + 8", 2], alignment = 8}
// f = {role = "out", shape = ["n", 2], alignment = 8}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = 8
// ///
#define DIM 2
"""
SCALARS = "__global__ void k(const int *at, const int *col, const float *w, const float *p, float *f, int n) {"
PAIRS = "__global__ void k(const int *at, const int *col, const float *w, const float2 *p, float2 *f, int n) {"
ROW = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; const int o = i * 9 + 4;"
TERM = """
    int j = i + col[o + e] + 4;
    float dx = x - p[2 * j], dy = y - p[2 * j + 1];
    float q = w[o + e] * (dx * dx + dy);
    a += q * dx; b += q * dy;
"""
OWN = "float x = p[2 * i], y = p[2 * i + 1], a = 0.0f, b = 0.0f;"
ENDS = "f[2 * i] = a; f[2 * i + 1] = b; }"
WALK = "for (int e = at[i]; e < at[i + 1]; ++e) {"
AT_HEAD = """
    register int t, i, j, e, end, o; register float x, y, dx, dy, q; float a = 0, b = 0;
    t = threadIdx.x + blockIdx.x * blockDim.x;
    if (t >= n) return;
    i = t; o = i * 9 + 4; x = p[2 * i]; y = p[2 * i + 1]; end = at[t + 1];
    for (e = at[t]; e < end; e++) {
        j = i + col[o + e] + 4;
        dx = x - p[2 * j]; dy = y - p[2 * j + 1];
        q = w[o + e] * (dx * dx + dy);
        a += q * dx; b += q * dy;
    }
"""
IN_MEMORY = """
    float x = p[2 * i], y = p[2 * i + 1];
    f[2 * i] = 0; f[2 * i + 1] = 0;
    for (int e = at[i]; e < at[i + 1]; e++) {
        int j = i + col[o + e] + 4;
        float dx = x - p[2 * j], dy = y - p[2 * j + 1];
        f[2 * i] += w[o + e] * dx; f[2 * i + 1] += w[o + e] * dy;
    }
}
"""
TOGETHER = """
    float2 a = make_float2(0.0f, 0.0f); const float2 z = p[i];
    for (int e = at[i]; e < at[i + 1]; e++) {
        float2 d = p[i + col[o + e] + 4];
        d.x = z.x - d.x; d.y = z.y - d.y;
        float q = w[o + e] * (d.x * d.x + d.y);
        a.x += q * d.x; a.y += q * d.y;
    }
    f[i] = a;
}
"""
SET_TWICE = """
    float2 a; a.x = 0; a.y = 0; const float2 z = p[i];
    for (int e = at[i]; e < at[i + 1]; e++) {
        float2 d; d.x = z.x - p[i + col[o + e] + 4].x; d.y = z.y - p[i + col[o + e] + 4].y;
        d = make_float2(d.y, d.x);
        a.x += w[o + e] * d.y; a.y += w[o + e] * d.x;
    }
    f[i].x = a.x; f[i].y = a.y;
}
"""
ARRAYS = """
    float a[DIM] = {0}, z[DIM] = {p[2 * i], p[2 * i + 1]};
    for (int e = at[i]; e < at[i + 1]; e++) {
        int j = i + col[o + e] + 4; float d[DIM], r = 0;
        for (int c = 0; c < DIM; c++) { d[c] = z[c] - p[2 * j + c]; r += d[c]; }
        for (int c = 0; c < DIM; c++) { float q = w[o + e] * r; a[c] += q * d[c]; }
    }
    for (int c = 0; c < DIM; c++) f[2 * i + c] = a[c];
}
"""
COUNTS = "int e = at[i]; const int end = at[i + 1]; while (e < end) {"
LENGTH = "int s = at[i], many = at[i + 1] - s; for (int k = 0; k < many; k++) { int e = s + k;"
STYLES = {
    "plain": SCALARS + ROW + OWN + WALK + TERM + "}" + ENDS,
    "declared at the head": SCALARS + AT_HEAD + ENDS,
    "while": SCALARS + ROW + OWN + COUNTS + TERM + "e++; }" + ENDS,
    "no first part": SCALARS + ROW + OWN + "int e; e = at[i]; for (; e < at[i + 1]; ++e) {" + TERM + "}" + ENDS,
    "length": SCALARS + ROW + OWN + LENGTH + TERM + "}" + ENDS,
    "pairs": PAIRS + ROW + TOGETHER,
    "pairs set twice": PAIRS + ROW + SET_TWICE,
    "arrays": SCALARS + ROW + ARRAYS,
    "in memory": SCALARS + ROW + IN_MEMORY,
}  # fmt: skip


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_the_row_is_shared_however_it_is_written(text: str, subject_from, apply_move, runner) -> None:
    subject = subject_from(HEAD.replace("SORTED", "") + text)
    for action in (ROW_PER_WARP, ROW_PER_BLOCK):
        changed = apply_move(action, subject, "[threads=128,cache=none,width=1]")
        assert "_sum(" in changed.source
        runner.check(subject, changed, {"n": 70}, {"n": 1})
    assert max(m.gain for m in ROW_PER_WARP.moves(subject)) > 5


OTHERS = {
    "goes on from turn to turn": ("declared at the head", "dx = x - p[2 * j]", "dx = dx + x - p[2 * j]"),
    "seen before it is set": ("declared at the head", "j = i +", "if (j > 3) b += 1.0f; j = i +"),
    "counts by data": ("while", "e++", "e += 1 + col[o + e]"),
    "skips its own step": ("while", "int j =", "if (e == 2) continue; int j ="),
    "seen as a whole": ("pairs", "a.x += q * d.x;", "a.x += q * d.x + seen(&a);"),
    "one sum seen by another": ("pairs", "a.y += q * d.y;", "a.y += q * a.x;"),
    "an element that data tells": ("arrays", "a[c] += q", "a[j & 1] += q"),
    "elements that may be one": ("in memory", "f[2 * i + 1] +=", "f[2 * i + (n & 1)] +="),
    "read in between": ("in memory", "float dx = x", "float dx = f[2 * i] + x"),
    "set by what may not happen": ("in memory", "f[2 * i + 1] = 0;", "if (n > 3) f[2 * i + 1] = 0;"),
}


@pytest.mark.parametrize(("style", "old", "new"), OTHERS.values(), ids=OTHERS)
def test_rows_that_depend_on_their_order_stay(style: str, old: str, new: str, subject_from) -> None:
    assert old in STYLES[style]
    helper = "__device__ float seen(float2 *a) { return a->x; }\n"
    subject = subject_from(HEAD.replace("SORTED", "") + helper + STYLES[style].replace(old, new))
    assert list(ROW_PER_WARP.moves(subject)) == []


def test_a_row_goes_on_to_its_end_where_it_is_sorted(subject_from) -> None:
    text = STYLES["plain"].replace("e < at", "e != at")
    assert not list(ROW_PER_WARP.moves(subject_from(HEAD.replace("SORTED", "") + text)))
    sorted_rows = HEAD.replace("SORTED", ", sorted = true")
    assert list(ROW_PER_WARP.moves(subject_from(sorted_rows + text)))
    assert not list(ROW_PER_WARP.moves(subject_from(sorted_rows + text.replace("!= at[i + 1]", "!= at[n - i]"))))


def test_counters_are_read_after_the_loop_only_where_they_stay(subject_from) -> None:
    text = STYLES["while"].replace(ENDS, ENDS.replace("= a;", "= a + e;"))
    subject = subject_from(HEAD.replace("SORTED", "") + text)
    assert row_kernel(subject, next(iter(subject.kernels.values()))) is None


def test_what_is_made_of_a_row_reads_well(subject_from) -> None:
    subject = subject_from(HEAD.replace("SORTED", "") + STYLES["arrays"])
    found = row_kernel(subject, next(iter(subject.kernels.values())))
    assert found is not None
    text = emit_stmts(found.target.kernel.body)
    assert "a_1 += q * d_1" in text
    assert "float d_0 = z_0 - p[2 * j + 0]" in text


@pytest.mark.parametrize("lanes", [4, 8])
def test_a_few_lanes_share_a_row_whatever_other_lanes_do(lanes: int, subject_from, apply_move, runner) -> None:
    text = STYLES["plain"].replace("if (i >= n) return;", "if (i >= n || w[i * 9] > 2.0f) return;")
    subject = subject_from(HEAD.replace("SORTED", "") + text)
    changed = apply_move(ROW_PER_WARP, subject, f"[threads=128,lanes={lanes},cache=none,width=1]")
    assert changed.plan.launches[0].grid[0] == f"ceil_div((ceil_div(n, 64)) * 64, {128 // lanes})"
    runner.check(subject, changed, {"n": 70}, {"n": 1}, {"n": 33})
    assert runner.faults(changed, subject.contract, {"n": 70}) == []


def test_few_lanes_do_not_meet_at_barriers(subject_from) -> None:
    text = STYLES["plain"].replace(ENDS, "f[2 * i] = a; b += f[2 * i]; f[2 * i + 1] = b; }")
    text = text.replace(TERM, TERM + "if (j < 0) f[2 * i + e] = 1.0f;")
    assert not [m for m in ROW_PER_WARP.moves(subject_from(HEAD.replace("SORTED", "") + text)) if "lanes" in m.name]


def test_a_shared_row_says_no_more_than_it_must(subject_from, apply_move) -> None:
    subject = subject_from(HEAD.replace("SORTED", "") + STYLES["declared at the head"])
    text = " ".join(apply_move(ROW_PER_WARP, subject, "[threads=128,cache=none,width=1]").source.split())
    assert "_before" not in text  # the sums begin with zero
    assert "if (lane == 0) { f[2 * i] = a; f[2 * i + 1] = b; }" in text


def test_rows_of_a_file_s_own_names_for_types(subject_from, runner):
    text = """
// /// fsr
// entry = "pull"
// [sizes]
// m = {min = 1, max = 4096, timed = 64}
// nnz = {min = 1, max = 65536, timed = 1024}
// [args]
// starts = {dtype = "uint64", role = "in", shape = ["m + 1"], offsets = "nnz"}
// columns = {dtype = "int32", role = "in", shape = ["nnz"], low = 0, high = "m - 1"}
// given = {role = "in", shape = ["m"]}
// sums = {role = "out", shape = ["m"]}
// m = {value = "m"}
// [launch]
// grid = "ceil_div(m, 64)"
// block = 64
// [tolerance]
// sum_length = "nnz"
// ///
typedef float Score;
typedef int Place;
using Vertex = int;
__global__ void pull(const unsigned long long *starts, const Vertex *columns, Score *given, Score *sums, int m)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) {
        Place begin = starts[row], end = starts[row + 1];
        Score total = 0;
        for (Place k = begin; k < end; ++k) {
            Place from = __ldg(columns + k);
            total += __ldg(given + from);
        }
        sums[row] = total;
    }
}
"""
    subject, sizes = subject_from(text), {"m": 5, "nnz": 200}
    data = {"starts": np.array([0, 0, 3, 90, 130, 200]), "columns": np.arange(200) % 5}
    want = runner.outputs(subject.candidate, subject.contract, sizes, given=data)
    moves = list(ROW_PER_WARP.moves(subject))
    assert moves
    for move in moves:
        got = runner.outputs(ROW_PER_WARP.apply(subject, move), subject.contract, sizes, given=data)
        np.testing.assert_array_equal(got["sums"], want["sums"])
