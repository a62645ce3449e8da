"""Arguments that functions take by reference are no mere reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.analysis.accesses import accesses
from fsr.contract.load import load_contract
from fsr.source.parse import parse_kernels
from fsr.source.references import by_reference

SPLIT = """__device__ void split(float x, float &lo, float &hi) { lo = floorf(x); hi = x - lo; }
__global__ void k(const float *x, float *y, float *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) split(x[i], y[i], z[i]);
}
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("__device__ void f(float x, float &y) { y = x; }", {"f(1"}),
        ("template <class T> __device__ void swap2(T& a, T &b) { T t = a; a = b; b = t; }", {"swap2(0", "swap2(1"}),
        ("__device__ float g(const float &x, float const& y, int k) { return x + y; }", set()),
        ("struct P { float v; };\n__device__ void h(std::pair<int, P> &p, int n = 2) { p.second.v = n; }", {"h(0"}),
        ("__device__ void m(float &&x) { x = 1; }", {"m(0"}),
        ("__device__ void p(const float *&a, float *const &b, const int *const *&c) { a += 1; }", {"p(0", "p(2"}),
        ("__device__ void q(const float *a, const float (*b)[4], int c) { }", set()),
        ("__global__ void k(int a, int b) { if (a & b) { a = 1; } while (a & 3) { a--; } }", set()),
        ("__device__ int mask(int a, int b) { return a & b; }", set()),
    ],
)  # fmt: skip
def test_parameters_that_may_be_changed(text: str, found: set[str]) -> None:
    assert by_reference(text) == found


def test_an_element_given_by_reference_is_updated() -> None:
    kernel = parse_kernels(SPLIT)["k"]
    assert [(a.array, a.kind) for a in accesses(kernel)] == [("x", "read"), ("y", "update"), ("z", "update")]
    by_value = parse_kernels(SPLIT.replace("&", ""))["k"]
    assert {a.kind for a in accesses(by_value)} == {"read"}


def test_the_draft_of_a_contract_tells_them_as_results(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(SPLIT)
    roles = {a.name: a.role.value for a in load_contract(tmp_path / "k.cu").buffers()}
    assert roles == {"x": "in", "y": "inout", "z": "inout"}
