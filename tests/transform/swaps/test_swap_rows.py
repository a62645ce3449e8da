"""Rows change places instead of being copied; where somebody could tell they are copied."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.transform.swaps.action import SwapRows

ACTION = SwapRows()
HEAD = """// /// fsr
// entry = "k"
// [sizes]
// b = {min = 1, max = 64, timed = 16}
// n = {min = 1, max = 60, timed = 50}
// m = {min = 0, max = 40, timed = 30}
// w = {min = 1, max = 9, timed = 4}
// [args]
// x = {role = "in", dtype = "int32", shape = ["b", 64]}
// z = {role = "in", dtype = "int32", shape = ["b", 64]}
// len = {role = "in", dtype = "int32", shape = ["b"], low = 1, high = "n"}
// y = {role = "out", dtype = "int32", shape = ["b", 64]}
// n = {value = "n"}
// m = {value = "m"}
// w = {value = "w"}
// [launch]
// grid = "b"
// block = 64
// shared_bytes = "2 * (n + 2) * 4"
// [tolerance]
// exact = true
// ///
"""
SIGNATURE = """__global__ void k(const int *x, const int *z, const int *len, int *y, int n, int m, int w) {
int t = threadIdx.x;
y[blockIdx.x * 64 + t] = 0;
"""
SIZES = tuple(
    {"b": b, "n": n, "m": m, "w": w} for b, n, m, w in ((2, 1, 0, 1), (3, 2, 1, 1), (5, 60, 7, 3), (2, 33, 40, 9))
)
ROWS = "__shared__ int prev[64], cur[64];"
COPY = "__syncthreads(); for (int j = t; j <= n; j += 64) prev[j] = cur[j]; __syncthreads();"
STEP = "for (int j = 1 + t; j <= n; j += 64) cur[j] = max(prev[j], prev[j - 1] + x[j] * z[i]);"
EDIT = (
    ROWS + " for (int j = t; j <= n; j += 64) prev[j] = j; __syncthreads(); for (int i = 0; i < m; i++) {"
    " if (t == 0) cur[0] = i; " + STEP + COPY + " } if (t <= n) y[blockIdx.x * 64 + t] = prev[t];"
)
FILL = "for (int j = t; j <= n; j += 64) { prev[j] = -9; cur[j] = -9; } __syncthreads();"
BAND = (
    "extern __shared__ int rows[]; int *prev = rows; int *cur = rows + (n + 2); int e = len[blockIdx.x];"
    "for (int j = t; j <= e + 1; j += blockDim.x) { prev[j] = -9; cur[j] = -9; } __syncthreads(); int best = -99;"
    "for (int i = 1; i <= m; i++) { int c = (int)((long long)i * e / n); int lo = max(c - w, 1), hi = c + w;"
    " if (hi > e) hi = e; for (int j = lo - 1 + t; j <= hi; j += blockDim.x) cur[j] = -9; __syncthreads();"
    " for (int j = lo + t; j <= hi; j += blockDim.x) { cur[j] = max(prev[j], prev[j - 1]) + x[j] * z[i]; }"
    " for (int at = lo; at <= hi; at += 64) { int j = at + t; bool in = j <= hi; if (in) best = max(best, cur[j]); }"
    " __syncthreads(); for (int j = t; j <= e + 1; j += blockDim.x) prev[j] = cur[j]; __syncthreads(); }"
    " y[blockIdx.x * 64 + t] = best;"
)
WAVE = (
    "__shared__ int old[64], now[64], next[64]; for (int j = t; j < 64; j += 64)"
    " { old[j] = 0; now[j] = 0; next[j] = 0; } __syncthreads(); for (int i = 0; i < m; i++) {"
    " for (int j = t + 1; j < n - 1; j += 64)"
    " next[j] = now[j - 1] + now[j + 1] - old[j] + x[j]; __syncthreads();"
    " for (int j = t; j < n; j += 64) { old[j] = now[j]; now[j] = next[j]; } __syncthreads(); }"
    " if (t < n) y[blockIdx.x * 64 + t] = now[t] - old[t];"
)
OWN = (
    "int prev[64], cur[64]; for (int j = 0; j <= n; j++) prev[j] = 0; for (int i = 0; i < m; i++) { cur[0] = t;"
    " for (int j = 1; j <= n; j++) { if (x[j] == z[(i + t) % 64]) cur[j] = prev[j - 1] + 1; else cur[j] ="
    " max(prev[j], cur[j - 1]); } for (int j = 0; j <= n; j++) prev[j] = cur[j]; } y[blockIdx.x * 64 + t] = prev[n];"
)
MADE = {
    "rows of a distance": EDIT,
    "one barrier, elements of their own": EDIT.replace("prev[j - 1]", "j").replace(COPY, COPY[17:]),
    "a thread an element": (
        ROWS + " prev[t] = x[t]; __syncthreads(); for (int i = 0; i < m; i++) { cur[t] = prev[t] +"
        " (t > 0 ? prev[t - 1] : z[i]) + (t + 1 < 64 ? prev[t + 1] : 0); __syncthreads(); prev[t] = cur[t];"
        " __syncthreads(); } y[blockIdx.x * 64 + t] = prev[t];"
    ),
    "threads up to an end": (
        ROWS + " if (t < n) prev[t] = x[t]; __syncthreads(); for (int i = 0; i < m; i++) { if (t < n)"
        " cur[t] = prev[t] * 3 + (t > 0 ? prev[t - 1] : z[i]); __syncthreads(); if (t < n) prev[t] = cur[t];"
        " __syncthreads(); } if (t < n) y[blockIdx.x * 64 + t] = prev[t];"
    ),
    "filled alike, an edge that is never written": EDIT.replace("prev[j] = j;", "{ prev[j] = -9; cur[j] = -9; }")
    .replace("if (t == 0) cur[0] = i;", ""),
    "a band that moves": BAND,
    "three rows": WAVE,
    "a thread's own rows": OWN,
    "a number, then another one": OWN.replace("cur[0] = t;", "for (int j = 0; j <= n; j++) cur[j] = t;").replace(
        "else cur[j] =", "else if (z[i] > 2) cur[j] ="
    ),
    "row by row of many": (
        ROWS + " int all = 0; for (int r = 0; r < 3; r++) { " + FILL + " for (int i = 0; i < m; i++) {"
        " if (t == 0) cur[0] = r; " + STEP + COPY
        + " } all += prev[0]; __syncthreads(); } y[blockIdx.x * 64 + t] = all;"
    ),
    "that may end early": EDIT.replace("{ if (t == 0)", "{ if (z[i] == 4) break; if (t == 0)"),
}  # fmt: skip


def kernel(body: str) -> str:
    """The text of a kernel with its contract."""
    return f"{HEAD}{SIGNATURE}{body}\n}}\n"


@pytest.mark.parametrize("name", MADE)
def test_rows_that_change_places_tell_the_same(name: str, subject_from, runner) -> None:
    subject = subject_from(kernel(MADE[name]))
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert "= oldest;" in made.source
    assert made.source.count("prev[j] = cur[j]") + made.source.count("_row[j] = now_row[j]") == 0
    for sizes in SIZES:
        given = {"len": np.arange(sizes["b"]) % sizes["n"] + 1}
        want, got = (runner.outputs(c, subject.contract, sizes, given=given)["y"] for c in (subject.candidate, made))
        np.testing.assert_array_equal(got, want, err_msg=str(sizes))


def test_a_barrier_that_nothing_needs_goes(subject_from) -> None:
    subject = subject_from(kernel(EDIT))
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    assert made.source.count("__syncthreads") == 2


LEFT = {
    "an element is not written in every turn": (EDIT, "if (t == 0) cur[0] = i; ", ""),
    "it is written under a condition": (EDIT, "cur[j] = max(", "if (x[j] > 0) cur[j] = max("),
    "the newest row keeps what it had": (EDIT, "cur[j] = max(", "cur[j] += max("),
    "the newest row is read before": (EDIT, "max(prev[j],", "max(cur[j],"),
    "an older row is written too": (EDIT, "if (t == 0) cur[0] = i;", "if (t == 0) { cur[0] = i; prev[0] = 1; }"),
    "a part is copied": (EDIT, "n; j += 64) prev[j] = cur", "n - 1; j += 64) prev[j] = cur"),
    "a thread that data chooses": (EDIT, "if (t == 0)", "if (t == x[0])"),
    "a thread that may not be there": (EDIT, "if (t == 0)", "if (t == m + 30)"),
    "a thread that is there for some": (EDIT, "if (t == 0)", "if (t < m - 1)"),
    "threads that data chooses": (EDIT, "cur[j] = max(", "if (t > z[i]) cur[j] = max("),
    "lanes of few warps": (
        EDIT, STEP, "if (t > 40) for (int j = 1 + (threadIdx.x & 31); j <= n; j += 32) cur[j] = prev[j - 1];",
    ),
    "a difference that has no sign": (
        MADE["threads up to an end"], "if (t < n) cur", "if (threadIdx.x - 5 < n) cur",
    ),
    "another element is copied": (EDIT, "prev[j] = cur[j]", "prev[j] = cur[n - j]"),
    "the newest row is read behind": (EDIT, "= prev[t];", "= cur[t];"),
    "more is read behind": (EDIT, "if (t <= n) y", "y"),
    "a turn may leave the copy out": (EDIT, "{ if (t == 0)", "{ if (z[i] == 4) continue; if (t == 0)"),
    "a function gets a row": (EDIT, "if (t <= n) y", "const int *row = prev; y[0] = row[0]; if (t <= n) y"),
    "rows of other lengths": (EDIT, "cur[64]", "cur[65]"),
    "nobody waits": (
        EDIT, "__syncthreads(); for (int j = t; j <= n; j += 64) prev[j] = cur[j]; __syncthreads();",
        "for (int j = t; j <= n; j += 64) prev[j] = cur[j];",
    ),
    "threads that left": (EDIT, "__shared__", "if (t > 40) return; __shared__"),
    "other steps than threads": (EDIT, "1 + t; j <= n; j += 64", "1 + t; j <= n; j += 32"),
    "filled in one row alone": (MADE["filled alike, an edge that is never written"], "cur[j] = -9;", ""),
    "filled otherwise": (MADE["filled alike, an edge that is never written"], "cur[j] = -9;", "cur[j] = -8;"),
    "filled, and set again": (
        MADE["filled alike, an edge that is never written"], "__syncthreads(); for (int i",
        "__syncthreads(); if (t == 0) prev[0] = 3; __syncthreads(); for (int i",
    ),
    "filled up to somewhere": (BAND, "j <= e + 1; j += blockDim.x) { prev", "j <= e / 2; j += blockDim.x) { prev"),
    "a band that goes back": (BAND, "(long long)i * e", "(long long)(m - i) * e"),
    "a band that data moves": (BAND, "i * e / n", "z[i] * e / n"),
    "rows that meet": (BAND, "rows + (n + 2)", "rows + n"),
    "a band that is read beyond": (BAND, "lo - 1 + t", "lo + t"),
    "three rows, the edge filled in two": (WAVE, "next[j] = 0; }", "next[j] = j; }"),
    "three rows in the other order": (
        WAVE, "old[j] = now[j]; now[j] = next[j];", "now[j] = next[j]; old[j] = now[j];",
    ),
    "written on one way of two": (OWN, "else cur[j] = max", "else if (z[i] > 2) cur[j] = max"),
    "read on the way before it is written": (OWN, "max(prev[j], cur[j - 1])", "max(prev[j], cur[j])"),
    "rows that begin as the last ones ended": (MADE["row by row of many"], FILL, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_rows_are_copied_where_somebody_could_tell(name: str, subject_from) -> None:
    body, old, new = LEFT[name]
    assert old in body
    assert list(ACTION.moves(subject_from(kernel(body))))
    assert not list(ACTION.moves(subject_from(kernel(body.replace(old, new)))))
