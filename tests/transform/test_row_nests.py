"""Rows of several dimensions: threads share the loop along memory, and nests that must stay as they are do."""

from __future__ import annotations

import pytest

from fsr.source.parse import parse_kernels
from fsr.transform.rows.action import ROW_PER_BLOCK, ROW_PER_WARP
from fsr.transform.rows.nests import along_memory
from fsr.transform.target import target_for

SIZES = [{"n": n, "c": c, "hw": hw} for n, c, hw in [(1, 1, 1), (3, 5, 70), (2, 70, 33), (4, 2, 200)]]


def kernel(nest: str, *, hw: int = 512, tolerance: str = 'sum_length = "n * hw"') -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 64, timed = 16}}
// c = {{min = 1, max = 512, timed = 256}}
// hw = {{min = 1, max = 1024, timed = {hw}}}
// [args]
// x = {{role = "in", shape = ["n", "c", "hw"]}}
// y = {{role = "out", shape = ["c"]}}
// [launch]
// grid = "ceil_div(c, 64)"
// block = 64
// [tolerance]
// {tolerance}
// ///
__global__ void k(const float *x, float *y, int n, int c, int hw)
{{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= c) return;
    float s = 0.0f;
    {nest}
    y[row] = s;
}}
"""


NEST = "for (int b = 0; b < n; b++) for (int p = 0; p < hw; p++) s += x[(b * c + row) * hw + p];"


def loops(subject) -> tuple[str, str]:
    (kernel_,) = subject.kernels.values()
    target = target_for(subject, kernel_)
    assert target is not None
    nest = next(s for s in along_memory(kernel_.body, target) if type(s).__name__ == "For")
    return nest.var, nest.body[0].var


@pytest.mark.parametrize("action", [ROW_PER_WARP, ROW_PER_BLOCK], ids=["warp", "block"])
def test_threads_share_the_loop_along_memory(action, subject_from, runner) -> None:
    subject = subject_from(kernel(NEST))
    moves = list(action.moves(subject))
    assert moves
    assert max(m.gain for m in moves) > 2
    for move in moves[:3]:
        changed = action.apply(subject, move)
        assert parse_kernels(changed.source)
        runner.check(subject, changed, *SIZES)
    assert loops(subject) == ("p", "b")


@pytest.mark.parametrize("nest", [
    "for (int b = 0; b < n; b++) for (int p = 0; p <= b; p++) s += x[(b * c + row) * hw];",
    "for (int b = 0; b < n; b++) for (int p = 0; p < hw; p++) s += s * x[(b * c + row) * hw + p];",
    "for (int b = 0; b < n; b++) for (int p = 0; p < hw; p++) s = x[(b * c + row) * hw + p] - s;",
    "for (int b = 0; b < hw; b++) for (int p = 0; p < n; p++) s += x[(p * c + row) * hw + b];",
    "for (int b = 0; b < n; b++) for (int p = 0; p < hw; p++) s += x[(b * c + row) * hw + p] * x[b + p];",
    "for (int b = 0; b < n; b++) for (int p = 0; p < hw; p++) s += other(x[(b * c + row) * hw + p]);",
])  # fmt: skip
def test_other_nests_stay(nest, subject_from) -> None:
    assert loops(subject_from(kernel(nest))) == ("b", "p")


def test_nests_stay_where_rows_are_short_or_results_exact(subject_from) -> None:
    assert loops(subject_from(kernel(NEST, hw=4))) == ("b", "p")
    assert loops(subject_from(kernel(NEST, tolerance="exact = true"))) == ("b", "p")
