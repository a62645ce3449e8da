"""Running sums that one thread makes, and windows as differences of them."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.lifting.sampling import watched_sizes
from fsr.runs.kernel import load_kernel

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

CONTRACT = """[sizes]
n = {min = 1, max = 300000, timed = 200000}
w = {min = 1, max = 200, timed = 50}

[args]
x = {role = "in", shape = ["n"], low = -1, high = 1}
y = {role = "out", shape = ["n"]}

[[launch]]
entry = "running"
grid = 1
block = BLOCK
args = ["x", "s", "n"]

[[launch]]
entry = "apart"
grid = "ceil_div(n, 128)"
block = 128
args = ["s", "y", "n", "w"]

[scratch.s]
dtype = "float32"
count = "COUNT"
"""
IN_A_REGISTER = """__global__ void running(const float* x, float* s, int n) {
  if (threadIdx.x) return;
  float t = 0;
  for (int i = 0; i < n; i++) { t += x[i]; s[i] = t; }
}
"""
IN_MEMORY = """__global__ void running(const float* x, float* s, int n) {
  s[0] = x[0];
  for (int i = 1; i < n; i++) s[i] = s[i - 1] + x[i];
}
"""
EXCLUSIVE = """__global__ void running(const float* x, float* s, int n) {
  s[0] = 0.f;
  for (const float* p = x; p != x + n; p++) s[p - x + 1] = s[p - x] + *p;
}
"""
BY_A_BLOCK = """__global__ void running(const float* x, float* s, int n) {
  __shared__ float part[64];
  float before = 0;
  for (int start = 0; start < n; start += 64) {
    int i = start + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.f;
    for (int d = 1; d < 64; d *= 2) {
      __syncthreads();
      float more = threadIdx.x >= d ? part[threadIdx.x - d] : 0.f;
      __syncthreads();
      part[threadIdx.x] += more;
    }
    __syncthreads();
    if (i < n) s[i] = before + part[threadIdx.x];
    before += part[63];
    __syncthreads();
  }
}
"""
BEHIND = """__global__ void apart(const float* s, float* y, int n, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (i < w ? s[i] : s[i] - s[i - w]) / w;
}
"""
AROUND = """__global__ void apart(const float* s, float* y, int n, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float upper = i + w < n ? s[i + w] : s[n - 1];
  float lower = i - w > 0 ? s[i - w - 1] : 0.f;
  y[i] = upper - lower;
}
"""
MEAN_AROUND = """__global__ void apart(const float* s, float* y, int n, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int first = max(i - w, 0), last = min(i + w, n - 1);
  y[i] = (s[last + 1] - s[first]) / (last - first + 1);
}
"""
INCLUSIVE = "$s[i] = sum(x[k0] for k0 in range(i + 1))"
DIFFERENCE = "y[i] = ($s[i] + (0.0 if i <= w - 1 else -$s[i - w])) / w"


def lifted(
    tmp_path, first: str, second: str, *, block: int = 1, count: str = "n", contract: str = CONTRACT
) -> list[str]:
    (tmp_path / "k.cu").write_text(first + second)
    (tmp_path / "k.fsr.toml").write_text(contract.replace("BLOCK", str(block)).replace("COUNT", count))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    return lines(found.computation)


@pytest.mark.parametrize(("first", "block"), [(IN_A_REGISTER, 32), (IN_MEMORY, 1), (BY_A_BLOCK, 64)])
def test_a_running_sum_is_kept_whoever_makes_it(tmp_path, first, block):
    assert lifted(tmp_path, first, BEHIND, block=block) == [INCLUSIVE, DIFFERENCE]


def test_a_window_that_stops_at_both_ends_is_two_reads_under_conditions(tmp_path):
    scan, apart = lifted(tmp_path, IN_MEMORY, AROUND)
    assert scan == INCLUSIVE
    assert apart == "y[i] = ($s[i + w] if i + w <= n - 1 else $s[n - 1]) + (0.0 if i <= w else -$s[i - w - 1])"


def test_the_length_of_a_window_that_stops_at_both_ends_is_affine_in_four_pieces(tmp_path):
    scan, apart = lifted(tmp_path, EXCLUSIVE, MEAN_AROUND, count="n + 1")
    assert scan == "$s[i] = sum(x[k0] for k0 in range(i))"
    over, length = apart.removeprefix("y[i] = ").split(" / ")
    assert over == "(($s[i + w + 1] if i + w <= n - 1 else $s[n]) - ($s[0] if i <= w - 1 else $s[i - w]))"
    for piece in ("(i + w + 1)", "else n)", "(2*w + 1)", "-i + n + w"):
        assert piece in length


SCAN_IN_THREE = """__global__ void parts(const float* x, float* s, float* t, int n) {
  __shared__ float p[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  p[threadIdx.x] = i < n ? x[i] : 0.f;
  for (int d = 1; d < 64; d *= 2) {
    __syncthreads();
    float more = threadIdx.x >= d ? p[threadIdx.x - d] : 0.f;
    __syncthreads();
    p[threadIdx.x] += more;
  }
  if (i < n) s[i] = p[threadIdx.x];
  if (threadIdx.x == 63) t[blockIdx.x] = p[63];
}
__global__ void tops(float* t, int parts) {
  float before = 0;
  for (int k = 0; k < parts; k++) { float own = t[k]; t[k] = before; before += own; }
}
__global__ void add(float* s, const float* t, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) s[i] += t[blockIdx.x];
}
"""
IN_THREE = """[[launch]]
entry = "parts"
grid = "ceil_div(n, 64)"
block = 64
args = ["x", "s", "t", "n"]

[[launch]]
entry = "tops"
grid = 1
block = 1
args = ["t", "ceil_div(n, 64)"]

[[launch]]
entry = "add"
grid = "ceil_div(n, 64)"
block = 64
args = ["s", "t", "n"]

[[launch]]
entry = "apart"
"""


def test_a_scan_of_three_launches_is_one_value_beside_what_reads_it(tmp_path):
    head, _, behind = CONTRACT.partition("[[launch]]")
    behind = behind.partition('entry = "apart"')[2].lstrip()
    contract = f'{head}{IN_THREE}{behind}\n[scratch.t]\ndtype = "float32"\ncount = "ceil_div(n, 64)"\n'
    assert lifted(tmp_path, SCAN_IN_THREE, BEHIND, contract=contract) == [INCLUSIVE, DIFFERENCE]


def test_distances_are_watched_both_within_and_beyond_what_they_lie_in(tmp_path):
    (tmp_path / "k.cu").write_text(IN_MEMORY + BEHIND)
    (tmp_path / "k.fsr.toml").write_text(CONTRACT.replace("BLOCK", "1").replace("COUNT", "n"))
    short = watched_sizes(load_kernel(tmp_path / "k.cu").contract)[1]
    assert sum(c["n"] > 2 * c["w"] for c in short) >= 3
    assert len({c["n"] for c in short if c["n"] < c["w"]}) >= 2
