"""A product that leaves its type's range is no infinity where it is fused with a sum: the compiler's choice, in the
original as in a candidate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.evaluation.compiling import build
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.records import Case
from fsr.runs.kernel import load_kernel
from fsr.testgen.oracle import Expected

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 64, timed = 64}
// n = {min = 1, max = 4096, timed = 4096}
// [args]
// a = {role = "in", shape = ["rows", "n"]}
// b = {role = "in", shape = ["rows"]}
// y = {role = "inout", shape = ["n"]}
// n = {value = "n"}
// rows = {value = "rows"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "rows"
// ///
__global__ void k(const float *a, const float *b, float *y, int n, int rows) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float sum = y[i];
  for (int r = 0; r < rows; r++) sum += a[r * n + i] * b[r];
  y[i] = sum;
}
"""
LOOP = "float sum = y[i];\n  for (int r = 0; r < rows; r++) sum += a[r * n + i] * b[r];"
assert LOOP in KERNEL


def failures(tmp_path: Path, loop: str, limits: str = "") -> list[str]:
    """The families of the cases in which a candidate is wrong whose loop this is. ``limits``: of the factor b."""
    (tmp_path / "k.cu").write_text(KERNEL.replace('shape = ["rows"]', f'shape = ["rows"]{limits}'))
    kernel = load_kernel(tmp_path / "k.cu")
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 5, str(tmp_path)))
    candidate = replace(kernel.baseline, source=kernel.baseline.source.replace(LOOP, loop), actions=("other@kernel",))
    built = build(session.spec, candidate)
    assert isinstance(built, Binaries), built
    cases = [*session.search_cases(), *session.held_out_cases(), *session.corner_cases()]
    found = [case for case in cases if session.first_failure(built.run, candidate, [case])[1] is not None]
    session.close()
    return [case.family for case in found]


@pytest.mark.parametrize("loop", [
    # products rounded, and all of them summed before what was there
    "float sum = y[i];\n  for (int r = 0; r < rows; r++) sum = __fadd_rn(sum, __fmul_rn(a[r * n + i], b[r]));",
    "float sum = 0.0f;\n  for (int r = 0; r < rows; r++) sum += a[r * n + i] * b[r];\n  sum += y[i];",
])  # fmt: skip
def test_rounded_products_and_another_order_are_right(tmp_path: Path, loop: str) -> None:
    assert failures(tmp_path, loop) == []


@pytest.mark.parametrize("loop", [
    # what the original never multiplies leaves the range
    "float sum = y[i];\n  for (int r = 0; r < rows; r++) sum += 0.0625f * (16.0f * a[r * n + i] * b[r]);",
    # what is infinite has nothing to do with a product
    "float sum = fabsf(y[i]) > 1e38f ? INFINITY : y[i];\n"
    "  for (int r = 0; r < rows; r++) sum += a[r * n + i] * b[r];",
])  # fmt: skip
def test_what_is_infinite_otherwise_is_wrong(tmp_path: Path, loop: str) -> None:
    limits = ", low = -0.25, high = 0.25"  # with which no product of the original's leaves the range
    assert "spike" in failures(tmp_path, loop, limits)


APART = "float sum = 0.0f;\n  for (int r = 0; r < rows; r++) sum += a[r * n + i] * b[r];\n  sum += y[i];"


def test_where_a_fused_product_alone_is_finite_an_infinity_is_right(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(KERNEL)
    kernel = load_kernel(tmp_path / "k.cu")
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 5, str(tmp_path)))
    cases = (Case("few", (("rows", 4), ("n", 3)), "spike", seed) for seed in range(2000))
    case = next(case for case in cases if only_fused(session.original.expected(case)))
    for loop, right in ((APART, True), (APART.replace("sum += y[i]", "sum = n == 3 ? INFINITY : sum"), False)):
        source = kernel.baseline.source.replace(LOOP, loop)
        candidate = replace(kernel.baseline, source=source, actions=("other@kernel",))
        built = build(session.spec, candidate)
        assert isinstance(built, Binaries), built
        assert (session.first_failure(built.run, candidate, [case])[1] is None) == right
    session.close()


def only_fused(expected: Expected) -> bool:
    """Whether the answer is all numbers, and is not where products are rounded."""
    assert expected.unfused is not None
    return bool(np.isfinite(expected.arrays["y"]).all() and not np.isfinite(expected.unfused["y"]).all())
