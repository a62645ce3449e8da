"""Outputs that are written in part are told of, at some sizes (a launch that is too small) or at all (a border, a shape
that is too large): nothing else would show it, since candidates are held to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.errors import BaselineError
from fsr.evaluation.jobs import baseline_task
from fsr.evaluation.session import close_sessions
from fsr.evaluation.spec import SessionSpec
from fsr.runs.kernel import load_kernel

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// h = {min = 1, max = 1000, timed = 256}
// w = {min = 1, max = 1000, timed = 256}
// [args]
// x = {role = "in", shape = ["h", "w"]}
// y = {role = "out", shape = ["h", "w"]}
// [launch]
// grid = GRID
// block = [8, 8]
// ///
__global__ void k(const float *x, float *y, int h, int w) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= FROM && i < h - FROM && j < w) y[i * w + j] = x[i * w + j] * 2.0f;
}
"""
RIGHT, SWAPPED = '["ceil_div(w, 8)", "ceil_div(h, 8)"]', '["ceil_div(h, 8)", "ceil_div(w, 8)"]'


@pytest.mark.parametrize(
    ("grid", "border", "told"),
    [(RIGHT, "0", []), (RIGHT, "1", ["some in every test"]), (SWAPPED, "0", ["is its launch right at all sizes?"])],
)
def test_outputs_that_are_written_in_part(tmp_path: Path, grid: str, border: str, told: list[str]) -> None:
    path = tmp_path / "k.cu"
    path.write_text(KERNEL.replace("GRID", grid).replace("FROM", border))
    loaded = load_kernel(path)
    try:
        notes = baseline_task(SessionSpec(loaded.contract, loaded.baseline, "host", "sm_90", 0)).notes
    finally:
        close_sessions()
    found = [note for note in notes if "elements of y as they were" in note]
    assert len(found) == len(told)
    assert all(text in note for text, note in zip(told, found, strict=True))


NOTHING = """__device__ int side;
__global__ void k(const float *x, float *y, int h, int w) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < side && j < side) y[i * w + j] = x[i * w + j] * 2.0f;
}
"""


@pytest.mark.parametrize("role", ["out", "inout"])
def test_a_kernel_that_changes_nothing_is_none_to_make_faster(tmp_path: Path, role: str) -> None:
    path = tmp_path / "k.cu"
    head = KERNEL[: KERNEL.index("__global__")].replace("GRID", RIGHT).replace('"out"', f'"{role}"')
    path.write_text(head + NOTHING)
    loaded = load_kernel(path)
    try:
        with pytest.raises(BaselineError, match="changes no element of any output") as told:
            baseline_task(SessionSpec(loaded.contract, loaded.baseline, "host", "sm_90", 0))
    finally:
        close_sessions()
    assert "__device__" in told.value.fix
