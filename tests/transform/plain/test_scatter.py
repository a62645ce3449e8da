"""Counting where data tells, however the grid walks over the elements: each block gets bins of its own."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import open_host_device
from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.lift import lift
from fsr.records import Case, Image
from fsr.runs.kernel import load_kernel
from fsr.source.parse import parse_kernels
from fsr.testgen.placing import place
from fsr.testgen.values import build
from fsr.transform.plain.action import Restate
from fsr.transform.protocol import Subject
from fsr.transform.registry import STRUCTURAL

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "count"
// [sizes]
// rows = {min = 1, max = 900, timed = 900}
// cols = {min = 1, max = 900, timed = 900}
// [args]
// v = {role = "in", shape = ["rows", "cols"], low = 0, high = 199}
// w = {role = "in", shape = ["rows", "cols"]}
// bins = {role = "inout", dtype = "TYPE", shape = [25], value = 0}
// [launch]
// grid = ["ceil_div(cols, 16)", "ceil_div(rows, 16)"]
// block = [16, 16]
// [tolerance]
// sum_length = "rows * cols"
// ///
__global__ void count(const int *v, const float *w, TYPE *bins, int rows, int cols) {
  int bin;
  for (int r = blockIdx.y * 16 + threadIdx.y; r < rows; r += gridDim.y * 16)
    for (int c = blockIdx.x * 16 + threadIdx.x; c < cols; c += gridDim.x * 16) {
      bin = v[r * cols + c] / 8;
      ADDED
    }
}
"""
COUNTED, WEIGHED = "atomicAdd(bins + bin, 1);", "atomicAdd(&bins[bin], w[r * cols + c] * 0.5f);"


