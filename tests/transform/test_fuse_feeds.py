"""fuse-launches by reads: what a launch computes for one other is computed where that reads it, by whichever threads;
none where it would be another value, or more work than it saves."""

from __future__ import annotations

import pytest

from fsr.transform.fuse.action import FuseLaunches

HEAD = """// /// fsr
// entry = "weigh"
// [sizes]
// w = {min = 1, max = 128, timed = 128}
// h = {min = 1, max = 4096, timed = 4096}
// [args]
// a = {role = "inout", dtype = "float32", shape = ["w"]}
// b = {role = "in", dtype = "float32", shape = ["h * w"]}
// out = {role = "out", dtype = "float32", shape = ["h"]}
// most = {role = "inout", dtype = "float32", shape = ["h"]}
// [scratch.t]
// dtype = "float32"
// count = "h * w"
// [[launch]]
// entry = "weigh"
// grid = "ceil_div(w * h, 256)"
// block = 256
// args = ["a", "b", "t", "w", "w * h"]
// [[launch]]
// entry = "total"
// grid = "ceil_div(h, 64)"
// block = 64
// args = ["t", "out", "most", "w", "h"]
// ///
"""
# Products, then their sums by rows; a parameter that both have, and one of another meaning by the same name.
ROWS = (
    HEAD
    + """
__device__ __forceinline__ float twice(float v) { return 2.0f * v; }
__global__ void weigh(const float *a, const float *__restrict__ b, float *t, int w, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = i % w;
    t[i] = twice(a[x]) * b[i];
}
__global__ void total(const float *t, float *out, float *most, int w, int n)
{
    int a = blockIdx.x * blockDim.x + threadIdx.x;
    if (a >= n) return;
    float sum = 0.0f;
    for (int j = 0; j < w; j++) sum += t[a * w + j];
    out[a] = sum;
    most[a] += *(t + a * w);
}
"""
)
# A loop over a small grid, elements that are left at 0, more than one that is written; read from the end.
SOME = (
    ROWS.replace('count = "h * w"', 'count = "h * w"\n// zeroed = true')
    .replace('grid = "ceil_div(w * h, 256)"', 'grid = "8"')
    .replace("    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n    int x = i % w;\n"
             "    t[i] = twice(a[x]) * b[i];",
             "    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {\n"
             "        if (b[i] < 0) continue;\n        if (b[i] > 3) { t[i] = a[0]; continue; }\n"
             "        t[i] = b[i];\n        t[i] += a[i / n];\n    }")
    .replace("t[a * w + j]", "t[n * w - 1 - a * w - j]")
)  # fmt: skip
EVERY = {"rows": ROWS, "some": SOME}
SIZES = [{"w": w, "h": h} for w, h in ((1, 1), (3, 70), (128, 5), (33, 300))]


def offered(subject) -> list[str]:
    return [m.name for m in FuseLaunches().moves(subject)]


NAME = "fuse-launches@plan[launches=0+1,by=reads]"


@pytest.mark.parametrize("name", EVERY)
def test_each_element_is_computed_where_it_is_read(name: str, subject_from, runner) -> None:
    subject, action = subject_from(EVERY[name]), FuseLaunches()
    assert offered(subject) == [NAME]
    made = action.apply(subject, next(iter(action.moves(subject))))
    assert [one.entry for one in made.plan.launches] == ["total_fused"]
    assert made.plan.scratch == ()
    assert "weigh(" not in made.source
    runner.check(subject, made, *SIZES)
    assert runner.faults(made, subject.contract, SIZES[1]) == []


def test_what_both_are_passed_is_passed_once(subject_from) -> None:
    subject, action = subject_from(ROWS), FuseLaunches()
    made = action.apply(subject, next(iter(action.moves(subject))))
    assert "sum += weigh_element(a2, b, w, n2, a * w + j);" in made.source
    assert "float weigh_element(const float *a, const float *__restrict__ b, int w, int n, int i)" in made.source
    assert "if (i >= n) return t;" in made.source


BETWEEN = """// [[launch]]
// entry = "mark"
// grid = 1
// block = 32
// args = ["PASSED"]
"""
MARK = "__global__ void mark(float *p) { __shared__ float s[32]; s[threadIdx.x] = 1; __syncthreads(); p[0] = s[0]; }\n"
TOTAL = '// [[launch]]\n// entry = "total"'


def test_a_launch_between_may_not_change_what_is_read(subject_from, runner) -> None:
    def between(buffer: str) -> str:
        return ROWS.replace(TOTAL, BETWEEN.replace("PASSED", buffer) + TOTAL) + MARK

    subject, action = subject_from(between("most")), FuseLaunches()
    (move,) = action.moves(subject)
    made = action.apply(subject, move)
    assert [one.entry for one in made.plan.launches] == ["mark", "total_fused"]
    runner.check(subject, made, *SIZES)
    assert offered(subject_from(between("a"))) == []
    assert offered(subject_from(between("t"))) == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("rows", "t[i] = twice", "t[n - 1 - i] = twice"),
        ("rows", "t[i] = twice", "t[i / 2] = twice"),
        ("rows", "t[i] = twice(a[x]) * b[i]", "atomicAdd(&t[i], b[i])"),
        ("rows", "t[i] = twice(a[x]) * b[i]", "t[i] = b[i] + t[i ? i - 1 : 0]"),
        ("rows", "t[i] = twice(a[x]) * b[i];", "t[i] = b[i]; a[x] = 1;"),  # writes more
        ("rows", 'args = ["t", "out", "most"', 'args = ["t", "out", "a"'),  # what it is made of changes
        ("rows", 'args = ["t", "out", "most"', 'args = ["t", "out", "t"'),
        ("rows", "most[a] += *(t + a * w);", "most[a] += __ldg(&t[a]);"),
        ("rows", "most[a] += *(t + a * w);", "const float *own = t + a; most[a] += *own;"),
        ("rows", "most[a] += *(t + a * w);", "t += w; most[a] += *t;"),
        ("rows", "most[a] += *(t + a * w);", "for (int j = 0; j < 4 * w; j++) most[a] += t[j];"),  # read too often
        ("rows", "most[a] += *(t + a * w);", "for (int j = 0; j < most[a]; j++) out[a] += t[j];"),
        ("rows", "sum += t[a * w + j];", "sum += t[a * w + j]; __syncthreads();"),
        ("some", "t[i] += a[i / n];", "t[i] += a[i / n]; t[n - 1] = 1;"),
    ],
)
def test_elements_are_made_ahead_where_they_would_be_others(name: str, old: str, new: str, subject_from) -> None:
    text = EVERY[name]
    assert old in text
    assert offered(subject_from(text.replace(old, new))) == []
