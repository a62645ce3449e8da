"""Where a size counts blocks of threads and every thread goes over all, small sizes are much work: smaller ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.lifting.sampling import _FEW_STEPS, _STEPS, cells, smaller_sizes, watched_sizes
from fsr.runs.kernel import load_kernel

KERNEL = """// /// fsr
// entry = "pull"
// [sizes]
// blocks = {min = 1, max = 64, timed = 64}
// [args]
// m = {role = "in", shape = ["32 * blocks"], low = 0.1, high = 10.0}
// x = {role = "in", shape = ["32 * blocks"]}
// y = {role = "in", shape = ["32 * blocks"]}
// u = {role = "inout", shape = ["32 * blocks"]}
// v = {role = "inout", shape = ["32 * blocks"]}
// n = {value = "32 * blocks"}
// [launch]
// grid = "blocks"
// block = 32
// [tolerance]
// sum_length = "32 * blocks"
// ///
__global__ void pull(const float *m, const float *x, const float *y, float *u, float *v, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  float p = 0, q = 0;
  for (int j = 0; j < n; ++j) {
    float dx = x[j] - x[i], dy = y[j] - y[i], d = sqrtf(dx * dx + dy * dy);
    d = d == 0 ? 0 : m[j] / (d * d * d);
    p += dx * d;
    q += dy * d;
  }
  u[i] += p;
  v[i] += q;
}
"""


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
def test_all_pairs_are_watched_at_fewer_blocks(tmp_path):
    (tmp_path / "k.cu").write_text(KERNEL)
    kernel = load_kernel(tmp_path / "k.cu")
    assert sorted(s["blocks"] for s in smaller_sizes(kernel.contract)) == [1, 2, 3]
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert max(s["blocks"] for s in found.watched) == 3
    assert "sum(" in " ".join(lines(found.computation))


@pytest.mark.parametrize("table", [_STEPS, _FEW_STEPS])
def test_no_size_is_affine_in_up_to_two_others_at_all_that_are_watched(table):
    columns = np.array(table).T
    for first, second in itertools.combinations(columns[:2], 2):  # of two sizes three rows are watched
        assert np.linalg.matrix_rank(np.array([np.ones(3), first[:3], second[:3]])) == 3
    for number in (2, 3):
        for some in itertools.combinations(columns, number):
            assert np.linalg.matrix_rank(np.array([np.ones(4), *some])) == number + 1


def test_few_elements_of_a_row_where_each_is_much_work():
    assert len(cells((64,))) == 64
    assert len(cells((64,), 1000.0)) == 8
    assert len(cells((5, 4, 4), 1000.0)) == 80  # a few of each of more dimensions would tell nothing


WIDE = """// /// fsr
// entry = "nearest"
// [sizes]
// n = {min = 1, max = 2048, timed = 2048}
// m = {min = 1, max = 2048, timed = 2048}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "in", shape = ["m"]}
// d = {role = "out", shape = ["n"]}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = [32, 16]
// block = 512
// ///
__global__ void nearest(const float *x, const float *y, float *d, int n, int m) {
  if (blockIdx.x) return;
  for (int j = threadIdx.x + blockIdx.y * blockDim.x; j < n; j += blockDim.x * gridDim.y) {
    float least = BEGIN;
    for (int k = 0; k < m; k++) least = fminf(least, fabsf(y[k] - x[j]));
    d[j] = least;
  }
}
"""


def test_one_size_tells_nothing_of_others(tmp_path):
    """A grid of many threads at any sizes is watched in part; at the least sizes alone a minimum has one term."""
    (tmp_path / "k.cu").write_text(WIDE.replace("BEGIN", "1e30f"))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert len({tuple(s.values()) for s in found.watched}) > 2
    assert found.computation is not None, found.why
    assert lines(found.computation) == [
        "_min[i] = min(fabs(y[k0] - x[i]) for k0 in range(m))", "d[i] = min(_min[i], 1e+30)",
    ]  # fmt: skip
    assert dict(found.checked[0]) not in [dict(sizes) for sizes in found.watched]


UPSAMPLED = """
// /// fsr
// [sizes]
// n = {min = 1, max = 1024, timed = 1024}
// up = {min = 1, max = 16, timed = 16}
// down = {min = 1, max = 15, timed = 15}
// taps = {min = 1, max = 8, timed = 8}
// [args]
// x = {role = "in", shape = ["n"]}
// h = {role = "in", shape = ["up * taps"]}
// y = {role = "out", shape = ["(n * up - 1) // down + 1"]}
// length = {value = "(n * up - 1) // down + 1"}
// [launch]
// grid = 2048
// block = 512
// ///
__global__ void resampled(const float *x, const float *h, float *y, int n, int up, int down, int taps, int length) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < length; i += blockDim.x * gridDim.x) {
    int at = i * down / up, phase = i * down % up * taps;
    float sum = 0;
    for (int k = 0; k < taps && at - k >= 0; k++) sum += x[at - k] * h[phase + k];
    y[i] = sum;
  }
}
"""


def test_a_grid_that_fills_a_gpu_is_checked_at_sizes_that_were_not_watched(tmp_path):
    """Places that are a quotient of products of sizes are told by no conditions on a few small ones."""
    (tmp_path / "k.cu").write_text(UPSAMPLED)
    kernel = load_kernel(tmp_path / "k.cu")
    assert lift(kernel.contract, kernel.baseline, limit_s=8).computation is None


def test_sizes_at_which_there_is_no_launch_keep_none_of_the_others_away(tmp_path):
    """Of 9 taps, at which it is asked whether a grid grows, this one has none."""
    text = UPSAMPLED.replace("grid = 2048", 'grid = "n + n % (taps - 9)"').replace("max = 8, timed", "max = 64, timed")
    (tmp_path / "k.cu").write_text(text)
    assert watched_sizes(load_kernel(tmp_path / "k.cu").contract)


FIXED = """// /// fsr
// entry = "product"
// [sizes]
// n = 512
// [args]
// a = {role = "in", shape = ["n", "n"]}
// b = {role = "in", shape = ["n", "n"]}
// c = {role = "out", shape = ["n", "n"]}
// [launch]
// grid = ["n // 32", "n // 8"]
// block = [32, 8]
// [tolerance]
// sum_length = "n"
// ///
__global__ void product(const float *a, const float *b, float *c) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < 512; k++) sum += a[i * 512 + k] * b[k * 512 + j];
  c[i * 512 + j] = sum;
}"""


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
def test_of_one_size_that_is_heavy_single_blocks_are_watched(tmp_path):
    (tmp_path / "k.cu").write_text(FIXED)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert lines(found.computation) == ["c[i, j] = sum(a[i, k0] * b[k0, j] for k0 in range(512))"]
