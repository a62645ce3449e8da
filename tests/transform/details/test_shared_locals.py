"""shared-locals: arrays that a thread indexes at run time go to shared memory; those in registers, and others, stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.guard.check import guard
from fsr.source.parse import parse_kernels
from fsr.transform.details.shared_locals import SharedLocals

ACTION = SharedLocals()
SIZES = [{"n": n} for n in (1, 33, 200)]


def kernel(work: str, more: str = "", shape: str = "64") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 100000, timed = 4096}}
// [args]
// type = {{role = "in", shape = ["n + 16"]}}
// value = {{role = "in", shape = ["n + 16"]}}
// out = {{role = "out", shape = ["n"]}}
// n = {{value = "n"}}
// m = {{value = 9}}
// [launch]
// grid = "ceil_div(n, {shape})"
// block = {shape}
// ///
{more}
__global__ void k(const unsigned char *type, const float *value, float *out, int n, int m)
{{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    {work}
}}
"""


HISTOGRAM = """int counts[31] = {0};
    for (int j = 0; j < m; j++) counts[type[at + j]] += 1 + j;
    int best = 0;
    for (int t = 1; t < 31; t++) if (counts[t] > counts[best]) best = t;
    out[at] = best * 100 + counts[best];"""
STACK = """short stack[16];
    int top = 0, sum = 0;
    stack[top++] = 1;
    while (top > 0) {
      int node = stack[--top];
      sum += node * type[at + node];
      if (2 * node + 1 < 16 && value[at + node] >= 0.f) { stack[top++] = 2 * node; stack[top++] = 2 * node + 1; }
    }
    out[at] = sum;"""
BEST = """float best[4] = {9.f, 8.f};
    int where[4];
    for (int i = 2; i < 4; i++) best[i] = 1e9f;
    for (int i = 0; i < 4; i++) where[i] = -1;
    for (int i = 0; i < m; i++) {
      if (value[at + i] >= best[3]) continue;
      int j = 3;
      for (; j > 0 && best[j - 1] > value[at + i]; j--) { best[j] = best[j - 1]; where[j] = where[j - 1]; }
      best[j] = value[at + i];
      where[j] = i;
    }
    out[at] = best[0] + 10 * best[3] + 100 * where[0] + 1000 * where[2];"""
MEDIAN = """float window[K];
    for (int i = 0; i < m; i++) window[i] = value[at + i];
    for (int i = 0; i <= m / 2; i++) {
      int least = i;
      for (int j = i + 1; j < m; j++) if (window[j] < window[least]) least = j;
      float kept = window[i]; window[i] = window[least]; window[least] = kept;
    }
    out[at] = window[m / 2];"""
