"""Faults that ordinary values hide: memory that was never set and that a maximum passes over, what is read past an end
only where the last line is full, terms that overflow though their sum does not, what nearly equal inputs alone show.
Each wrong candidate has a right one beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.evaluation.compiling import build
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.watching import watch
from fsr.runs.kernel import load_kernel

TOPS = (
    """[sizes]
n = {min = 1, max = 100000, timed = 4096}
[args]
x = {role = "in", dtype = "TYPE", shape = ["n"]}
y = {role = "out", dtype = "TYPE", shape = ["n"]}
[[launch]]
entry = "tops"
grid = "ceil_div(n, 64)"
block = 64
args = ["x", "top", "n"]
[[launch]]
entry = "under"
grid = "ceil_div(n, 64)"
block = 64
args = ["x", "top", "y", "n"]
[scratch.top]
dtype = "TYPE"
count = "ceil_div(n, 64)"
""",
    """
__global__ void tops(const TYPE *x, TYPE *top, int n) {
    if (threadIdx.x) return;
    TYPE t = 0;
    for (int i = blockIdx.x * 64; i < min(n, (int)blockIdx.x * 64 + 64); i++) t = GREATER(t, SIZE(x[i]));
    WRITE
}
__global__ void under(const TYPE *x, const TYPE *top, TYPE *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = GREATER(GREATER(top[blockIdx.x], 0), SIZE(x[i]));
}
""",
)
RATIO = (
    """entry = "k"
[sizes]
rows = {min = 1, max = 4096, timed = 256}
m = {min = 80, max = 4096, timed = 128}
[args]
x = {role = "in", shape = ["rows", "m"]}
y = {role = "out", shape = ["rows", "m"]}
[launch]
grid = "rows"
block = 64
""",
    """
__global__ void k(const float *x, float *y, int m) {
    const float *from = x + (size_t)blockIdx.x * m;
    float t = 0.0f;
    for (int j = 0; j < m; j++) t = fmaxf(t, fabsf(from[j]));
    for (int j = threadIdx.x; j < m; j += blockDim.x) y[(size_t)blockIdx.x * m + j] = t == 0.0f ? 0.0f : WRITE;
}
""",
)
NARROW = (
    """entry = "k"
[sizes]
n = {min = 1, max = 100000, timed = 4096}
[args]
x = {role = "in", shape = ["n"]}
s = {role = "in", shape = ["n"]}
y = {role = "out", shape = ["n"]}
[launch]
grid = "ceil_div(n, 64)"
block = 64
""",
    """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__global__ void k(const __half *x, const __nv_bfloat16 *s, __half *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __float2half(WRITE);
}
""",
)
SAME = (
    """entry = "k"
[sizes]
rows = {min = 1, max = 4096, timed = 256}
m = {min = 1, max = 64, timed = 16}
[args]
a = {role = "in", shape = ["rows", "m"]}
b = {role = "in", shape = ["rows", "m"]}
y = {role = "out", shape = ["rows"]}
[launch]
grid = "ceil_div(rows, 64)"
block = 64
""",
    """
__global__ void k(const short *a, const short *b, int *y, int rows, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    int same = 1;
    for (int j = 0; j < m; j++) WRITE
    y[r] = same;
}
""",
)
LENGTHS = (
    """entry = "k"
[sizes]
rows = {min = 1, max = 4096, timed = 256}
m = {min = 900, max = 4000, timed = 1000}
[args]
x = {role = "in", shape = ["rows", "m"]}
len = {role = "in", shape = ["rows"], low = 0, high = "m"}
y = {role = "out", shape = ["rows"]}
[launch]
grid = "ceil_div(rows, 64)"
block = 64
[tolerance]
sum_length = "m"
""",
    """
__global__ void k(const float *x, const int *len, float *y, int rows, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float t = 0.0f;
    WRITE
    y[r] = t;
}
""",
)
NAMES = {"": ("", ""), "float": ("fmaxf", "fabsf"), "int": ("max", "abs")}
SUMMED = "for (int j = 0; j < len[r]; j++) t += x[r * m + j];"
AHEAD = "float v = x[r * m]; for (int j = 0; j < len[r]; j++) { t += v; v = x[r * m + j + 1]; }"
EACH = "same &= a[r * m + j] == b[r * m + j];"

ADDED = "__half2float(x[i]) + __bfloat162float(s[i])"
NARROWED = "__half2float(x[i]) + __half2float(__float2half(__bfloat162float(s[i])))"

HIDDEN = {
    "no top where all are zero": (TOPS, "float", "top[blockIdx.x] = t;", "if (t > 0) top[blockIdx.x] = t;", False),
    "no whole top either": (TOPS, "int", "top[blockIdx.x] = t;", "if (t > 0) top[blockIdx.x] = t;", False),
    "a top that is told": (
        TOPS, "float", "top[blockIdx.x] = t;", "if (t > 0) top[blockIdx.x] = t; else top[blockIdx.x] = 0;", True),
    "a reciprocal that overflows": (RATIO, "", "from[j] / t", "from[j] * (1.0f / t)", False),
    "a quotient in float64": (RATIO, "", "from[j] / t", "(float)((double)from[j] / t)", True),
    "a term made narrow": (NARROW, "", ADDED, NARROWED, False),
    "a sum in float64": (NARROW, "", ADDED, "(float)((double)" + ADDED + ")", True),
    "the first half of a line": (SAME, "", EACH, "if (2 * j <= m) " + EACH, False),
    "all but a bit": (SAME, "", EACH, "same &= ((a[r * m + j] ^ b[r * m + j]) & ~0x400) == 0;", False),
    "until one differs": (SAME, "", EACH, "if (a[r * m + j] != b[r * m + j]) { same = 0; break; }", True),
    "one element ahead": (LENGTHS, "", SUMMED, AHEAD, False),
    "length read once": (
        LENGTHS, "", SUMMED, "int l = len[r]; for (int j = 0; j < l; j++) t += x[r * m + j];", True),
}  # fmt: skip


def passes(kind: tuple[str, str], type_: str, original: str, body: str, folder: Path) -> bool:
    contract, text = kind
    text = text.replace("TYPE", type_).replace("GREATER", NAMES[type_][0]).replace("SIZE", NAMES[type_][1])
    contract = contract.replace("TYPE", f"{type_}32")
    head = "".join(f"// {line}\n" for line in contract.splitlines())
    (folder / "k.cu").write_text(f"// /// fsr\n{head}// ///\n{text.replace('WRITE', original)}")
    kernel = load_kernel(folder / "k.cu", None)
    candidate = replace(kernel.baseline, source=text.replace("WRITE", body))
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 5, str(folder)))
    try:
        built = build(session.spec, candidate)
        assert isinstance(built, Binaries), built
        cases = [*session.search_cases(), *session.candidate_cases(candidate), *session.held_out_cases()]
        failure = session.first_failure(built.run, candidate, [*cases, *session.corner_cases()])[1]
        return failure is None and watch(session, candidate, session.held_out_cases())[0] is None
    finally:
        session.close()


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_by_values(name: str, tmp_path: Path) -> None:
    kind, type_, original, body, right = HIDDEN[name]
    assert passes(kind, type_, original, body, tmp_path) == right
