"""Elements that loops write over and over are kept in variables; what others may see meanwhile is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.transform.details.register_promotion import RegisterPromotion
from tests.transform.conftest import subject_of

ACTION = RegisterPromotion()
HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 512, timed = 128}
// m = {min = 0, max = 64, timed = 32}
// [args]
// x = {role = "in", shape = ["n * m + 65"]}
// p = {role = "in", dtype = "uint32", shape = ["n * m + 65"], high = 4}
// y = {role = "inout", shape = ["n"]}
// v = {role = "inout", shape = ["n", 4]}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
"""
SIGNATURE = "__global__ void k(const float *x, const unsigned *p, float *y, float4 *v, int n, int m)"
ROW = "int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= n) return;\n"
TREE = """
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) sum[t] += sum[t + half];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = sum[0];
"""
SIZES = ({"n": 1, "m": 0}, {"n": 70, "m": 5}, {"n": 128, "m": 33})
CSR = ROW + "y[row] = 0; for (int j = p[row]; j < m; j++) y[row] += x[j] * x[p[j]];"
INSIDE = (
    """int t = threadIdx.x, row = blockIdx.x * 64 + t;
  __shared__ float sum[64];
  {set}
  for (int i = t; i < m * n; i += blockDim.x) { sum[t] += x[i]; }"""
    + TREE
)


def kernel(body: str, before: str = "") -> str:
    """The text of a kernel with its contract."""
    return f"{HEAD}{before}{SIGNATURE} {{\n{body}\n}}\n"


KEPT = {
    "a row's product, set before": (CSR, "float y_value = 0;"),
    "a row's product, added": (CSR.replace("y[row] = 0; ", ""), "if ((int)p[row] < m) {\n"),
    "by a pointer": (ROW + "float *o = y + row; for (int j = 0; j < m; j++) *o += x[row * m + j];", "o_value += x["),
    "an array moved on first": (
        "y += blockIdx.x * 64; int t = threadIdx.x; if (blockIdx.x * 64 + t < n) for (unsigned j = p[t]; j < m; j++)"
        " { if (x[j] < 0) y[t] += 1; y[t] = y[t] + x[j]; }", "if ((unsigned)p[t] < m) {"),
    "the largest": (ROW + "for (int j = 0; j < m; j++) y[row] = fmaxf(y[row], x[row * m + j]);", "y_value = fmaxf("),
    "a walk that ends early": (
        ROW + "y[row] = 1; for (int j = 0; j < m; j++) { if (x[j] > 3) break; y[row] *= x[j]; }", "y_value *= x[j]"),
    "the step not counted": (
        ROW + "int j = p[row]; while (j < m) { y[row] += x[j]; j += 1 + p[j]; }", "if (j < m) {\n"),
    "halves": (ROW + "for (int j = m; j > 0; j >>= 1) { y[row] -= x[j]; }", "y_value -= x[j]"),
    "members": (
        ROW + "for (int j = 0; j < m; j++) { v[row].x += x[j]; v[row].z -= v[row].x; }", "float v_z = v[row].z;"),
    "whole vectors": (
        ROW + "for (int j = 0; j < m; j++) v[row] = sum(v[row], x[j]);", "v_value = sum(v_value, x[j])"),
    "the variable lives on": (
        ROW + "int j; for (j = p[row]; j < m; j++) y[row] += x[j]; v[row].x = j;", "j = p[row];\n    if (j < m) {"),
    "two loops, set before both": (
        ROW + "y[row] = 2; for (int i = 0; i < m; i++) for (int j = i; j < m; j++) y[row] += x[i] * x[j];",
        "y_value += x[i] * x[j]"),
    "the first turn sets it": (
        ROW + "for (int i = 0; i < m; i++) { v[row].x = 0; for (int j = 0; j < m; j++) v[row].x += x[j] * x[i]; "
        "y[row] += v[row].x; }", "float v_x;"),
    "shared": (INSIDE.replace("{set}", "sum[t] = 0; __syncthreads();"), "sum_value += x[i]"),
    "shared, just set": (INSIDE.replace("{set}", "sum[t] = 0;"), "float sum_value = 0;"),
    "atomics elsewhere": (
        ROW + "for (int j = 0; j < m; j++) { y[row] += x[j]; atomicAdd(&v[row].x, 1.0f); }", "y_value += x[j]"),
    "under a function of the file": (ROW + "for (int j = 0; j < m; j++) y[row] += twice(x[j]);", "twice(x[j])"),
}  # fmt: skip
LEFT = {
    "the index is the loop's": ROW + "for (int j = 0; j < 1; j++) y[row + j] += x[j];",
    "the index changes": ROW + "for (int j = 0; j < m; j++) { y[row] += x[j]; row = row + 0; }",
    "the index is read where it may change": ROW + "for (int j = 0; j < m; j++) y[(int)v[row].x * 0 + row] += x[j];",
    "the pointer moves": ROW + "float *o = y + row; for (int j = 0; j < m; j++) { *o += x[j]; o += 0; }",
    "another element": ROW + "for (int j = 0; j < m; j++) y[row] += y[0];",
    "another pointer": ROW + "const float *o = y; for (int j = 0; j < m; j++) y[row] += o[0];",
    "a pointer from somewhere": ROW + "float *o = m > 3 ? y : table; for (int j = 0; j < m; j++) o[row] += table[j];",
    "barrier": ROW + "for (int j = 0; j < m; j++) { y[row] += x[j]; __syncthreads(); }",
    "fence": ROW + "for (int j = 0; j < m; j++) { y[row] += x[j]; __threadfence(); }",
    "leaves": ROW + "for (int j = 0; j < m; j++) { y[row] += x[j]; if (x[j] > 3) return; }",
    "atomics": ROW + "for (int j = 0; j < m; j++) { y[row] += x[j]; atomicAdd(&y[row], 1.0f); }",
    "a lock": ROW + "for (int j = 0; j < m; j++) { while (atomicCAS((int *)&v[0].x, 0, 1)) {} y[row] += x[j]; }",
    "written sometimes": ROW + "for (int j = 0; j < m; j++) if (x[j] > 2) y[row] += x[j];",
    "written in an inner loop that may not run": ROW + "for (int i = 0; i < m; i++) { for (int j = i; j < 9; j += 2) "
    "if (j > 3) y[row] += x[j]; }",
    "set too long ago": ROW + "y[row] = 0; if (m > 3) y[0] = 1; for (int j = 0; j < m; j++) if (x[j] > 2) y[row] += 1;",
    "written where a turn may have ended": ROW + "for (int j = 0; j < m; j++) { if (x[j] > 2) continue; y[row] += 1; }",
    "volatile": ROW + "volatile float *o = y; for (int j = 0; j < m; j++) o[row] += x[j];",
    "everybody's shared element": INSIDE.replace("{set}", "sum[t] = 0;").replace("sum[t] += x[i]", "sum[5] += x[i]"),
    "given to a function": ROW + "for (int j = 0; j < m; j++) { y[row] += x[j]; add(y); }",
    "verbatim": ROW + "for (int j = 0; j < m; j++) { y[row] += x[j]; here: y[row] -= 1; }",
    "a macro's": ROW + "for (int j = 0; j < m; j++) { y[row] += HIDDEN; }",
    "evaluated once": ROW + "int j = 0; while (m > 3 && j++ < m) y[row] += x[j];",
}  # fmt: skip
BEFORE = """__device__ float table[512];
#define HIDDEN y[0]
__device__ float twice(float a) { return 2 * a; }
__device__ float4 sum(float4 a, float b) { return make_float4(a.x + b, a.y - b, a.z, a.w + 2 * b); }
__device__ void add(float *a) { a[0] += 1; }
"""
WITHOUT_MACRO = BEFORE.replace("#define HIDDEN y[0]\n", "")