def subject_of(tmp_path, added: str, type_: str = "int") -> Subject:
    text = HEAD.replace('dtype = "TYPE", ', "").replace("ADDED", added).replace("TYPE", type_)
    (tmp_path / "count.cu").write_text(text)
    kernel = load_kernel(tmp_path / "count.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    kernels = parse_kernels(kernel.baseline.source)
    return Subject(kernel.baseline, kernels, kernel.contract, False, "sm_90", found.computation)


@pytest.mark.parametrize(("added", "type_"), [(COUNTED, "int"), (COUNTED, "unsigned"), (WEIGHED, "float")])
def test_bins_are_kept_a_block(tmp_path, added, type_):
    subject = subject_of(tmp_path, added, type_)
    assert subject.computation is not None
    action = Restate(STRUCTURAL)
    moves = {str(m.param("as")): m for m in action.moves(subject)}
    bins = next(m for name, m in moves.items() if name.startswith("private-bins"))
    case = Case("c", (("rows", 37), ("cols", 71)), "normal", 5)
    data = build(subject.contract, case)
    weights = data.arrays["w"].ravel().astype(np.float64) * 0.5 if type_ == "float" else None
    want = np.bincount(data.arrays["v"].ravel() // 8, weights, minlength=25)
    device = open_host_device()
    try:
        for move in (moves["itself"], bins):
            made = action.apply(subject, move)
            image = HostToolchain().compile(made)
            assert isinstance(image, Image), image
            launches, buffers = place(subject.contract, made.plan, case, data)
            with device.prepare(image, launches, buffers) as prepared:
                prepared.run()
                np.testing.assert_allclose(prepared.read()["bins"], want, rtol=1e-5, atol=1e-5)
    finally:
        device.close()


CLEARED = """// /// fsr
// [sizes]
// n = {min = 1, max = 900000, timed = 900000}
// [args]
// v = {role = "in", dtype = "uint8", shape = ["n"]}
// bins = {role = "out", dtype = "int32", shape = [256]}
// [[launch]]
// entry = "count"
// grid = "ceil_div(n, 1024)"
// block = 256
// args = ["v", "part", "n"]
// [[launch]]
// entry = "total"
// grid = 1
// block = 256
// args = ["part", "bins", "ceil_div(n, 1024)"]
// [scratch.part]
// dtype = "int32"
// count = "256 * ceil_div(n, 1024)"
// ///
__global__ void count(const unsigned char *v, int *part, int n) {
  __shared__ int own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int k = 0, i = blockIdx.x * 1024 + threadIdx.x; k < 4 && i < n; k++, i += 256) atomicAdd(own + v[i], 1);
  __syncthreads();
  part[blockIdx.x * 256 + threadIdx.x] = own[threadIdx.x];
}
__global__ void total(const int *part, int *bins, int parts) {
  int sum = 0;
  for (int k = 0; k < parts; k++) sum += part[k * 256 + threadIdx.x];
  bins[threadIdx.x] = sum;
}
"""


def test_bins_that_nobody_gave_are_set_by_a_launch_before(tmp_path):
    (tmp_path / "count.cu").write_text(CLEARED)
    kernel = load_kernel(tmp_path / "count.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    kernels = parse_kernels(kernel.baseline.source)
    subject = Subject(kernel.baseline, kernels, kernel.contract, False, "sm_90", found.computation)
    action = Restate(STRUCTURAL)
    move = next(m for m in action.moves(subject) if str(m.param("as")).startswith("private-bins"))
    made = action.apply(subject, move)
    assert [launch.entry for launch in made.plan.launches] == ["count_start", "count"]
    assert not made.plan.scratch
    device = open_host_device()
    try:
        for n in (1, 1030, 70001):
            case = Case("c", (("n", n),), "normal", 5)
            data = build(subject.contract, case)
            image = HostToolchain().compile(made)
            assert isinstance(image, Image), image
            with device.prepare(image, *place(subject.contract, made.plan, case, data)) as prepared:
                prepared.run()
                np.testing.assert_array_equal(prepared.read()["bins"], np.bincount(data.arrays["v"], minlength=256))
    finally:
        device.close()


def test_what_no_atomic_adds_to_is_left(tmp_path):
    """There is no sum of signed words of 64 bits, and what nobody cleared is not added to."""
    wide = "atomicAdd((unsigned long long *)&bins[bin], 1ull);"
    assert list(Restate(STRUCTURAL).moves(subject_of(tmp_path, wide, "long long"))) == []
    once = "if (r == 0 && c < 25) bins[c] = bin;"
    assert not [m for m in Restate(STRUCTURAL).moves(subject_of(tmp_path, once)) if "private-bins" in m.name]


GROUPED = """// /// fsr
// [sizes]
// n = {min = 1, max = 900000, timed = 900000}
// width = {min = 1, max = 24, timed = 10}
// k = {min = 1, max = 40, timed = 20}
// [args]
// x = {role = "in", shape = ["n", "width"]}
// of = {role = "in", shape = ["n"], low = 0, high = "k - 1"}
// sums = {role = "inout", shape = ["k", "width"], value = 0}
// counts = {role = "inout", shape = ["k"], value = 0}
// [launch]
// grid = "n"
// block = 32
// [tolerance]
// sum_length = "n"
// ///
__global__ void group(const double *x, const int *of, double *sums, int *counts, int n, int width, int k) {
  int i = blockIdx.x, j = threadIdx.x, to = of[i];
  if (j < width) atomicAdd(&sums[to * width + j], x[i * width + j]);
  if (j == 0) atomicAdd(&counts[to], 1);
}
"""


def test_sums_of_several_domains_are_a_launch_each(tmp_path):
    """A size of the file's is called as a loop of bins would be."""
    (tmp_path / "group.cu").write_text(GROUPED)
    kernel = load_kernel(tmp_path / "group.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    kernels = parse_kernels(kernel.baseline.source)
    subject = Subject(kernel.baseline, kernels, kernel.contract, False, "sm_90", found.computation)
    action = Restate(STRUCTURAL)
    moves = {str(m.param("as")): m for m in action.moves(subject)}
    bins = [next(m for n, m in moves.items() if n.startswith(f"private-bins@{of}[")) for of in ("group", "group_more")]
    case = Case("c", (("n", 700), ("width", 7), ("k", 33)), "normal", 5)
    data = build(subject.contract, case)
    want = np.zeros((33, 7))
    np.add.at(want, data.arrays["of"], data.arrays["x"])
    device = open_host_device()
    try:
        for move in (moves["itself"], *bins):
            made = action.apply(subject, move)
            assert [launch.entry for launch in made.plan.launches] == ["group_more", "group"]
            image = HostToolchain().compile(made)
            assert isinstance(image, Image), image
            with device.prepare(image, *place(subject.contract, made.plan, case, data)) as prepared:
                prepared.run()
                got = prepared.read()
            np.testing.assert_allclose(got["sums"], want, rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(got["counts"], np.bincount(data.arrays["of"], minlength=33))
    finally:
        device.close()
