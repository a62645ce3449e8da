"""Windows whose width is an argument and that go round at the ends of a row, or stop there, as one fold."""

from __future__ import annotations

from pathlib import Path

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
LOW, HIGH = "x[i, 0] if j + k0 - r <= 0 else", "x[i, n - 1] if n - 1 <= j + k0 - r else"
STOPPED = {
    "at both ends": ("int at = min(max(i + k, 0), n - 1);", f"({LOW} ({HIGH} x[i, j + k0 - r]))"),
    "by questions": ("int at = i + k; if (at < 0) at = 0; else if (at >= n) at = n - 1;",
                     f"({LOW} ({HIGH} x[i, j + k0 - r]))"),
}  # fmt: skip


def told_of(work: str, path: Path) -> str:
    """The line of the result."""
    path.write_text(HEAD + "  " + work + TAIL)
    kernel = load_kernel(path)
    found = lift(kernel.contract, kernel.baseline, limit_s=30)
    assert found.computation is not None, found.why
    (line,) = [x for x in lines(found.computation) if x.startswith("y")]
    return line


@watched
@pytest.mark.parametrize(("work", "told"), ROUND.values(), ids=ROUND)
def test_a_window_that_goes_round_is_one_fold(work: str, told: str, tmp_path: Path) -> None:
    line = told_of(work, tmp_path / "k.cu")
    assert line.startswith(told)
    assert "% n" in line


@watched
@pytest.mark.parametrize(("place", "told"), STOPPED.values(), ids=STOPPED)
def test_a_window_that_stops_at_the_ends_is_one_fold(place: str, told: str, tmp_path: Path) -> None:
    work = f"for (int k = -r; k <= r; k++) {{ {place} s += w[k + r] * x[row * n + at]; }}"
    line = told_of(work, tmp_path / "k.cu")
    assert line == f"y[i, j] = sum(w[k0] * {told} for k0 in range(2*r + 1))"
