"""Whether threads have to do with one another: by what they do, not by what a name also stands for."""

from __future__ import annotations

import pytest

from fsr.transform.launch.cooperation import cooperates
from fsr.transform.target import targets

TEXT = """
// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096}
// [args]
// y = {role = "inout", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// ///
__device__ float lanes() { return threadIdx.x % 32; }
__device__ float twice(float v) { return 2 * v; }
__global__ void k(float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
"""


@pytest.mark.parametrize(
    ("body", "cooperate"),
    [
        ("if (i < n) y[i] = twice(y[i]);", False),
        ("float lanes = y[0]; if (i < n) y[i] = twice(lanes);", False),  # a variable of a function's name
        ("if (i < n) y[i] = twice(lanes());", True),
        ("float (*f)() = lanes; if (i < n) y[i] = f();", True),
        ("if (i < n) y[i] = threadIdx.x;", False),
        ("if (i < n) y[i] = warpSize;", True),
        ("__syncthreads(); if (i < n) y[i] = 1;", True),
        ("if (i < n) y[i] = __shfl_sync(~0u, y[i], 0);", True),
    ],
)
def test_cooperates(subject_from, body, cooperate):
    (target,) = targets(subject_from(TEXT.replace("BODY", body)))
    assert cooperates(target) is cooperate
