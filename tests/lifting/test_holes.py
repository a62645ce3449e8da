"""Sums over all but one: the term where two indices are one is left out, another one, or nought anyway."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from tests.lifting.lifted import computed

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// a = {role = "in", shape = ["n", "n"]}
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "n"
// ///
__global__ void k(const float *a, const float *x, float *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float s = 0.0f;
BODY
  y[i] = s;
}
"""
LEFT_OUT = "a[i, k0] * x[k0] if k0 <= i - 1 else (0.0 if k0 <= i else a[i, k0] * x[k0])"


def of_body(tmp_path, body: str) -> list[str]:
    return computed(tmp_path, HEAD.replace("BODY", body))


@pytest.mark.parametrize("body", [
    "  for (int j = 0; j < n; ++j) if (j != i) s += a[i * n + j] * x[j];",
    "  for (int j = 0; j < i; ++j) s += a[i * n + j] * x[j];\n"
    "  for (int j = n - 1; j > i; --j) s += a[i * n + j] * x[j];",
    "  for (int j = 0; j < n; ++j) { if (j == i) continue; s = fmaf(a[i * n + j], x[j], s); }",
])  # fmt: skip
def test_the_diagonal_is_left_out(tmp_path, body):
    assert of_body(tmp_path, body) == [f"y[i] = sum(({LEFT_OUT}) for k0 in range(n))"]


def test_a_term_of_its_own_stands_on_the_diagonal(tmp_path):
    body = "  for (int j = 0; j < n; ++j) s += j == i ? expf(x[i]) : a[i * n + j] * x[j];"
    fold, result = of_body(tmp_path, body)
    assert fold == f"_sum[i] = sum(({LEFT_OUT}) for k0 in range(n))"
    assert result in ("y[i] = _sum[i] + exp(x[i])", "y[i] = exp(x[i]) + _sum[i]")


def test_down_the_columns_too(tmp_path):
    (found,) = of_body(tmp_path, "  for (int j = 0; j < n; ++j) if (j != i) s += a[j * n + i];")
    assert found == "y[i] = sum((a[k0, i] if k0 <= i - 1 else (0.0 if k0 <= i else a[k0, i])) for k0 in range(n))"


def test_a_term_that_is_nought_there_has_no_condition(tmp_path):
    (found,) = of_body(tmp_path, "  for (int j = 0; j < n; ++j) s += (x[j] - x[i]) * expf(a[i * n + j]);")
    assert " if " not in found
