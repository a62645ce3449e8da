"""Where rounding alone decides whether there is an answer, as of the root of n Σx² - (Σx)² of equal values, a right
kernel may have none where the original has one, and the other way round; nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.runs.kernel import load_kernel
from fsr.testgen.compare import compare

KERNEL = """// /// fsr
// entry = "deviation"
// [sizes]
// rows = {min = 1, max = 4096, timed = 512}
// cols = {min = 2, max = 512, timed = 128}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// sum_length = "cols"
// ///
__global__ void deviation(const float *x, float *y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f, squares = 0.0f;
    for (int j = 0; j < cols; ++j) {
        const float a = x[row * cols + j] * 0.3f;
        sum += a;
        squares += a * a;
    }
    y[row] = ROOT(cols * squares - sum * sum);
}
"""


def mismatches(tmp_path: Path, family: str, answers: float | None, root: str = "sqrtf") -> list[str]:
    """What is wrong with one answer in every row, or with NaN in place of every other answer of the original's."""
    path = tmp_path / "k.cu"
    path.write_text(KERNEL.replace("ROOT", root))
    loaded = load_kernel(path)
    session = Session(SessionSpec(loaded.contract, loaded.baseline, "host", "sm_90", 0))
    try:
        case = replace(session.spec.smoke_case(), family=family, sizes=(("rows", 64), ("cols", 100)))
        expected = session.original.expected(case)
        got = expected.arrays["y"].copy()
        got[:: 1 if answers is not None else 2] = np.nan if answers is None else answers
        return [found.kind for found in compare(loaded.contract, case, {"y": got}, expected)]
    finally:
        session.close()


@pytest.mark.parametrize("answers", [np.nan, 0.0, 1e-3])
def test_of_equal_values_there_may_be_an_answer_or_none(tmp_path: Path, answers: float) -> None:
    assert mismatches(tmp_path, "ones", answers) == []


def test_an_answer_is_no_larger_than_rounding_makes_it(tmp_path: Path) -> None:
    assert mismatches(tmp_path, "ones", 10.0) != []


def test_of_other_values_there_is_an_answer(tmp_path: Path) -> None:
    assert mismatches(tmp_path, "normal", None) == ["non-finite"]


def test_where_no_rounding_leads_to_no_number_there_is_an_answer(tmp_path: Path) -> None:
    assert mismatches(tmp_path, "ones", np.nan, root="fabsf") == ["non-finite"]
