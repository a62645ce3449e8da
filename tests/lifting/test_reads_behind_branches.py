"""What a side of a branch on data reads is told, whichever way a run goes: ``a[i] && b[i]``, the nearest's colour."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 100000, timed = 90000}
// [args]
// a = {role = "in", dtype = "int32", shape = ["n"], low = 0, high = 3}
// b = {role = "in", dtype = "int32", shape = ["n"], low = 0, high = 1}
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const int *a, const int *b, const float *x, float *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) { BODY }
}"""


def found(tmp_path, body: str):
    (tmp_path / "k.cu").write_text(KERNEL.replace("BODY", body))
    kernel = load_kernel(tmp_path / "k.cu")
    return lift(kernel.contract, kernel.baseline, limit_s=60)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("y[i] = a[i] == 3 || (a[i] == 2 && b[i]) ? 1.0f : 0.0f;", "b[i]"),
        ("float v = 0.5f; if (a[i] > 1) { if (b[i]) v = x[i] * 2.0f; else v = expf(x[i]); } y[i] = v;", "exp(x[i])"),
        ("switch (a[i]) { case 0: y[i] = 1.0f; break; case 1: y[i] = x[i]; break; default: y[i] = 2.0f; }", "x[i]"),
        (
            "int best = a[0]; float v = 0.0f;\n#pragma unroll 1\nfor (int c = 0; c < 3; c++) "
            "if (a[i] + c * b[i] > best) { best = a[i] + c * b[i]; v = x[i] + c; } y[i] = v;",
            "x[i]",
        ),
    ],
)
def test_both_values_are_told(tmp_path, body, told):
    lifting = found(tmp_path, body)
    assert lifting.computation is not None, lifting.why
    assert told in " ".join(lines(lifting.computation))


def test_a_read_where_nothing_lies_harms_nobody(tmp_path):
    """Data never lead there; whether it is lifted is another matter."""
    lifting = found(tmp_path, "float v = x[i]; if (a[i] > 5) v = x[(long long)n << 34]; y[i] = v;")
    assert lifting.computation is not None or "fault" not in lifting.why
    plain = found(tmp_path, "float v = x[i]; if (i > 0) v += x[i - 1]; y[i] = v;")
    assert plain.computation is not None


def test_what_may_not_be_computed_stays_behind_its_branch(tmp_path):
    """A division by nought, a store, an atomic addition."""
    for side in ("v = float(a[i] / b[i]);", "y[0] = 1.0f;", "atomicAdd(&y[i], 1.0f);"):
        lifting = found(tmp_path, f"float v = x[i]; y[i] = v; if (b[i]) {{ {side} y[i] = v; }}")
        assert "fault" not in lifting.why
    lifting = found(tmp_path, "float v = x[i]; if (b[i]) v = float(a[i] / b[i]); y[i] = v;")
    assert lifting.computation is None or "a[i]" in " ".join(lines(lifting.computation))


NEAREST = """// /// fsr
// entry = "k"
// [sizes]
// points = {min = 1, max = 4096, timed = 4096}
// centres = {min = 1, max = 256, timed = 64}
// dims = {min = 1, max = 32, timed = 8}
// [args]
// x = {role = "in", shape = ["points", "dims"]}
// c = {role = "in", shape = ["centres", "dims"]}
// at = {role = "inout", dtype = "int32", shape = ["points"], low = 0, high = 2}
// changed = {role = "out", dtype = "int32", shape = ["points"]}
// [launch]
// grid = "ceil_div(points, 64)"
// block = 64
// ///
__device__ float distance(const float *x, const float *c, int dims) {
  float sum = 0.0f;
  for (int d = 0; d < dims; d++) sum += (x[d] - c[d]) * (x[d] - c[d]);
  return sum;
}
__global__ void k(const float *x, const float *c, int *at, int *changed, int points, int centres, int dims) {
  __shared__ unsigned char marks[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  marks[threadIdx.x] = 0;
  __syncthreads();
  if (i < points) {
    int best = 0;
    float least = distance(x + i * dims, c, dims);
    for (int k = 1; k < centres; k++) {
      float d = distance(x + i * dims, c + k * dims, dims);
      if (d < least) {
        least = d;
        best = k;
      }
    }
    if (at[i] != best) marks[threadIdx.x] = 1;
    at[i] = best;
    changed[i] = marks[threadIdx.x];
  }
}"""


def test_the_place_of_the_nearest_and_a_mark_set_where_it_changes(tmp_path):
    """Of the first two it is told which is larger or which is smaller: the third tells which was meant."""
    (tmp_path / "k.cu").write_text(NEAREST)
    kernel = load_kernel(tmp_path / "k.cu")
    lifting = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert lifting.computation is not None, lifting.why
    text = " ".join(lines(lifting.computation))
    assert "argmin(" in text
    assert "changed[i] = (0 if (_argmin[i] == at[i]) else 1)" in text
