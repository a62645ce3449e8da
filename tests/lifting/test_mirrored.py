"""Factors of one form that differ by a dimension (a matrix times its transpose), and triangles that floating-point
arithmetic counts."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from tests.lifting.lifted import computed, lifted

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

GRAM = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 256, timed = 128}
// m = {min = 1, max = 512, timed = 256}
// [args]
// x = {role = "in", shape = ["n", "m"]}
// c = {role = "out", shape = ["n", "n"]}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = ["ceil_div(n, 16)", "ceil_div(n, 16)"]
// block = [16, 16]
// [tolerance]
// sum_length = "m"
// ///
__global__ void k(const float *x, float *c, int n, int m) {
  int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
  if (i >= n || j >= n) return;
  float s = 0;
  for (int k = 0; k < m; k++) s += TERM;
  c[i * n + j] = s;
}"""


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("x[i * m + k] * x[j * m + k]", "x[i, k0] * x[j, k0]"),
        ("fminf(x[j * m + k], x[i * m + k])", "min(x[i, k0], x[j, k0])"),
        ("x[i * m + k] * x[i * m + k] * x[j * m + k]", "x[i, k0] * x[i, k0] * x[j, k0]"),
    ],
)
def test_factors_of_one_form_are_told_apart_by_their_dimension(tmp_path, term, found):
    assert any(found in line for line in computed(tmp_path, GRAM.replace("TERM", term)))


def test_factors_whose_rows_change_places_are_not_taken_for_such(tmp_path):
    """Of the rows i and j the larger one's element is halved: the product alone is the same for both orders."""
    found = lifted(tmp_path, GRAM.replace("TERM", "x[max(i, j) * m + k] * 0.5f - x[min(i, j) * m + k]"))
    text = "" if found.computation is None else str(found.computation)
    assert not text or "Case(" in text


TRIANGLE = """// /// fsr
// entry = "k"
// [sizes]
// b = {min = 1, max = 4096, timed = 1024}
// m = {min = 1, max = 512, timed = 128}
// [args]
// x = {role = "in", shape = ["b", 5, "m"]}
// done = {role = "in", dtype = "int32", shape = ["b"], low = 0, high = 1}
// c = {role = "inout", shape = ["b", 5, 5]}
// n = {value = 5}
// m = {value = "m"}
// [launch]
// grid = "b"
// block = 15
// [tolerance]
// sum_length = "m"
// ///
__global__ void k(const float *x, const int *done, float *c, int n, int m) {
  int t = threadIdx.x;
  if (done[blockIdx.x]) return;
  PLACE
  const float *p = x + blockIdx.x * n * m;
  float s = 0;
  for (int k = 0; k < m; k++) s += p[i * m + k] * p[j * m + k];
  c[(blockIdx.x * n + i) * n + j] = s;
  c[(blockIdx.x * n + j) * n + i] = s;
}"""
ROOTS = [
    "int i = (int)floorf((sqrtf(8.0f * t + 1.0f) - 1.0f) * 0.5f), j = t - i * (i + 1) / 2;",
    """int i = n - 1. - floor(.5 * (sqrt(-8. * (t - n) + 4. * n * (n - 1.) - 7.) - 1.));
       int j = t + i - i * (n - (i - 1) / 2.);""",
    "int i = 0; while (t >= n - i) { t -= n - i; i++; } int j = i + t;",
]


@pytest.mark.parametrize("place", ROOTS)
def test_rows_of_a_triangle_that_roots_tell_are_known(tmp_path, place):
    (value,) = computed(tmp_path, TRIANGLE.replace("PLACE", place))[-1:]
    assert "done[i] == 0" in value
    assert "c[i, j, i2]" in value


def test_a_row_that_data_rounds_is_not_known(tmp_path):
    place = "int i = (int)sqrtf(fabsf(x[t])) % n, j = t % n;"
    assert lifted(tmp_path, TRIANGLE.replace("PLACE", place), limit_s=8).computation is None
