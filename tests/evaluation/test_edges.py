"""An input that lies exactly on an edge of the original's (a comparison, a step, a conversion) is on one side of it for
every right kernel, however it rounds; what was computed may fall on either."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.runs.kernel import load_kernel

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 100000, timed = 4096}
// [args]
// x = {role = "in", dtype = "TYPE", shape = ["n"], low = -8.0, high = 8.0}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
#include <cuda_fp16.h>
__global__ void k(const CTYPE *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { const float a = x[i]; y[i] = BODY; }
}
"""
ON_THE_EDGE = [
    "a > 1.0f ? 3.0f : 0.25f",
    "a >= 1.0f ? 3.0f : 0.25f",
    "-a < -1.0f ? 3.0f : 0.25f",
    "a == 1.0f ? 3.0f : 0.25f",
    "a == (float)x[0] ? 3.0f : 0.25f",
    "fmaxf(a, 0.5f) > 1.0f ? 3.0f : 0.25f",
    "(float)(int)a",
    "(float)(unsigned char)a",
    "floorf(a)",
    "-ceilf(-a)",
    "fmodf(a, 1.0f)",
    "fmodf(2.0f, a)",
    "a + (a - (float)x[0]) * 0.3f > 1.0f ? 3.0f : 0.25f",
    "fmaf(a - (float)x[0], 0.3f, a) >= 1.0f ? 3.0f : 0.25f",
    "a * (float)x[0] / a > 1.0f ? 3.0f : 0.25f",
]
COMPUTED = ["a * 0.1f * 10.0f > 1.0f ? 3.0f : 0.25f", "floorf(a / 3.0f * 3.0f)", "(float)(int)(a * 0.7f / 0.7f)"]


def noise(tmp_path: Path, body: str, dtype: str) -> float:
    """How far rounding may carry an answer, as samples of it tell, where all inputs are 1."""
    path = tmp_path / "k.cu"
    ctype = {"float32": "float", "float16": "half"}[dtype]
    path.write_text(KERNEL.replace("CTYPE", ctype).replace("TYPE", dtype).replace("BODY", body))
    loaded = load_kernel(path)
    spec = SessionSpec(loaded.contract, loaded.baseline, "host", "sm_90", 0)
    session = Session(spec)
    try:
        found = session.original.expected(replace(spec.smoke_case(), family="ones"))
        assert (abs(found.arrays["y"]) <= 3.0).all()
        assert found.noise is not None
        return float(np.max(found.noise.error["y"]))
    finally:
        session.close()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("body", ON_THE_EDGE)
def test_inputs_stay_on_their_side_of_an_edge(tmp_path: Path, body: str, dtype: str) -> None:
    assert noise(tmp_path, body, dtype) < 1e-6


@pytest.mark.parametrize("body", COMPUTED)
def test_what_is_computed_may_fall_on_either(tmp_path: Path, body: str) -> None:
    assert noise(tmp_path, body, "float32") > 0.5
