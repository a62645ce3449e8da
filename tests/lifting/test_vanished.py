"""Elements that read the same place twice, and so are nought, are no case of their own."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.expression import Case, walk
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 500, timed = 200}
// m = {min = 1, max = 300, timed = 64}
// [args]
// x = {role = "in", shape = ["n", "m"]}
// y = {role = "out", shape = SHAPE}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = ["ceil_div(COLUMNS, 16)", "ceil_div(n, 16)"]
// block = [16, 16]
// ///
__global__ void k(const float *x, float *y, int n, int m) {
  int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
BODY
}
"""


def lifted(shape: str, columns: str, body: str):
    subject = subject_of(HEAD.replace("SHAPE", shape).replace("COLUMNS", columns).replace("BODY", body))
    found = lift(subject.contract, subject.candidate, limit_s=60)
    assert found.computation is not None, found.why
    return found.computation


@pytest.mark.parametrize(("term", "told"), [
    ("d * d", "y[i, j] = sum((x[i, k0] - x[j, k0]) * (x[i, k0] - x[j, k0]) for k0 in range(m))"),
    ("fabsf(d)", "y[i, j] = sum(fabs(x[i, k0] - x[j, k0]) for k0 in range(m))"),
])  # fmt: skip
def test_the_diagonal_of_all_distances_is_no_case(term, told):
    body = f"""  if (i >= n || j >= n) return;
  float sum = 0.0f;
  for (int c = 0; c < m; ++c) {{ float d = x[i * m + c] - x[j * m + c]; sum += {term}; }}
  y[i * n + j] = sum;"""
    found = lifted('["n", "n"]', "n", body)
    assert lines(found) == [told]


def test_a_difference_at_a_clamped_edge_is_one():
    body = """  if (i >= n || j >= m) return;
  y[i * m + j] = x[i * m + min(j + 1, m - 1)] - x[i * m + j];"""
    found = lifted('["n", "m"]', "m", body)
    told = [e for s in found.statements if s.value is not None for e in walk(s.value) if isinstance(e, Case)]
    assert len(told) <= 1


def test_a_variance_kept_up_to_date_is_a_sum():
    body = """  if (i >= n || j > 0) return;
  float mean = 0.0f, spread = 0.0f;
  for (int c = 0; c < m; ++c) {
    float d = x[i * m + c] - mean;
    mean += d / (c + 1);
    spread += d * (x[i * m + c] - mean);
  }
  y[i] = spread;"""
    found = lifted('["n"]', "m", body)
    assert not [e for s in found.statements if s.value is not None for e in walk(s.value) if isinstance(e, Case)]
