"""share-loop where the loop stands in a function that returns what it found, and kernels that begin with a macro."""

from __future__ import annotations

import pytest

from fsr.source.macros import statement_macros
from fsr.transform.lanes.action import LANES, ShareLoop
from tests.transform.test_share_loop import GUARD, agree, kernel, names

SUM = """
template <class T>
__device__ T sum_of(const T *x, const int *is, int IS, int i, int DI) {
  T a = T();
  for (; i < IS; i += DI) a += x[is[i]];
  return a;
}
"""
SET = GUARD + "    y[i] = 0.5f + sum_of(x, idx + ptr[i], ptr[i + 1] - ptr[i], 0, 1);"
CASES = {
    "deduced": kernel(SET, SUM),
    "told": kernel(SET.replace("sum_of(", "sum_of<float>("), SUM),
    "declared": kernel(
        GUARD + "    const float s = row(x + i * m, m);\n    y[i] = s * 2.0f;",
        "static __device__ __forceinline__ float row(const float *r, int n)\n"
        "{ float s = 0.0f; int c = 0; while (c < n) { s += r[c] * r[c]; c++; } return s + 1.0f; }",
    ),
    "of another type": kernel(
        GUARD + "    long long many = m + 256; w[i] = row(x + i * m, many);",
        "__device__ int row(const float *r, unsigned char count)\n"
        "{ float s = 0.0f; const int last = count; for (int c = 0; c < last; ++c) s += r[c]; return s; }",
    ).replace("max = 4096, timed = 128", "max = 200, timed = 128"),
    "of names that the kernel has": kernel(
        GUARD + "    float s = 3.0f; int c = 7;\n    z[i * m] = s + row(x, i, m) + c;\n    y[i] = s + c;",
        "__device__ inline float row(const float *x, int c, int n)\n"
        "{ float s = 0.0f; for (int i = 0; i < n; ++i) s += x[c * n + i]; return s; }",
    ).replace("m = {min = 0", "m = {min = 1"),
    "behind a macro of a macro": kernel(
        "    BEGIN(t, b);\n    int i = b * 64 + t;\n    if (i >= n) return;\n"
        + "    y[i] = sum_of(x, idx + ptr[i], ptr[i + 1] - ptr[i], 0, 1);",
        "#define BEGIN_CUDA(t, b) \\\n  const int t = threadIdx.x; \\\n  const int b = blockIdx.x;\n"
        "#define BEGIN(t, b) \\\n  BEGIN_CUDA(t, b)\n" + SUM,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_lanes_share_what_a_function_goes_through(name, subject_from, runner):
    subject = subject_from(CASES[name])
    moves = list(ShareLoop().moves(subject))
    assert {m.param("lanes") for m in moves} == set(LANES)
    few = [m for m in moves if m.param("lanes") in (4, 32)]
    sizes = [{"n": 1, "m": 1}, {"n": 3, "m": 5}, {"n": 33, "m": 4}, {"n": 70, "m": 37}]
    agree(runner, subject, few, sizes)


def test_neighbours_read_promise_as_much_as_without_the_function(subject_from):
    plain = (
        GUARD
        + "    float s = 0.0f;\n    for (int e = ptr[i]; e < ptr[i + 1]; ++e) s += x[idx[e]];\n    y[i] = 0.5f + s;"
    )
    one, other = (max(m.gain for m in ShareLoop().moves(subject_from(text))) for text in (kernel(plain), CASES["told"]))
    assert one == pytest.approx(other)


ROW = (
    "__device__ float row(const float *r, int n) { float s = 0.0f; for (int c = 0; c < n; ++c) s += r[c]; return s; }\n"
)


@pytest.mark.parametrize(
    ("function", "use"),
    [
        (ROW, "y[i] = m > 8 ? row(x + i * m, m) : 1.0f;"),  # not called in any case
        (ROW, "w[i] = i > 3 && row(x + i * m, m) > 0.0f;"),
        (ROW + ROW.replace("int n", "long n"), "y[i] = row(x + i * m, m);"),  # which is meant?
        (ROW.replace("s += r[c];", "{ s += r[c]; if (s > 9.0f) return s; }"), "y[i] = row(x + i * m, m);"),
        (ROW.replace("const float *r", "float *r").replace("s += r[c];", "{ s += r[c]; r[c] = s; }"),
         "y[i] = row(z + i * m, m);"),
        ("__constant__ float scale = 2.0f;\n" + ROW.replace("+= r[c]", "+= scale * r[c]"),
         "float scale = 3.0f; y[i] = scale * row(x + i * m, m);"),  # another one here
        (ROW.replace("int n", "int &n").replace("return s", "n = 1; return s"), "int e = m;"
         "y[i] = row(x + i * m, e) + e;"),
        (ROW.replace("s += r[c]", "s = s * s + r[c]"), "y[i] = row(x + i * m, m);"),  # a recurrence
        (ROW, "y[i] = row(x + i * m, m) + atomicAdd(&w[0], 1);"),
        (ROW, "y[i] = i++ + row(x + i * m, m);"),
    ],
)  # fmt: skip
def test_no_move_where_the_function_does_more_or_is_not_surely_called(function, use, subject_from):
    assert list(names(subject_from(kernel(GUARD + "    y[i] = row(x + i * m, m);", ROW)))) != []
    assert list(names(subject_from(kernel(GUARD + "    " + use, function)))) == []


def test_a_macro_that_stands_for_statements_by_another_is_one():
    text = (
        "#define INNER(a) int a = 1;\n#define OUTER(a) INNER(a)\n#define VALUE(a) ((a) + 1)\n#define MORE(a) VALUE(a)\n"
    )
    assert set(statement_macros(text)) == {"INNER", "OUTER"}


def test_a_macro_that_stands_for_statements_by_name_is_one():
    text = "#define SWEEP for (int k = 0; k < n; ++k) { s += k; }\n#define ALL SWEEP;\n#define SIZE 64\n"
    assert set(statement_macros(text)) == {"SWEEP", "ALL"}