@pytest.mark.parametrize(("body", "shown"), KEPT.values(), ids=KEPT)
def test_an_element_that_stays_is_kept(runner, body, shown):
    subject = subject_of(kernel(body, WITHOUT_MACRO))
    moves = [m.name for m in ACTION.moves(subject)]
    assert moves == ["register-promotion@kernel"]
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert shown in made.source
    runner.check(subject, made, *SIZES)
    assert runner.faults(made, subject.contract, SIZES[1]) == []


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_what_others_may_see_or_is_not_sure_stays(body):
    macro = BEFORE if "HIDDEN" in body else WITHOUT_MACRO
    assert [m.name for m in ACTION.moves(subject_of(kernel(body, macro)))] == []


def test_buffers_that_may_overlap_are_left():
    subject = subject_of(kernel(CSR))
    assert list(ACTION.moves(subject))
    assert list(ACTION.moves(replace(subject, contract=replace(subject.contract, aliasing=(("p", "v"),)))))
    assert not list(ACTION.moves(replace(subject, contract=replace(subject.contract, aliasing=(("x", "y"),)))))


def test_nothing_is_read_where_the_loop_does_not_run(runner):
    """Threads beyond the rows have no element: their loops end before the first turn."""
    body = (
        "int row = blockIdx.x * 64 + threadIdx.x, end = row < n ? m : 0; for (int j = 0; j < end; j++) y[row] += x[j];"
    )
    subject = subject_of(kernel(body))
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert "if (0 < end) {" in made.source
    runner.check(subject, made, *SIZES)
    assert runner.faults(made, subject.contract, {"n": 70, "m": 5}) == []


@pytest.mark.parametrize("type_", ["__half", "double", "unsigned char", "long long", "T"])
def test_elements_of_any_number(runner, type_):
    dtype = {"__half": "float16", "unsigned char": "uint8", "long long": "int64"}.get(type_, "float64")
    text = kernel(CSR.replace("x[j] * x[p[j]]", "(TYPE)p[j]")).replace("float *y", "TYPE *y").replace("TYPE", type_)
    text = text.replace('// y = {role = "inout"', f'// y = {{role = "inout", dtype = "{dtype}"')
    text = text.replace("__global__", "#include <cuda_fp16.h>\n__global__" if type_ == "__half" else "__global__")
    if type_ == "T":
        text = text.replace("__global__", "template <typename T> __global__").replace('"k"', '"k<double>"')
    subject = subject_of(text)
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert f"{type_} y_value = 0;" in made.source
    runner.check(subject, made, *SIZES[1:])
