"""Forms that were watched at sizes alone at which a fold has one term: what holds generally holds there, too."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import Affine, Case, Const
from fsr.computation.printing import lines
from fsr.lifting.generally import generally
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

# Warps share a row, whose length comes in 32s of which there are few, and meet in shared memory.
KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// heads = {{min = 1, max = 8, timed = 8}}
// d32 = {{min = 1, max = {most}, timed = {most}}}
// n = {{min = 1, max = 4096, timed = 4096}}
// [args]
// q = {{role = "in", shape = ["heads", "32 * d32"], low = -4, high = 4}}
// x = {{role = "in", shape = ["n", "heads", "32 * d32"], low = -4, high = 4}}
// y = {{role = "out", shape = ["heads"]}}
// heads = {{value = "heads"}}
// d = {{value = "32 * d32"}}
// n = {{value = "n"}}
// [launch]
// grid = "heads"
// block = 128
// [tolerance]
// sum_length = "n * d32 * 32"
// ///
__global__ void k(const float *q, const float *x, float *y, int heads, int d, int n) {{
  __shared__ float tops[4], sums[4];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float top = -1e20f, sum = 0.0f;
  for (int row = warp; row < n; row += 4) {{
    float dot = 0.0f;
    for (int i = lane; i < d; i += 32) dot += q[blockIdx.x * d + i] * x[(row * heads + blockIdx.x) * d + i];
    for (int step = 16; step > 0; step /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, step);
    {carry}
  }}
  if (lane == 0) {{ tops[warp] = top; sums[warp] = sum; }}
  __syncthreads();
  if (threadIdx.x == 0) {{
    float all = {neutral};
    for (int w = 0; w < 4; w++) {join}
    y[blockIdx.x] = all;
  }}
}}
"""
FORMS = {
    "a softmax's sum": (
        "float before = top; top = fmaxf(top, dot); sum = sum * expf(before - top) + expf(dot - top);",
        "0.0f; float highest = -1e20f; for (int w = 0; w < 4; w++) highest = fmaxf(highest, tops[w])",
        "all += sums[w] * expf(tops[w] - highest);",
        "sum(exp(",
    ),
    "the largest": ("top = fmaxf(top, dot);", "-1e20f", "all = fmaxf(all, tops[w]);", "for k0 in range(n)"),
    "a sum of squares": ("sum += dot * dot;", "0.0f", "all += sums[w];", "for k0 in range(n)"),
}  # fmt: skip


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
@pytest.mark.parametrize("most", [2, 4])
@pytest.mark.parametrize("name", FORMS)
def test_rows_that_warps_share(tmp_path, name, most):
    carry, neutral, join, wanted = FORMS[name]
    (tmp_path / "k.cu").write_text(KERNEL.format(most=most, carry=carry, neutral=neutral, join=join))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    written = " ".join(lines(found.computation))
    assert wanted in written
    assert "range(32*d32)" in written
    assert "n <= 1" not in written


def computation(*values) -> Computation:
    return Computation(("n", "m"), (), tuple(Statement("map", "y", (("i", "n"),), v) for v in values))


def test_only_conditions_on_sizes_are_decided():
    one, two = Const(1.0, "float32"), Const(2.0, "float32")
    by_size = Case(Affine((("n", 1),)), Affine((), 1), one, two)
    by_place = Case(Affine((("i", 1),)), Affine((("n", 1),), -2), by_size, two)
    assert generally(computation(two), {"n": 8, "m": 4}) is None
    assert generally(computation(Case(Affine((("i", 1),)), Affine((), 1), one, two)), {"n": 8, "m": 4}) is None
    found = generally(computation(by_place), {"n": 8, "m": 4})
    assert found is not None
    assert found.statements[0].value == Case(by_place.left, by_place.right, two, two)
    small = generally(computation(by_size), {"n": 1, "m": 4})
    assert small is not None
    assert small.statements[0].value == one
