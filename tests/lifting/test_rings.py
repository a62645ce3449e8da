"""Windows whose width is an argument and that go round at the ends of a row, as one fold over a ring."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

watched = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "smooth"
// [sizes]
// rows = {min = 1, max = 300, timed = 300}
// n = {min = 32, max = 5000, timed = 5000}
// r = {min = 1, max = 9, timed = 9}
// [args]
// x = {role = "in", shape = ["rows", "n"]}
// w = {role = "in", shape = ["2 * r + 1"]}
// y = {role = "out", shape = ["rows", "n"]}
// n = {value = "n"}
// r = {value = "r"}
// [launch]
// grid = ["ceil_div(n, 64)", "rows"]
// block = 64
// [tolerance]
// sum_length = "2 * r + 1"
// ///
__global__ void smooth(const float *x, const float *w, float *y, int n, int r) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (i >= n) return;
  float s = 0;
"""
TAIL = "\n  y[row * n + i] = s;\n}\n"
ROUND = {
    "centred": ("for (int k = -r; k <= r; k++) s += x[row * n + (i + k + n) % n] * w[k + r];",
                "y[i, j] = sum(w[k0] * x[i, (j + k0 + n - r) % n] for k0 in range(2*r + 1))"),
    "from the end": ("for (int k = r; k >= -r; k--) s += w[k + r] * x[row * n + (i + k + n) % n];",
                     "y[i, j] = sum(w[k0] * x[i, (j + k0 + n - r) % n] for k0 in range(2*r + 1))"),
    "before it": ("for (int k = 0; k < r; k++) { int at = i - k; if (at < 0) at += n; s += x[row * n + at] * w[k]; }",
                  "y[i, j] = sum(w[k0] * x[i, (j - k0) % n] for k0 in range(r))"),
    "behind it": ("for (int k = 0; k <= r; k++) { int at = i + k; s += x[row * n + (at >= n ? at - n : at)] * w[k]; }",
                  "y[i, j] = sum(w[k0] * x[i, (j + k0) % n] for k0 in range(r + 1))"),
}  # fmt: skip


@watched
@pytest.mark.parametrize(("work", "told"), ROUND.values(), ids=ROUND)
def test_a_window_that_goes_round_is_one_fold(work: str, told: str, tmp_path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(HEAD + "  " + work + TAIL)
    kernel = load_kernel(path)
    found = lift(kernel.contract, kernel.baseline, limit_s=30)
    assert found.computation is not None, found.why
    (line,) = [x for x in lines(found.computation) if x.startswith("y")]
    assert line.startswith(told)
    assert "% n" in line
