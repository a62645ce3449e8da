"""Rows that begin where an array says are one fold each, whoever owns them: a thread, lanes, a warp, a block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.data_rows import has_data_rows
from fsr.contract.row_starts import RowStarts
from fsr.lifting.lift import lift
from fsr.lifting.row_starts import chosen_starts
from fsr.runs.kernel import load_kernel
from tests.lifting.lifted import computed

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 100000, timed = 100000}
// cols = {min = 1, max = 100000, timed = 100000}
// nnz = {min = 0, max = 1000000, timed = 1000000}
// [args]
// p = {role = "in", shape = ["rows + 1"], SAID}
// c = {role = "in", shape = ["nnz"], low = 0, high = "cols - 1"}
// v = {role = "in", shape = ["nnz"]}
// x = {role = "in", shape = ["cols"]}
// y = {role = "out", shape = ["rows"]}
// n = {value = "rows"}
// [launch]
// grid = "GRID"
// block = 64
// [tolerance]
// sum_length = "nnz"
// ///
__global__ void k(const int *p, const int *c, const float *v, const float *x, float *y, int n)
{
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
BODY
}
"""
OFFSETS = 'offsets = "nnz"'
ASCENDING = 'low = 0, high = "nnz", sorted = true'
THREAD = "if (g < n) { float s = 0; for (int e = p[g]; e < p[g + 1]; ++e) s += v[e] * x[c[e]]; y[g] = s; }"
LANES = """
    const int r = g / 8, l = g % 8;
    float s = 0;
    if (r < n) for (int e = p[r] + l; e < p[r + 1]; e += 8) s += v[e] * x[c[e]];
    for (int o = 4; o > 0; o /= 2) s += __shfl_xor_sync(0xffffffff, s, o, 8);
    if (r < n && l == 0) y[r] = s;
"""
WARP = """
    int r = g / 32, l = t & 31;
    if (r >= n) return;
    int e = p[r] + l, end = p[r + 1];
    float s = 0;
    while (e < end) { s = fmaf(v[e], x[c[e]], s); e += 32; }
    for (int o = 16; o > 0; o >>= 1) s += __shfl_down_sync(0xffffffff, s, o);
    if (l == 0) y[r] = s;
"""
BLOCK = """
    __shared__ float part[64];
    for (int r = blockIdx.x; r < n; r += gridDim.x) {
        const int *own = c + p[r];
        const int length = p[r + 1] - p[r];
        float s = 0;
        for (int e = t; e < length; e += 64) s += v[p[r] + e] * x[own[e]];
        part[t] = s;
        for (int m = 32; m > 0; m /= 2) {
            __syncthreads();
            if (t < m) part[t] += part[t + m];
        }
        if (t == 0) y[r] = part[0];
        __syncthreads();
    }
"""
CHUNKS = """
    __shared__ float part[64];
    const int r = blockIdx.x, first = p[r], length = p[r + 1] - first;
    float s = 0;
    for (int at = 0; at < (int)ceilf(length / 64.0f); at++) {
        part[t] = t < length - 64 * at ? v[first + 64 * at + t] * x[c[first + 64 * at + t]] : 0.0f;
        __syncthreads();
        for (int m = 1; m < 64; m *= 2) {
            if (t * m * 2 < 64) part[t * m * 2] += part[t * m * 2 + m];
            __syncthreads();
        }
        s += part[0];
        __syncthreads();
    }
    if (t == 0) y[r] = s;
"""
FORMS = {
    "thread": (THREAD, "ceil_div(rows, 64)"), "lanes": (LANES, "ceil_div(rows, 8)"),
    "warp": (WARP, "ceil_div(rows, 2)"), "block": (BLOCK, "min(rows, 4)"), "chunks": (CHUNKS, "rows"),
}  # fmt: skip
HEAD = "(int64(p[i]) + k0)"
ROW = f"if (int64(p[i + 1]) > {HEAD}) else 0.0) for k0 in range(nnz))"
SUM = f"sum((v[{HEAD[1:-1]}] * x[int64(c[{HEAD[1:-1]}])] {ROW}"


def written(body: str, grid: str, said: str = OFFSETS) -> str:
    return TEXT.replace("SAID", said).replace("GRID", grid).replace("BODY", body)


@pytest.mark.parametrize("said", [OFFSETS, ASCENDING])
@pytest.mark.parametrize("form", FORMS)
def test_a_row_is_one_fold(tmp_path: Path, form: str, said: str) -> None:
    assert computed(tmp_path, written(*FORMS[form], said)) == [f"y[i] = {SUM}"]


def test_the_largest_of_what_is_looked_up(tmp_path: Path) -> None:
    body = "if (g < n) { float s = -INFINITY; for (int e = p[g]; e < p[g + 1]; ++e) s = fmaxf(s, x[c[e]]); y[g] = s; }"
    assert computed(tmp_path, written(body, "ceil_div(rows, 64)")) == [
        f"y[i] = max((x[int64(c[{HEAD[1:-1]}])] {ROW.replace('0.0)', '-inf)')}"
    ]


def test_a_mean_is_another_where_there_is_nothing(tmp_path: Path) -> None:
    body = THREAD.replace("y[g] = s", "int m = p[g + 1] - p[g]; y[g] = m ? s / m : 0.0f")
    length = "int64(p[i + 1]) - int64(p[i])"
    assert computed(tmp_path, written(body, "ceil_div(rows, 64)")) == [
        f"_sum[i] = {SUM}",
        f"y[i] = (0.0 if (0 >= ({length})) else _sum[i] / float32({length}))",
    ]


@pytest.mark.parametrize(
    "body",
    [
        THREAD.replace("e < p[g + 1]", "e < min(p[g + 1], p[g] + 40)"),  # longer rows are cut
        THREAD.replace("++e", "e += p[g + 1] - p[g] > 100 ? 2 : 1"),  # every second entry of longer ones
    ],
)
def test_what_only_long_rows_are_is_not_told_by_short_ones(tmp_path: Path, body: str) -> None:
    (tmp_path / "k.cu").write_text(written(body, "ceil_div(rows, 64)"))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=3)
    assert found.computation is None or not has_data_rows(found.computation)


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("empty", [True, False])
def test_rows_are_unlike_each_other(ends: bool, empty: bool) -> None:
    starts = RowStarts("p", "int32", "rows + 1", "nnz", ends)
    for rows, entries in ((5, 35), (6, 39), (192, 1000)):
        found = chosen_starts(starts, {"rows": rows, "nnz": entries}, empty=empty)
        lengths = np.diff(found)
        assert found.shape == (rows + 1,)
        assert (found[0], found[-1]) == (0, entries) if ends else 0 <= found[0] <= found[-1] <= entries
        assert (lengths.min() == 0) == empty
        assert lengths[lengths > 0].min() >= 2
        assert len(set(lengths)) > 2
