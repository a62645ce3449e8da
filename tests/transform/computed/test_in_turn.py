"""Sums over all that lies above and to the left: lifted as one fold, scanned along one dimension after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.expression import Affine, Fold, Load, Op
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel
from fsr.source.parse import parse_kernels
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import FAMILY, at, check, computed

AREAS = """// /// fsr
// [sizes]
// n = {min = 1, max = 2000, timed = 1000}
// m = {min = 1, max = 2000, timed = 1500}
// [args]
// x = {role = "in", dtype = "DTYPE", shape = ["n", "m"], low = 0, high = 99}
// y = {role = "out", dtype = "DTYPE", shape = ["n", "m"]}
// [[launch]]
// entry = "along"
// grid = "n"
// block = 1
// args = ["x", "t", "m"]
// [[launch]]
// entry = "down"
// grid = "ceil_div(m, 32)"
// block = 32
// args = ["t", "y", "n", "m"]
// [scratch.t]
// dtype = "DTYPE"
// count = "n * m"
// zeroed = false
// [tolerance]
// sum_length = "n * m"
// ///
__global__ void along(const T *x, T *t, int m) {
  T s = 0;
  for (int j = 0; j < m; j++) { s += x[blockIdx.x * m + j]; t[blockIdx.x * m + j] = s; }
}
__global__ void down(const T *t, T *y, int n, int m) {
  int j = blockIdx.x * 32 + threadIdx.x;
  if (j >= m) return;
  y[j] = t[j];
  for (int i = 1; i < n; i++) y[i * m + j] = y[(i - 1) * m + j] + t[i * m + j];
}"""
MANY = [(37, 70), (1, 1), (130, 1), (1, 700)]


@pytest.fixture
def areas(tmp_path):
    """Makes the subject for elements of a type."""

    def made(dtype: str, kind: str) -> Subject:
        text = AREAS.replace("DTYPE", dtype).replace("const T *", f"const {kind} *").replace(" T", f" {kind}")
        (tmp_path / "k.cu").write_text(text)
        kernel = load_kernel(tmp_path / "k.cu")
        return Subject(kernel.baseline, parse_kernels(kernel.baseline.source), kernel.contract)

    return made


def upto(first: int, second: int, body=None, dims=("i", "j")) -> Fold:
    ends = zip(("k0", "k1"), dims, (first, second), strict=True)
    extents = tuple((k, Affine(((d, 1),), n)) for k, d, n in ends)
    return Fold("sum", extents, body or Load("x", at("k0", "k1"), "float32"))


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
@pytest.mark.parametrize(("dtype", "kind"), [("uint64", "unsigned long long"), ("uint32", "unsigned")])
def test_unsigned_areas_are_lifted_as_one_sum_and_scanned(runner, areas, dtype, kind):
    bare = areas(dtype, kind)
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    term = f"{dtype[1:]}(x[k0, k1])"
    assert lines(found.computation) == [f"y[i, j] = sum({term} for k0 in range(i + 1) for k1 in range(j + 1))"]
    subject = replace(bare, computation=found.computation)
    check(runner, subject, "scan-tiles", MANY, most=2)


@pytest.mark.parametrize("family", ["scan-tiles", "scan-columns"])
def test_areas_are_scanned_along_one_dimension_and_then_the_other(runner, areas, family):
    subject = computed(areas("float32", "float"), {"y": upto(1, 1)}, ("n", "m"))
    check(runner, subject, family, MANY, most=2)
    made = FAMILY[family].apply(subject, next(FAMILY[family].moves(subject)))
    assert [s.count for s in made.plan.scratch][-1] == "(n) * (m)"


def test_what_lies_before_alone_is_scanned_too(runner, areas):
    """Without the element's own row and with its own column, times the element."""
    value = Op("prod", (Load("x", at("i", "j"), "float32"), upto(0, 1)))
    subject = computed(areas("float32", "float"), {"y": value}, ("n", "m"))
    made = FAMILY["scan-columns"].apply(subject, next(FAMILY["scan-columns"].moves(subject)))
    for n, m in MANY:
        got = runner.outputs(made, subject.contract, {"n": n, "m": m})["y"]
        areas_ = runner.outputs(subject.candidate, subject.contract, {"n": n, "m": m})["y"]
        above = np.vstack([np.zeros((1, m)), areas_[:-1]])
        own = np.diff(np.diff(areas_, axis=0, prepend=0), axis=1, prepend=0)
        np.testing.assert_allclose(got, own * above, rtol=1e-3, atol=1.0)


@pytest.mark.parametrize(
    "value",
    [
        upto(1, 1, dims=("i", "i")),  # of one dimension
        upto(1, 2),  # beyond its own column
        upto(1, 1, Op("prod", (Load("x", at("k0", "k1"), "float32"), Load("x", at("i", "k1"), "float32")))),
    ],
)
def test_other_sums_are_not_taken_apart(areas, value):
    subject = computed(areas("float32", "float"), {"y": value}, ("n", "m"))
    assert not [m for f in ("scan-tiles", "scan-columns") for m in FAMILY[f].moves(subject)]
