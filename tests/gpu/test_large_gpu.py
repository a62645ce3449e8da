"""On a GPU the sizes that make an index overflow are run, and a right kernel that rounds otherwise stands them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.app.api import evaluate

# Bytes, so that sizes past 2^31 elements fit beside one another on a GPU of 48 GB.
BIG = """// /// fsr
// entry = "thrice"
// [sizes]
// rows = {min = 0, max = 1048576, timed = 256}
// cols = {min = 1, max = 8192, timed = 2048}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(rows * cols, 256)"
// block = 256
// ///
__global__ void thrice(const unsigned char *x, unsigned char *y, int rows, int cols)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (long long)rows * cols) y[i] = x[i] * 3;
}
"""
MOMENTS = """// /// fsr
// entry = "moments"
// [sizes]
// rows = {min = 0, max = 65536, timed = 2048}
// cols = {min = 1, max = 16384, timed = 512}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// mean = {role = "out", shape = ["rows"]}
// variance = {role = "out", shape = ["rows"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
// [tolerance]
// sum_length = "cols"
// ///
__global__ void moments(const float *x, float *mean, float *variance, int rows, int cols)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float *row = x + (size_t)r * cols;
    BODY
}
"""
TWO_PASSES = """float m = 0, v = 0;
    for (int j = 0; j < cols; j++) m += row[j];
    m /= cols;
    for (int j = 0; j < cols; j++) v += (row[j] - m) * (row[j] - m);
    mean[r] = m; variance[r] = v / cols;"""
RUNNING = """float m = 0, v = 0;
    for (int j = 0; j < cols; j++) { float d = row[j] - m; m += d / (j + 1); v += d * (row[j] - m); }
    mean[r] = m; variance[r] = v / cols;"""

SUMS = """// /// fsr
// entry = "column_sums"
// [sizes]
// rows = {min = 1, max = 65536, timed = 1024}
// cols = {min = 1, max = 65536, timed = 1024}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["cols"]}
// [launch]
// grid = "ceil_div(cols, 128)"
// block = 128
// ///
__global__ void column_sums(const float *x, float *y, int rows, int cols)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= cols) return;
    float sum = 0.0f;
    for (int i = 0; i < rows; i++) sum += x[i * cols + j];
    y[j] = sum;
}
"""
FIXED = """// /// fsr
// entry = "k"
// [args]
// x = {role = "in", shape = [4096, 4096]}
// y = {role = "out", shape = [4096]}
// [launch]
// grid = 64
// block = 64
// [tolerance]
// sum_length = 4096
// ///
__global__ void k(const float *x, float *y)
{
    int r = blockIdx.x * 64 + threadIdx.x;
    float s = 0.0f;
    BODY
}
"""


def judged(folder: Path, original: str, candidate: str) -> str:
    (folder / "original.cu").write_text(original)
    (folder / "candidate.cu").write_text(candidate)
    found = evaluate(folder / "candidate.cu", folder / "original.cu", device="cuda:0", budget_s=60.0)
    return f"{found.status} {found.stage} {found.evidence}"


@pytest.mark.timeout(300)
def test_a_narrow_index_is_found_out_where_it_overflows(tmp_path: Path) -> None:
    narrow = BIG.replace("long long i = (long long)", "int i = ").replace("(long long)rows", "rows")
    assert judged(tmp_path, BIG, BIG.replace("x[i] * 3", "3 * x[i]")).startswith("passed")
    assert not judged(tmp_path, BIG, narrow).startswith("passed")


@pytest.mark.timeout(300)
def test_a_running_mean_stands_the_largest_sizes(tmp_path: Path) -> None:
    said = judged(tmp_path, MOMENTS.replace("BODY", TWO_PASSES), MOMENTS.replace("BODY", RUNNING))
    assert said.startswith("passed"), said


@pytest.mark.timeout(300)
def test_sizes_at_which_the_original_overflows_refuse_nobody(tmp_path: Path) -> None:
    wrong = SUMS.replace("x[i * cols + j]", "x[((long long)rows * cols >> 24 << 40) + i * cols + j]")
    said = judged(tmp_path, wrong, wrong.replace("for (int i", "#pragma unroll 4\n    for (int i"))
    assert said.startswith("passed"), said
    assert "the original itself fails at rows=" in said


@pytest.mark.timeout(300)
def test_fixed_and_large_sizes_are_judged_on_the_gpu(tmp_path: Path) -> None:
    original = FIXED.replace("BODY", "for (int j = 0; j < 4096; j++) s += x[r * 4096 + j]; y[r] = s;")
    backwards = FIXED.replace("BODY", "for (int j = 4096; j--;) s += x[r * 4096 + j]; y[r] = s;")
    said = judged(tmp_path, original, backwards)
    assert said.startswith("passed"), said
    assert not judged(tmp_path, original, backwards.replace("y[r] = s", "if (r != 777) y[r] = s")).startswith("passed")


RESIDUES = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 33554432, timed = 1048576}
// [args]
// x = {role = "in", shape = ["n"], low = 0.5, high = 2}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// ///
__global__ void k(const double *x, double *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) {
        double third = x[i] / 3.0;
        y[i] = third * 3.0 - x[i];
    }
}
"""


@pytest.mark.timeout(300)
def test_residues_in_float64_are_judged_by_how_far_rounding_carries(tmp_path: Path) -> None:
    """Terms that cancel whatever the inputs are leave rounding alone, which no shaking of these tells."""
    said = judged(tmp_path, RESIDUES, RESIDUES.replace("x[i] / 3.0", "x[i] * (1.0 / 3.0)"))
    assert said.startswith("passed"), said
    assert not judged(tmp_path, RESIDUES, RESIDUES.replace("x[i] / 3.0", "x[i] / 2.9999999999")).startswith("passed")
