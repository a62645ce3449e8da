"""What is run after others that took long is smaller, and keeps what it is for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.evaluation.lighter import Lighter
from fsr.records import Case, CaseKind
from fsr.runs.kernel import load_kernel

LONG_S = 0.5
PAIRS = """// /// fsr
// entry = "pairs"
// [sizes]
// n = {min = 1, max = 4096, timed = 2048}
// m = {min = 1, max = 4096, timed = 2048}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["m"]}
// [launch]
// grid = "ceil_div(m, 64)"
// block = 64
// ///
__global__ void pairs(const float *x, float *y, int n, int m) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= m) return;
  float sum = 0;
  for (int k = 0; k < n; k++) sum += fabsf(x[k] - i);
  y[i] = sum;
}
"""


@pytest.fixture
def pace(tmp_path: Path) -> Lighter:
    (tmp_path / "pairs.cu").write_text(PAIRS)
    kernel = load_kernel(tmp_path / "pairs.cu")
    return Lighter(kernel.contract, kernel.baseline.plan, LONG_S)


def case(n: int, m: int, **more: object) -> Case:
    return replace(Case("c", (("n", n), ("m", m)), "normal", 1), **more)  # type: ignore[arg-type]


def test_sizes_are_halved_until_they_should_not_take_long(pace: Lighter) -> None:
    large = case(4001, 4001)
    assert pace.smaller(large) is large
    pace.took(large, 0.9 * LONG_S)
    assert pace.smaller(large) is large
    pace.took(large, 1.2 * LONG_S)
    assert pace.smaller(large).sizes == (("n", 2001), ("m", 4001))
    pace.took(large, 3 * LONG_S)
    smaller = pace.smaller(large)
    assert smaller.sizes == (("n", 1001), ("m", 1001))
    pace.took(smaller, 4 * LONG_S)  # in another order
    assert pace.smaller(large).sizes == (("n", 125), ("m", 251))
    assert pace.seconds(pace.smaller(large)) < LONG_S


def test_several_blocks_are_left_and_whole_vectors_stay_whole(pace: Lighter) -> None:
    for n in (1, 3, 200, 1000):
        pace.took(case(n, 100), LONG_S)
    least = pace.smaller(case(1001, 130))
    assert least.size_map()["m"] > 64
    vectors = pace.smaller(case(2048, 2048))
    assert vectors.sizes != (("n", 2048), ("m", 2048))
    assert all(value % 8 == 0 for value in vectors.size_map().values())


@pytest.mark.parametrize("more", [{"kind": CaseKind.NAMED}, {"apart": ("x",)}])
def test_sizes_that_are_the_point_of_a_case_stay(pace: Lighter, more: dict[str, object]) -> None:
    named = case(4001, 4001, **more)
    pace.took(named, 10 * LONG_S)
    assert pace.smaller(named) is named


def test_threads_are_fewer_at_smaller_sizes_in_several_blocks_still(pace: Lighter) -> None:
    large = case(300, 4001)
    assert pace.fewer(large, 4096) is large
    sizes = pace.fewer(large, 1000).size_map()
    assert sizes["n"] <= 300
    assert 500 < sizes["m"] <= 1000  # in whole blocks of 64
    assert 64 < pace.fewer(large, 1).size_map()["m"] <= 256  # two blocks at the least
    named = case(300, 4001, kind=CaseKind.NAMED)
    assert pace.fewer(named, 1000) is named