OFFERED = {
    "a histogram": (HISTOGRAM, ""),
    "a small stack": (STACK, ""),
    "the best few": (BEST, ""),
    "a median": (MEDIAN, "#define K (8 + 1)"),
    "two dimensions": ("""int pairs[5][3] = {};
    for (int j = 0; j < m; j++) pairs[type[at + j]][j % 3]++;
    out[at] = pairs[type[at]][0] + 10 * pairs[2][1] + 100 * pairs[4][2];""", ""),
    "bytes and flags": ("""unsigned char seen[8] = {1, 2, 3}; bool set[5] = {};
    for (int j = 0; j < m; j++) { seen[type[at + j]] += 3; set[type[at + j]] = true; }
    out[at] = seen[0] + seen[2] * 7 + seen[7] + (set[3] ? 1000 : 0);""", ""),
    "an inner scope": ("""float sum = 0.f;
    for (int round = 0; round < 3; round++) {
      float parts[5] = {0.f};
      for (int j = 0; j < m; j++) parts[type[at + j]] += value[at + j] * round;
      sum += parts[0] - 2.f * parts[type[at]];
    }
    out[at] = sum;""", ""),
    "vectors": ("""float2 mean[5];
    for (int j = 0; j < 5; j++) mean[j] = make_float2(0.f, 0.f);
    for (int j = 0; j < m; j++) { mean[type[at + j]].x += value[at + j]; mean[type[at + j]].y += 1.f; }
    out[at] = mean[type[at]].x + 10.f * mean[type[at]].y;""", ""),
    "elements by reference": ("""float a[9];
    for (int i = 0; i < m; i++) a[i] = value[at + i];
    for (int i = 0; i < m; i++) for (int j = 0; j + 1 < m - i; j++) order(a[j], a[j + 1]);
    out[at] = a[m / 2];""", "__device__ void order(float &a, float &b) { if (a > b) { float c = a; a = b; b = c; } }"),
    "beside what is shared": ("""__shared__ float tile[64];
    tile[threadIdx.x] = value[at];
    int counts[31] = {0}; const int thread_in_block = 3;
    for (int j = 0; j < m; j++) counts[type[at + j]] += thread_in_block;
    out[at] = counts[type[at]] + tile[threadIdx.x];""", ""),
}  # fmt: skip
OTHERS = {
    "constant indices": ("float a[4]; a[0] = value[at]; a[3] = a[0] * 2.f; out[at] = a[3];", ""),
    "loops that are unrolled": (
        """float a[9], s = 0.f; int c = 0;
        for (int i = -1; i <= 1; i++) for (int j = 0; j < 3; j++) a[c++] = value[at + 1 + i];
        for (int i = 8; i > 0; i--) if (a[i] < a[i - 1]) { float t = a[i]; a[i] = a[i - 1]; a[i - 1] = t; }
        for (int i = 0; i < 9; i++) { if (a[i] > 3.f) break; s += a[i]; }
        out[at] = s;""", "",
    ),
    "one that is passed on": (
        "int c[5] = {0}; for (int j = 0; j < m; j++) c[type[at + j]]++; out[at] = of(c, 3);",
        "__device__ int of(const int *t, int i) { return t[i]; }",
    ),
    "one whose address is taken": (
        "int c[5] = {0}; c[type[at]] = 2; int *p = &c[type[at + 1]]; out[at] = p[0];", "",
    ),
    "elements of which a function takes the address": (
        "int c[5] = {0}; c[type[at]] = 2; out[at] = of(c[type[at + 1]]);",
        "__device__ int of(int &e) { int *p = &e; return *p; }",
    ),
    "one that hides in text": (
        "int c[5] = {0}; again: c[type[at]] += 2; if (c[type[at]] < m) goto again; out[at] = c[type[at + 1]];", "",
    ),
    "two of one name": (
        """float s = 0.f;
        if (m > 3) { float c[5] = {0.f}; c[type[at]] = 1.f; s += c[type[at + 1]]; }
        else { float c[7] = {0.f}; c[type[at]] = 2.f; s += c[type[at + 2]]; }
        out[at] = s;""", "",
    ),
    "records": ("Pair c[5]; c[type[at]].a = 1; out[at] = c[type[at]].a;", "struct Pair { int a, b; };"),
    "constants": ("const int c[5] = {1, 2, 3, 4, 5}; out[at] = c[type[at]];", ""),
    "beside a function that shares": (
        "int c[5] = {0}; c[type[at]] = 2; out[at] = c[type[at + 1]] + of(m);",
        "__device__ int of(int i) { __shared__ int all[8]; all[threadIdx.x & 7] = i; return i; }",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("work", "more"), OFFERED.values(), ids=OFFERED)
def test_elements_of_a_block_lie_side_by_side(work: str, more: str, subject_from, runner) -> None:
    subject = subject_from(kernel(work, more))
    (move,) = ACTION.moves(subject)
    assert move.params == ()
    changed = ACTION.apply(subject, move)
    assert "* 64 + thread_in_block" in changed.source
    assert guard(changed, subject.candidate) is None
    runner.check(subject, changed, *SIZES)
    assert runner.faults(changed, subject.contract, {"n": 65}) == []
    assert not list(ACTION.moves(replace(subject, candidate=changed, kernels=parse_kernels(changed.source))))


@pytest.mark.parametrize(("work", "more"), OTHERS.values(), ids=OTHERS)
def test_others_stay_where_they_are(work: str, more: str, subject_from) -> None:
    assert not list(ACTION.moves(subject_from(kernel(work, more))))


def test_blocks_of_several_dimensions_count_all_their_threads(subject_from, runner) -> None:
    text = kernel(HISTOGRAM).replace("block = 64", "block = [8, 4, 2]")
    place = "blockIdx.x * 64 + (threadIdx.z * 4 + threadIdx.y) * 8 + threadIdx.x"
    subject = subject_from(text.replace("blockIdx.x * blockDim.x + threadIdx.x", place))
    (move,) = ACTION.moves(subject)
    changed = ACTION.apply(subject, move)
    assert "threadIdx.x + (threadIdx.y + threadIdx.z * 4) * 8" in changed.source
    runner.check(subject, changed, *SIZES)


def test_large_arrays_go_with_smaller_blocks(subject_from, runner) -> None:
    large = HISTOGRAM.replace("[31]", "[90]")
    subject = subject_from(kernel(large, shape="256"))
    moves = list(ACTION.moves(subject))
    assert [m.name for m in moves] == ["shared-locals@kernel[threads=128]", "shared-locals@kernel[threads=64]"]
    for move in moves:
        changed = ACTION.apply(subject, move)
        assert changed.actions == (move.name,)
        assert changed.plan.launches[0].block[0] == str(move.param("threads"))
        runner.check(subject, changed, *SIZES)
    assert not list(ACTION.moves(replace(subject, keep_launch=True)))
    assert not list(ACTION.moves(subject_from(kernel(HISTOGRAM.replace("[31]", "[4000]"), shape="256"))))


def test_blocks_that_data_numbers_are_cut(subject_from, runner) -> None:
    """A block a row, a thread a column, whatever the row's length."""
    text = kernel(HISTOGRAM.replace("[31]", "[90]"))
    text = text.replace('"ceil_div(n, 64)"', '"rows"').replace("block = 64", 'block = "n"').replace('["n', '["rows * n')
    text = text.replace(
        "n = {min = 1, max = 100000", "rows = {min = 1, max = 64, timed = 4}\n// n = {min = 1, max = 512"
    )
    text = text.replace("timed = 4096", "timed = 512").replace("if (at >= n) return;", "").replace("blockDim.x", "n")
    subject = subject_from(text)
    moves = list(ACTION.moves(subject))
    assert [m.params for m in moves] == [(("threads", 128),), (("threads", 64),)]
    changed = ACTION.apply(subject, moves[0])
    runner.check(subject, changed, {"rows": 1, "n": 1}, {"rows": 3, "n": 200})


def test_what_fits_beside_the_rest_is_moved(subject_from, runner) -> None:
    both = HISTOGRAM.replace("int counts", "float far[190]; far[type[at]] = 1.f;\n    int counts")
    subject = subject_from(kernel(both.replace("out[at] = ", "out[at] = far[type[at]] + ")))
    (move,) = ACTION.moves(subject)
    changed = ACTION.apply(subject, move)
    assert "far_shared" in changed.source
    assert "counts_shared" not in changed.source
    runner.check(subject, changed, *SIZES)
