"""select-chains: arrays that a thread indexes at run time become registers; what cannot be seen through stays."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from fsr.analysis.local_arrays import in_local_memory
from fsr.guard.check import guard
from fsr.source.parse import parse_device_functions, parse_kernels
from fsr.transform.selects.action import SelectChains

ACTION = SelectChains()
SIZES = [{"n": n} for n in (1, 33, 200)]


def kernel(work: str, more: str = "", m: int = 7) -> str:
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
// m = {{value = {m}}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
{more}
__global__ void k(const unsigned char *type, const float *value, float *out, int n, int m)
{{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    {work}
}}
"""


HISTOGRAM = """int counts[9] = {0};
    for (int j = 0; j < m; j++) counts[type[at + j]] += 1 + j;
    int best = 0;
    for (int t = 1; t < 9; t++) if (counts[t] > counts[best]) best = t;
    out[at] = best * 100 + counts[best];"""
OFFERED = {
    "a histogram": (HISTOGRAM, ""),
    "loops to an argument": ("""double near[8]; int who[8];
    for (int i = 0; i < m; ++i) { near[i] = 1e30; who[i] = -1; }
    for (int j = 0; j < 16; j++) {
      double far = value[at + j];
      int last = 0;
      for (int i = 1; i < m; ++i) { if (near[i] > near[last]) last = i; }
      if (far >= near[last]) continue;
      near[last] = far;
      who[last] = j;
    }
    float sum = 0.f;
    for (int i = 0; i <= m - 1; ++i) { if (who[i] < 0) continue; sum += near[i] * (who[i] + 1); }
    out[at] = sum;""", ""),
    "loops down from an argument": ("""int near[8]; float sum = 0.f;
    for (int i = m / 2 - 1; i >= 0; --i) { near[2 * i] = type[at + i]; near[2 * i + 1] = i; }
    for (int i = 0; i < 2 * (m / 2); i++) sum += value[at + near[i]] * (i + 1);
    out[at] = sum;""", ""),
    "loops in one another": ("""float w[16];
    for (int i = 0; i < m; i++) w[i] = value[at + i];
    for (int i = 0; i <= m / 2; i++) {
      int least = i;
      for (int j = i + 1; j < m; j++) if (w[j] < w[least]) least = j;
      float kept = w[i]; w[i] = w[least]; w[least] = kept;
    }
    out[at] = w[m / 2];""", ""),
    "a list that is kept in order": ("""float near[8]; int who[8]; int k = m > 2 ? m - 1 : m;
    for (int i = 0; i < k; ++i) { near[i] = 1e30f; who[i] = -1; }
    for (int j = 0; j < 16; j++) {
      float d = value[at + j];
      for (int i = 0; i < k; ++i) {
        if (near[i] > d) {
          for (int l = k - 1; l > i; --l) { near[l] = near[l - 1]; who[l] = who[l - 1]; }
          near[i] = d;
          who[i] = j;
          break;
        }
      }
    }
    float sum = 0.f;
    for (int i = 0; i < k; ++i) sum = 3.f * sum + near[i] + who[i];
    out[at] = sum;""", ""),
    "a small stack": ("""short stack[16];
    int top = 0, sum = 0;
    stack[top++] = 1;
    while (top > 0) {
      int node = stack[--top];
      sum += node * type[at + node];
      if (2 * node + 1 < 16 && value[at + node] >= 0.f) { stack[top++] = 2 * node; stack[top++] = 2 * node + 1; }
    }
    out[at] = sum;""", ""),
    "tests and heads of loops": ("""float w[5]; int c = 0; float u = value[at] + 9.f;
    for (int i = 0; i < 5; i++) w[i] = 1.f + type[at + i];
    while (c < m && c < 4 && u >= w[c]) { u -= w[c]; ++c; }
    for (int i = type[at]; i > 0 && w[i - 1] > w[i]; i--) c += 10;
    out[at] = (type[at + 1] > 2 ? w[type[at + 1]] : u) + c;""", ""),
    "walks along an array": ("""float w[8]; float sum = 3.f, v = value[at];
    for (int i = 0; i < m; i++) { w[i] = type[at + i] - 1.f; sum += w[i]; }
    int c = 0;
    while (c < m - 1 && sum >= w[c]) { sum -= w[c]; ++c; }
    float best[4];
    for (int i = 0; i < 4; i++) best[i] = 1e9f;
    for (int i = 0; i < m; i++) {
      if (value[at + i] >= best[3]) continue;
      int j = 3;
      for (; j > 0 && best[j - 1] > value[at + i]; j--) best[j] = best[j - 1];
      best[j] = value[at + i];
    }
    unsigned d = type[at + 1] + 3u;
    while (d > 0) { v = 2.f * v - w[d - 1]; d--; }
    out[at] = c + 10 * sum + best[0] + 10 * best[3] + v + 100.f * d;""", ""),
    "two dimensions": ("""int pairs[5][3] = {};
    for (int j = 0; j < m; j++) pairs[type[at + j]][j % 3]++;
    for (int j = 0; j < m && j < 5; j++) for (int d = 0; d < 3; d++) pairs[j][d] -= j * d;
    out[at] = pairs[type[at]][0] + 10 * pairs[2][1] + 100 * pairs[4][2];""", ""),
    "assignments of all kinds": ("""int a[5] = {1, 2, 3, 4, 5}; unsigned char b[5] = {250, 251, 252, 253, 254};
    float f[5] = {0.5f};
    bool set[5] = {};
    for (int j = 0; j < m; j++) {
      int t = type[at + j];
      a[t] = a[(t + 1) % 5] - 1; b[t] += 3; b[t] -= j; b[t] *= 2; a[t] |= 8; a[t] ^= 3; a[t] &= 1023; a[t] <<= 1;
      a[t] >>= 1; a[t] /= 2; a[t] %= 37;
      f[t] += 2 * value[at + j]; f[t] /= 2.f; f[t] -= j; f[t] *= 0.5f; set[t] |= true;
      b[t]++; --a[t]; a[t] += 0.75f; a[0] += 16777217;
    }
    out[at] = a[1] + 10 * a[type[at]] + b[type[at + 1]] * 100.f
      + f[type[at + 2]] + (set[type[at + 1]] ? 1e4f : 0.f);""",
        ""),
    "an array that is passed on": ("""float a[6]; int best;
    fill(a, value + at, 6);
    float least = pick(a, best, m);
    out[at] = least + best;""",
        """#define FAR 1e9f
__device__ void fill(float a[6], const float *from, int count) { for (int i = 0; i < 6; i++) a[i] = from[i]; }
__device__ float pick(const float *a, int &best, int m) {
    best = 0;
    float least = FAR;
    for (int i = 0; i < 6; i++) { if (a[i] < least) { least = a[i]; best = i; } }
    return a[best] * m;
}"""),
    "a function's own": ("out[at] = most(type + at, m);",
        """__device__ __forceinline__ int most(const unsigned char *t, int m) {
    int c[8] = {0};  // of each kind
    for (int j = 0; j < m; j++) c[t[j]]++;
    return c[t[0]] * 10 + c[2];
}"""),
    "elements that functions get": ("""float a[5] = {3.f, 1.f, 2.f, 5.f, 4.f};
    for (int i = 0; i < 4; i++) order(a[i], a[i + 1]);
    out[at] = twice(a[type[at]]);
    atomicAdd(&out[at], twice(a[type[at]]) - fmaxf(a[type[at + 1]], 2.f));""",
        """__device__ float twice(const float &a) { return 2.f * a; }
__device__ void order(float &a, float &b) { if (a > b) { float c = a; a = b; b = c; } }"""),
    "rows of a system of equations": ("""float A[5][6], h[5];
    for (int r = 0; r < 5; r++) {
      float *row = A[r];
      for (int k = 0; k < 6; k++) row[k] = value[at + (r * 3 + k * k) % 13] + (r == k ? 4.f : 0.f);
      row[type[at] % 6] += 1.f;
    }
    if (solve(A, h)) { out[at] = h[0] + h[4]; } else { out[at] = -1.f; }""",
        """__device__ bool solve(float A[5][6], float h[5]) {
    for (int c = 0; c < 5; ++c) {
        int p = c;
        for (int r = c + 1; r < 5; ++r) if (fabsf(A[r][c]) > fabsf(A[p][c])) p = r;
        if (fabsf(A[p][c]) < 1e-3f) return false;
        for (int k = 0; k < 6; ++k) { const float t = A[c][k]; A[c][k] = A[p][k]; A[p][k] = t; }
        for (int r = c + 1; r < 5; ++r) {
            const float f = A[r][c] / A[c][c];
            for (int k = c; k < 6; ++k) A[r][k] = __fsub_rn(A[r][k], __fmul_rn(f, A[c][k]));
        }
    }
    for (int r = 4; r >= 0; --r) {
        float s = A[r][5];
        for (int k = r + 1; k < 5; ++k) s = __fsub_rn(s, __fmul_rn(A[r][k], h[k]));
        h[r] = s / A[r][r];
    }
    return true;
}"""),
    "more elements than are in a line": ("""int c[8][9] = {};
    for (int j = 0; j < 8; j++) c[j][type[at + j] % 9] += 1 + j;
    for (int k = 0; k < 9; k++) c[type[at] % 8][k] *= 2;
    int s = 0;
    for (int j = 0; j < 8; j++) for (int k = 0; k < 9; k++) s += c[j][k] * (j + k);
    out[at] = s;""", ""),
    "of another type": ("""real a[COUNT / 2];
    for (int i = 0; i < COUNT / 2; i++) a[i] = value[at + i]; out[at] = a[type[at] % 4];""",
        "typedef float real;\n#define COUNT 8"),
}  # fmt: skip
OTHERS = {
    "constant indices": ("float a[4]; a[0] = value[at]; a[3] = a[0] * 2.f; out[at] = a[3];", ""),
    "too many": ("int c[40] = {0}; for (int j = 0; j < m; j++) c[type[at + j]]++; out[at] = c[3];", ""),
    "one that is passed on to what stays": (
        "int c[5] = {0}; for (int j = 0; j < m; j++) c[type[at + j]]++; out[at] = of(c, 3);",
        "__device__ int of(const int *t, int i) { return t[i] == 2 || i == 0 ? t[i] : of(t, i - 1); }",
    ),
    "one whose address is taken": (
        "int c[5] = {0}; c[type[at]] = 2; int *p = &c[type[at + 1]]; out[at] = p[0];", "",
    ),
    "one that is read as another type": (
        "int c[5] = {0}; c[type[at]] = 2; out[at] = reinterpret_cast<float *>(c)[type[at + 1]];", "",
    ),
    "a reference to an element": ("int c[5] = {0}; int &e = c[type[at]]; e = 2; out[at] = c[type[at + 1]];", ""),
    "an element that a function changes": (
        "int c[5] = {0}; more(c[type[at]]); out[at] = c[type[at + 1]];", "__device__ void more(int &e) { e += 2; }",
    ),
    "an element that a macro changes": (
        "int c[5] = {0}; MORE(c[type[at]]); out[at] = c[type[at + 1]];", "#define MORE(e) e += 2",
    ),
    "an element that a macro names": (
        "int c[5] = {0}; C(type[at]) = 2; out[at] = c[type[at + 1]];", "#define C(i) c[i]",
    ),
    "an element that a macro names in a function": ("out[at] = most(type + at, m);", """#define PAIR(i) c[i][1]
__device__ int most(const unsigned char *t, int m) { int c[5][2] = {}; c[t[0]][1] = m; return PAIR(t[1]); }"""),
    "one that hides in text": (
        "int c[5] = {0}; again: c[type[at]] += 2; if (c[type[at]] < m) goto again; out[at] = c[type[at + 1]];", "",
    ),
    "an assignment within an expression": (
        "int c[5] = {0}; out[at] = (c[type[at]] = 3) + c[type[at + 1]];", "",
    ),
    "volatile": ("volatile int c[5] = {0}; c[type[at]] = 2; out[at] = c[type[at + 1]];", ""),
    "records": ("Pair c[5]; c[type[at]].a = 1; out[at] = c[type[at]].a;", "struct Pair { int a, b; };"),
    "a value in braces": ("int c[5] = {0}; c[type[at]] = {3}; out[at] = c[type[at + 1]];", ""),
    "an index that the value changes": (
        "int c[5] = {0}; int i = type[at] / 2; c[i] = next(i); out[at] = c[type[at + 1]];",
        "__device__ int next(int &i) { return ++i; }",
    ),
    "a place in both dimensions of a large array": (
        "int c[8][9] = {}; c[type[at] % 8][type[at + 1] % 9] = 2; out[at] = c[2][3];", "",
    ),
    "a pointer to rows that change": (
        """int c[4][3] = {}; int r = 0; int *row = c[r]; r = 2; row[type[at] % 3] = 1; row = c[r];
        row[1] = 2; out[at] = c[0][2];""", "",
    ),
    "an array that is too long for the program": (
        """float w[32], s = 0.f;
        for (int i = 0; i < 32; i++) w[i] = value[at + i % 8];
        for (int i = 0; i < 32; i++) for (int j = 0; j < 32; j++) s += w[j] - w[i] * w[type[at + i]];
        out[at] = s;""", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("work", "more"), OFFERED.values(), ids=OFFERED)
def test_no_array_is_indexed_at_run_time(work: str, more: str, subject_from, runner) -> None:
    subject = subject_from(kernel(work, more))
    (move,) = ACTION.moves(subject)
    assert move.name == "select-chains@plan[most=16]"
    changed = ACTION.apply(subject, move)
    assert changed.actions == (move.name,)
    for form in (parse_kernels(changed.source)["k"], *parse_device_functions(changed.source).values()):
        assert in_local_memory(form) == ()
    assert guard(changed, subject.candidate) is None
    runner.check(subject, changed, *SIZES)
    assert runner.faults(changed, subject.contract, {"n": 65}) == []
    assert not list(ACTION.moves(replace(subject, candidate=changed, kernels=parse_kernels(changed.source))))


@pytest.mark.parametrize(("work", "more"), OTHERS.values(), ids=OTHERS)
def test_others_stay_where_they_are(work: str, more: str, subject_from) -> None:
    assert not list(ACTION.moves(subject_from(kernel(work, more))))


def test_larger_arrays_are_a_move_of_their_own(subject_from, runner) -> None:
    both = "float far[20] = {1.f}; far[type[at]] = 2.f;" + HISTOGRAM + " out[at] += far[type[at + 1]];"
    subject = subject_from(kernel(both))
    small, large = ACTION.moves(subject)
    assert [small.param("most"), large.param("most")] == [16, 32]
    assert "far[type[at]]" in ACTION.apply(subject, small).source
    changed = ACTION.apply(subject, large)
    assert "far[type[at]]" not in changed.source
    runner.check(subject, changed, *SIZES)


LOOPS = {
    "turns below zero": "for (int i = m - 6; i > (unsigned)m; --i) { c[i + 3] = 3; if (i < -2) break; }",
    "an access under a condition": "for (int i = 0; i < m; i++) if (value[at + i] > 0.f) c[i] = 3;",
    "an access behind a continue": "for (int i = 0; i < m; i++) { if (value[at + i] > 0.f) continue; c[i] = 3; }",
    "an access that && leaves out": "for (int i = 0; i < m; i++) { if (i < 5 && c[i] == 0) out[at] += 1.f; }",
    "a bound that the loop changes": "int e = m; for (int i = 0; i < e; i++) { c[i] = 3; e--; }",
    "a bound in memory": "for (int i = 0; i < type[at]; i++) c[i] = 3;",
    "a variable that the loop moves": "for (int i = 0; i < m; i++) { c[i] = 3; i++; }",
    "a start below zero, a bound without sign": "for (int i = -1; i < (unsigned)m; i++) c[i] = 3;",
    "a step of two": "for (int i = 0; i < m; i += 2) c[i] = 3;",
    "a remainder": "for (int i = 0; i < m; i++) c[i % 5] = 3;",
    "an array that is read elsewhere": "for (int i = 0; i < m; i++) out[at] += c[i > 4 ? 0 : i];",
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_loops_that_may_go_beyond_stay_loops(loop: str, subject_from, runner) -> None:
    """Nothing tells that they end with the array: what they touch are elements that data chooses."""
    work = f"int c[5] = {{0}}; out[at] = 0.f; {loop} out[at] += c[type[at]] + 10 * c[4] + 100 * c[0];"
    subject = subject_from(kernel(work, m=5 if "continue" in loop or "> 0.f" in loop else 4))
    (move,) = ACTION.moves(subject)
    changed = ACTION.apply(subject, move)
    assert not re.search(r"for \(int i = \S+ i < 5", changed.source)
    assert "#pragma unroll\n    for (int i" not in changed.source
    runner.check(subject, changed, *SIZES)


def test_the_element_at_a_place_goes_along_with_it(subject_from) -> None:
    subject = subject_from(kernel(OFFERED["loops to an argument"][0]))
    changed = ACTION.apply(subject, next(iter(ACTION.moves(subject))))
    assert "double last_near = near[0];" in changed.source
    assert re.search(r"last = i;\s+last_near = near\[i\];", changed.source)
    assert "fsr_chosen" not in changed.source.split("__global__")[1]


def test_loops_within_turns_of_others_go_to_the_end_too(subject_from) -> None:
    subject = subject_from(kernel(OFFERED["a list that is kept in order"][0]))
    changed = ACTION.apply(subject, next(iter(ACTION.moves(subject))))
    assert "for (int l = 7; l >= 1; --l) {" in changed.source
    assert "fsr_" not in changed.source


def test_a_walk_is_a_loop_over_all_elements(subject_from) -> None:
    subject = subject_from(kernel(OFFERED["walks along an array"][0]))
    text = ACTION.apply(subject, next(iter(ACTION.moves(subject)))).source
    assert "for (int c_turn = 0; c_turn < 8; ++c_turn) {" in text
    assert "if (c_turn == c && c_turn < m - 1 && sum >= w[c_turn]) {" in text
    assert "for (int j_turn = 3; j_turn >= 1; --j_turn) {" in text
    assert "for (unsigned d_turn = 8; d_turn >= 1; --d_turn) {" in text
    assert "fsr_chosen" not in text


WALKS = {
    "an element that is not touched for certain": "while (c < 8) { if (value[at + c] > 0.f) w[c] = 2.f; ++c; }",
    "an end in the middle": "while (c < 8) { w[c] += 1.f; if (value[at + c] > 99.f) continue; ++c; }",
    "two steps": "while (c < 7) { w[c] += 1.f; if (value[at + c] > 2.f) ++c; ++c; }",
    "a test that counts": "int e = 9; while (--e > 0 && c < 8) { w[c] += e; ++c; }",
    "a step of two": "while (c < 8) { w[c] += 1.f; c += 2; }",
    "a step that another variable takes": "int e = 0; while (c < 8) { w[c] += 1.f; e++; c += e; e = e + 1; }",
    "lanes that exchange what they have": "while (c < 7) { w[c] += __shfl_xor_sync(~0u, w[1], 1); ++c; }",
    "lanes that exchange in a function": "while (c < 7) { w[c] += other(w[1]); ++c; }",
    "a place that changes by reference": "while (c < 7) { w[c] += 1.f; more(c); ++c; }",
}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_other_walks_stay(walk: str, subject_from, runner) -> None:
    work = f"float w[8] = {{1.f, 2.f}}; int c = type[at]; {walk} out[at] = c + w[0] + 10 * w[5] + 100 * w[7];"
    more = "__device__ void more(int &c) { c = c > 5 ? c : c + 1; }"
    more += "\n__device__ float other(float x) { return __shfl_xor_sync(~0u, x, 1); }"
    subject = subject_from(kernel(work, more))
    changed = ACTION.apply(subject, next(iter(ACTION.moves(subject))))
    assert "_turn" not in changed.source
    if "__shfl" not in walk and "other" not in walk:  # to which lanes come at different times
        runner.check(subject, changed, *SIZES)


def test_no_element_goes_along_before_there_is_one(subject_from, runner) -> None:
    work = """int last = 0; float near[8];
    for (int i = 0; i < 8; ++i) near[i] = value[at + i];
    for (int i = 1; i < 8; ++i) { if (near[i] > near[last]) last = i; }
    out[at] = near[last];"""
    subject = subject_from(kernel(work))
    changed = ACTION.apply(subject, next(iter(ACTION.moves(subject))))
    assert "last_near" not in changed.source
    runner.check(subject, changed, *SIZES)


@pytest.mark.parametrize("between", ["near[type[at]] = 2.f;", "last += type[at];", "last = type[at];"])
def test_what_is_written_between_is_read_anew(between: str, subject_from, runner) -> None:
    work = f"""float near[8];
    for (int i = 0; i < 8; ++i) near[i] = value[at + i];
    int last = 0;
    for (int i = 1; i < 8; ++i) {{
      if (near[i] > near[last]) last = i;
      if (value[at + i] == 1.f) {{ {between} last %= 8; }}
    }}
    out[at] = near[last];"""
    subject = subject_from(kernel(work))
    changed = ACTION.apply(subject, next(iter(ACTION.moves(subject))))
    assert "last_near" not in changed.source
    runner.check(subject, changed, *SIZES)


def test_of_templates_each_instance_is_its_own(subject_from) -> None:
    """A function's array whose length is a template's argument may differ from call to call."""
    more = """template <int N> __device__ int most(const unsigned char *t, int m) {
    int c[N] = {0};
    for (int j = 0; j < m; j++) c[t[j]]++;
    return c[t[0]];
}"""
    both = "out[at] = most<5>(type + at, m) + most<8>(type + at, m);"
    assert not list(ACTION.moves(subject_from(kernel(both, more))))
