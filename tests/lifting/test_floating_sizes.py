"""Sizes that a kernel is passed as floating numbers are sizes, not another constant at each size."""

from __future__ import annotations

import pytest

from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

KERNEL = """// /// fsr
// [sizes]
// n = {min = 1, max = 4194304, timed = 2097152}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// size = {value = "VALUE"}
// a = {low = 0.5, high = 1.5}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const float *x, float *y, TYPE size, double a) {
  unsigned long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) y[i] = BODY;
}
"""


@pytest.mark.parametrize(
    ("body", "value", "type_", "found"),
    [
        ("x[i] + a * (i - size)", "n", "double", "float32(float64(x[i]) + a * (-float64(n) + i))"),
        ("(float)(1.0 / size) * x[i]", "n", "double", "x[i] * float32(1.0 / float64(n))"),
        ("x[i] / (size - 1)", "n + 1", "float", "x[i] / (-1.0 + (n + 1))"),
        ("i + 1 < size ? x[i] : 0", "n", "float", "(x[i] if i <= n - 2 else 0.0)"),
    ],
)
def test_they_are_generalised(tmp_path, body: str, value: str, type_: str, found: str) -> None:
    path = tmp_path / "k.cu"
    path.write_text(KERNEL.replace("BODY", body).replace("VALUE", value).replace("TYPE", type_))
    kernel = load_kernel(path)
    told = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert told.computation is not None, told.why
    assert lines(told.computation) == [f"y[i] = {found}"]
