"""Whether the original is run once more for overflows of its integers: where callers choose some."""

from __future__ import annotations

import pytest

from fsr.testgen.bounds import has_free_integers
from tests.transform.conftest import subject_of

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 512, timed = 256}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// s = {VALUES}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 32)"
// block = 32
// ///
__global__ void k(const TYPE *x, RESULT *y, int s, int n) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i < n) y[i] = s ? x[i] : 2 * x[i];
}
"""


@pytest.mark.parametrize(
    ("element", "result", "values", "free"),
    [
        ("float", "float", "values = [0, 1]", False),
        ("float", "int", "value = 3", False),
        ("int", "float", "values = [0, 1]", True),
        ("unsigned char", "float", "value = 1", True),
        ("float", "float", "low = 0, high = 9", True),
    ],
)
def test_integers_that_callers_choose(element: str, result: str, values: str, free: bool) -> None:
    text = KERNEL.replace("TYPE", element).replace("RESULT", result).replace("VALUES", values)
    assert has_free_integers(subject_of(text).contract) == free
