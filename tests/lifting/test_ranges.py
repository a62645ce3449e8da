"""Whole numbers whose limits lie far below zero: most tests draw them nearer to it, but what is concluded may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from tests.lifting.lifted import computed

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 100000, timed = 100000}
// [args]
// x = {shape = ["n"], SAID}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// ///
__global__ void k(const int *x, int *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = (unsigned)(x[i] + 50) / 8u;
}
"""


@pytest.mark.parametrize("said", ["low = -100, high = 0", "values = [-100, -1, 0]"])
def test_a_number_that_may_be_negative_keeps_its_sign(tmp_path: Path, said: str) -> None:
    assert computed(tmp_path, TEXT.replace("SAID", said)) == ["y[i] = int32(zext_int64(x[i] + 50) >> 3)"]


@pytest.mark.parametrize("said", ["low = -50, high = 0", "values = [-50, -1, 0]"])
def test_one_that_may_not_needs_none(tmp_path: Path, said: str) -> None:
    assert computed(tmp_path, TEXT.replace("SAID", said)) == ["y[i] = (x[i] + 50) >> 3"]
