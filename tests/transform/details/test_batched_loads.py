"""batch-loads: turns find what they would have read, end where they did, and nothing is read ahead that a turn may
write, or that not every turn reads."""

from __future__ import annotations

import pytest

from fsr.transform.details.batched_loads import BatchLoads

SIZES = [{"n": n, "m": m} for n, m in [(1, 1), (70, 3), (64, 8), (5, 41), (130, 17)]]


def kernel(body: str, *, scratch: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 4096, timed = 1024}}
// m = {{min = 1, max = 512, timed = 256}}
// [args]
// x = {{role = "in", shape = ["m + 16", "n"], dtype = "int32", low = -4, high = 4}}
// at = {{role = "in", shape = ["m"], dtype = "int32", low = 0, high = "m - 1"}}
// y = {{role = "inout", shape = ["n", 4], dtype = "int32"}}
// n = {{value = "n"}}
// m = {{value = "m"}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
{scratch}
__global__ void k(const int *x, const int *at, int *y, int n, int m)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
{body}
}}
"""


LOOPS = {
    "ends": "int c = 0; for (int k = 0; k < m; k++) { if (x[k * n + i] > 1) { if "
    "(c < 3) { y[4 * i + c] = k; c++; } else break; } }",
    "returns": "for (int k = 0; k < m; ++k) { int v = x[k * n + i]; if (v == 2) { y[4 "
    "* i] = k + v; return; } } y[4 * i] = -1;",
    "stores": "for (int k = i % 3; k < m; k += 2) { int v = x[k * n + i]; y[4 * i + (v & 3)] += k; }",
    "adds": "for (int k = 0; k < m; k++) { atomicAdd(&y[4 * i + (k & 3)], x[k * n + i]); }",
    "by a list": "for (int k = 0; k < m; k++) { int j = at[k] & 15; if (j == 5 && k > "
    "9) break; y[4 * i + 1] += x[j * n + i] * j; }",
    "a list at once": "for (int k = 0; k < m; k++) { y[4 * i + 2] += x[(at[k] & 7) * n + i] + at[k]; }",
    "step by n": "for (int k = 0; k < m * n; k += n) { int v = x[k + i]; if (v < -3) break; y[4 * i] += v; }",
    "asks for more": "int c = 0; for (int k = 0; c < 3 && k < m; k++) { if (x[k * n + i] > 1) "
    "{ y[4 * i + c] = k; c++; } }",
    "counts in a while": "int k = 1; while (k < m && y[4 * i] != 3) { y[4 * i] += x[k * n + i]; k++; }",
    "names that hide others": "for (int k = 0; k < m; k++) { int j = at[k] & 7; if (x[j * n + i] > 3) break; "
    "{ int j = 5; y[4 * i] += x[j * n + i]; } for (int k = 0; k < 2; k++) y[4 * i + 1] += x[k * n + i]; }",
    "leaves first": "for (int k = 0; k < m; k++) { if (k > i) break; int v = x[k * n + i]; y[4 * i + (v & 1)]++; }",
    "within another": "for (int r = 0; r < 2; r++) for (int k = 0; k < m; k++) { if (x[k * n "
    "+ i] == 4 - r) break; y[4 * i + r] += x[k * n + i]; }",
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_turns_do_what_they_did(name: str, subject_from, runner) -> None:
    subject, action = subject_from(kernel(LOOPS[name])), BatchLoads()
    moves = list(action.moves(subject))
    assert {m.param("factor") for m in moves} >= {4, 8}
    changed = action.apply(subject, moves[0])
    assert "_read" in changed.source
    runner.check(subject, changed, *SIZES)


STAY = {
    "nothing keeps loads behind": "int s = 0; for (int k = 0; k < m; k++) s += x[k * n + i]; y[4 * i] = s;",
    "written": "for (int k = 0; k < m; k++) { if (y[4 * i + (k & 3)] > 3) break; y[4 * i] += k; }",
    "not in every turn": "for (int k = 0; k < m; k++) { if (k > i) { if (x[k * n + i] > 1) break; y[4 * i] += 1; } }",
    "behind another": "for (int k = 0; k < m; k++) { if (i > k && x[k * n + i] > 1) break; y[4 * i] += 1; }",
    "by what a turn hands on": "int c = 0; for (int k = 0; k < m; k++) { c += x[c * n + i] & 1; y[4 * "
    "i] += c; c %= m; }",
    "a bound that moves": "int e = m; for (int k = 0; k < e; k++) { if (x[k * n + i] > 1) e--; y[4 * i] += 1; }",
    "few turns": "for (int k = 0; k < 4 && k < m; k++) { if (x[i] > 1) break; y[4 * i] += k; }",
    "others may write": "const volatile int *f = x; for (int k = 0; k < m; k++) { if (f[k * n + i]) break; y[i] = k; }",
    "barriers": "for (int k = 0; k < m; k++) { __syncwarp(); if (x[k * n + i] > 9) break; y[4 * i] += 1; }",
}  # fmt: skip


@pytest.mark.parametrize("name", STAY)
def test_no_move_where_loads_may_not_be_ahead(name: str, subject_from) -> None:
    assert list(BatchLoads().moves(subject_from(kernel(STAY[name])))) == []


def test_no_move_where_memory_may_be_anothers(subject_from) -> None:
    text = kernel(LOOPS["stores"])
    assert list(BatchLoads().moves(subject_from(text)))
    shared = text.replace("// [sizes]", '// aliasing = [["x", "y"]]\n// [sizes]')
    assert list(BatchLoads().moves(subject_from(shared))) == []
