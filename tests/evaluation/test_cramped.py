"""Kernels that have no small cases: all their cases launch more threads than others may, and run all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.app.checking import judge
from fsr.runs.options import RefineOptions

KERNEL = """// /// fsr
// entry = "halve"
// [sizes]
// {sizes}
// [args]
// x = {{role = "in", shape = ["n", 1024]}}
// y = {{role = "out", shape = ["n", 1024]}}
// n = {{value = "n"}}
// [launch]
// grid = "n"
// block = 1024
// ///
__global__ void halve(const float *x, float *y, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = {value};
}}
"""


@pytest.mark.parametrize(
    "sizes",
    ["n = {min = 272, max = 272, timed = 272}", "n = {min = 260, max = 288, timed = 272}"],
    ids=["fixed", "no small ones"],
)
def test_values_of_every_family_are_tried_where_every_case_is_large(tmp_path: Path, sizes: str) -> None:
    original, good, bad = tmp_path / "halve.cu", tmp_path / "good.cu", tmp_path / "bad.cu"
    original.write_text(KERNEL.format(sizes=sizes, value="0.5f * x[i]"))
    good.write_text(KERNEL.format(sizes=sizes, value="x[i] * 0.5f"))
    bad.write_text(KERNEL.format(sizes=sizes, value="fabsf(x[i]) > 1e30f ? 0.0f : 0.5f * x[i]"))
    options = RefineOptions(original, device="host")
    passed, refused = (judge(path, options, timed=False) for path in (good, bad))
    assert passed.status == "passed"
    assert int(passed.tests["passed"]) > 40
    assert refused.status == "failed"
    assert refused.evidence["kind"] == "value"
