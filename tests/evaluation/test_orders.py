"""Watched in other orders: a race that only equal values bring about is seen whatever the seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.evaluation.watching import watch
from fsr.records import FaultKind
from fsr.runs.kernel import load_kernel

ORIGINAL = """// /// fsr
// entry = "least"
// [sizes]
// rows = {min = 0, max = 4096, timed = 256}
// cols = {min = 1, max = 4096, timed = 512}
// [args]
// x = {role = "in", shape = ["rows", "cols"], finite = true}
// place = {role = "out", dtype = "int32", shape = ["rows"]}
// cols = {value = "cols"}
// [launch]
// grid = "rows"
// block = 64
// ///
__global__ void least(const float *x, int *place, int cols)
{
    __shared__ float values[64];
    __shared__ int first;
    const float *row = x + (size_t)blockIdx.x * cols;
    int t = threadIdx.x, mine = t;
    for (int j = t; j < cols; j += 64) if (row[j] < row[mine]) mine = j;
    values[t] = t < cols ? row[mine] : INFINITY;
    if (t == 0) first = cols;
    __syncthreads();
    float lowest = INFINITY;
    for (int k = 0; k < 64; k++) lowest = fminf(lowest, values[k]);
    if (t < cols && values[t] == lowest) atomicMin(&first, mine);
    __syncthreads();
    if (t == 0) place[blockIdx.x] = first;
}
"""
ON_TIES = ("atomicMin(&first, mine);", "{ if (mine < first) first = mine; }")


@pytest.mark.parametrize("seed", range(4))
def test_a_race_on_equal_values_only_is_seen(seed: int, tmp_path: Path) -> None:
    (tmp_path / "least.cu").write_text(ORIGINAL)
    kernel = load_kernel(tmp_path / "least.cu", None)
    racing = replace(kernel.baseline, source=kernel.baseline.source.replace(*ON_TIES))
    assert racing != kernel.baseline
    session = Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", seed, str(tmp_path)))
    try:
        cases = session.held_out_cases()
        right, said = watch(session, kernel.baseline, cases)
        wrong, _ = watch(session, racing, cases)
    finally:
        session.close()
    assert (right, said) == (None, "silent")
    assert wrong is not None
    assert wrong.fault is not None
    assert wrong.fault.kind is FaultKind.RACE
