"""What threads add where a condition on data holds is a sum of all, as runs with other data show it."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.check import agree
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 4096, timed = 4096}}
// [args]
// x = {{role = "in", shape = ["n"]}}
// y = {{role = "inout", shape = [1]{value}}}
// t = {{low = 0.1, high = 0.5}}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "n"
// ///
__global__ void k(const float *x, {out} *y, float t, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  {body}
}}
"""
ADDED = {
    "a count": ("int", "if (x[i] < t) atomicAdd(y, 1);", "sum(int32((t > x[k0])) for k0 in range(n))"),
    "what is large": ("float", "if (x[i] > t) atomicAdd(y, x[i]);",
                      "sum((x[k0] if (x[k0] > t) else 0.0) for k0 in range(n))"),
    "between two": ("int", "if (x[i] > 0.25f) if (x[i] < 0.75f) atomicAdd(y, 3);",
                    "sum((3 if (0.75 > x[k0]) & (x[k0] > 0.25) else 0) for k0 in range(n))"),
}  # fmt: skip


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
@pytest.mark.parametrize("value", ["", ", value = 0"])
@pytest.mark.parametrize("name", ADDED)
def test_additions_under_conditions(tmp_path, name, value):
    out, body, wanted = ADDED[name]
    (tmp_path / "k.cu").write_text(KERNEL.format(out=out, body=body, value=value))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    written = " ".join(lines(found.computation))
    assert wanted in written
    assert ("y[0]" in written) == (not value)


def test_a_few_whole_numbers_that_were_cut_may_be_the_next_ones():
    want = np.arange(256, dtype=np.uint8)
    found = want.astype(np.int8)
    assert agree(found, found, want)
    found[[7, 255]] += 1
    assert agree(found, found, want, cut=True)
    assert not agree(found, found, want)
    found[::20] += 1
    assert not agree(found, found, want, cut=True)
    found = want.astype(np.int8)
    found[9] += 2
    assert not agree(found, found, want, cut=True)


BINS = """// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 4096, timed = 4096}}
// [args]
// x = {{role = "in", shape = ["n"], low = {low}, high = {high}}}
// bins = {{role = "inout", shape = [10]{value}}}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 64
// ///
__global__ void k(const {type} *x, int *bins, int n) {{
  __shared__ int own[{copies} * 10];
  for (int b = threadIdx.x; b < {copies} * 10; b += blockDim.x) own[b] = 0;
  __syncthreads();
  int *mine = own + threadIdx.x / 32 % {copies} * 10;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n && i < (blockIdx.x + 1) * 128; i += blockDim.x)
    atomicAdd(&mine[{index}], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < 10; b += blockDim.x) {{
    int count = 0;
    for (int c = 0; c < {copies}; c++) count += own[c * 10 + b];
    {commit}
  }}
}}
"""


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
@pytest.mark.parametrize("commit", [
    "atomicAdd(&bins[b], count);",
    "if (count > 0) atomicAdd(&bins[b], count);", "if (count) atomicAdd(&bins[b], count);",
])  # fmt: skip
@pytest.mark.parametrize(("type_", "index", "copies", "value"), [
    ("int", "x[i]", 1, ""), ("int", "x[i]", 2, ", value = 0"), ("char", "x[i] - 'a'", 1, ", value = 0"),
])  # fmt: skip
def test_bins_in_shared_memory_are_the_bins(tmp_path, commit, type_, index, copies, value):
    low, high = (97, 106) if type_ == "char" else (0, 9)
    text = BINS.format(low=low, high=high, value=value, type=type_, copies=copies, index=index, commit=commit)
    (tmp_path / "k.cu").write_text(text)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    (statement,) = found.computation.statements
    assert (statement.kind, statement.target, statement.combine) == ("scatter", "bins", "+")


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
def test_counts_that_are_stored_where_there_are_any_are_no_bins(tmp_path):
    text = BINS.format(
        low=0, high=9, value="", type="int", copies=1, index="x[i]", commit="if (count > 0) bins[b] = 5;"
    )
    (tmp_path / "k.cu").write_text(text)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=20)
    assert found.computation is None
