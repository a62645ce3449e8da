"""Terms of a sum that all have something in common added to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from tests.lifting.lifted import computed

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

POINTS = """// /// fsr
// entry = "k"
// [sizes]
// p = {min = 1, max = 1024, timed = 96}
// l = {min = 1, max = 100000, timed = 65536}
// [args]
// u = {role = "in", shape = ["l"], low = 0, high = 1}
// a = {role = "in", shape = ["p"], low = 0.5, high = 4}
// y = {role = "out", shape = ["p"]}
// [launch]
// grid = "p"
// block = 32
// ///
__global__ void k(const float *u, const float *a, float *y, int l) {
  __shared__ float s[32];
  int t = threadIdx.x;
  float c = a[blockIdx.x];
  s[t] = 0.0f;
  for (int i = t; i < l; i += 32) s[t] += TERM;
  for (int h = 16; h > 0; h >>= 1) {
    __syncthreads();
    if (t < h) s[t] += s[t + h];
  }
  if (t == 0) y[blockIdx.x] = s[0];
}"""


@pytest.mark.parametrize(("term", "told"), [
    ("1.0f + sqrtf(u[i]) * c", "y[i] = sum(a[i] * sqrt(u[k0]) + 1.0 for k0 in range(l))"),
    ("expf(u[i]) - c", "y[i] = sum(exp(u[k0]) - a[i] for k0 in range(l))"),
    ("c", "y[i] = a[i] * l"),
])  # fmt: skip
def test_what_every_term_has_is_a_part_of_each(tmp_path: Path, term: str, told: str) -> None:
    assert computed(tmp_path, POINTS.replace("TERM", term)) == [told]


def test_what_only_some_terms_have_is_not_taken_for_every_terms(tmp_path: Path) -> None:
    told = computed(tmp_path, POINTS.replace("TERM", "u[i] + (t == 0 && i == 0 ? c : 0.0f)"))
    assert told == ["_sum = sum(u[k0] for k0 in range(l))", "y[i] = _sum + a[i]"]
