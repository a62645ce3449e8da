"""Sizes that a kernel is passed as floating numbers are sizes, not another constant at each size."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from tests.lifting.lifted import computed

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

KERNEL = """// /// fsr
// [sizes]
// n = {min = 1, max = 4194304, timed = 2097152}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// size = {value = "VALUE"}
// a = {low = 0.5, high = 1.5}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const float *x, float *y, TYPE size, double a) {
  unsigned long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) y[i] = BODY;
}
"""


@pytest.mark.parametrize(
    ("body", "value", "type_", "found"),
    [
        ("x[i] + a * (i - size)", "n", "double", "float32(float64(x[i]) + a * (-float64(n) + i))"),
        ("(float)(1.0 / size) * x[i]", "n", "double", "x[i] * float32(1.0 / float64(n))"),
        ("x[i] / (size - 1)", "n + 1", "float", "x[i] / (-1.0 + (n + 1))"),
        ("i + 1 < size ? x[i] : 0", "n", "float", "(x[i] if i <= n - 2 else 0.0)"),
    ],
)
def test_they_are_generalised(tmp_path, body: str, value: str, type_: str, found: str) -> None:
    text = KERNEL.replace("BODY", body).replace("VALUE", value).replace("TYPE", type_)
    assert computed(tmp_path, text) == [f"y[i] = {found}"]


def test_one_number_in_two_types_is_two(tmp_path) -> None:
    """What one of them is rounded to, the other is not."""
    text = KERNEL.replace("VALUE", "n").replace("TYPE size, double a", "float size, double a, double more")
    text = text.replace("// a = {", '// more = {value = "n"}\n// a = {').replace("BODY", "(float)(1.0 / more) / size")
    assert computed(tmp_path, text) == ["y[i] = float32(1.0 / float64(n)) / n"]


@pytest.mark.parametrize(
    ("value", "found"),
    [("1 / (16 * n)", "1 / (16*n)"), ("3 * n / (n + 2)", "3*n / (n + 2)"), ("0.5 * (1 / n)", "(1 / n) * 0.5")],
)
def test_a_number_that_sizes_tell_is_made_of_them(tmp_path, value: str, found: str) -> None:
    text = KERNEL.replace("TYPE size, double a", "float size, double a, int n").replace("i < size", "i < n")
    text = text.replace("VALUE", value).replace("BODY", "x[i] + size")
    assert computed(tmp_path, text) == [f"y[i] = x[i] + {found}"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("1 / ((n - 1) * (m - 1))", "1 / float32(float64(m - 1) * float64(n - 1))"),
        ("1 / (n + 1)**2", "1 / float32(float64(n + 1) * float64(n + 1))"),
        ("2 * n * m", "float32(float64(m) * float64(2*n))"),
    ],
)
def test_a_product_of_sizes_is_one_of_numbers(tmp_path, value: str, found: str) -> None:
    """A grid's spacing squared: no sum of sizes is it."""
    text = KERNEL.replace("TYPE size, double a", "float size, double a, int n, int m").replace("i < size", "i < n")
    text = text.replace("[args]", '[args]\n// m = {value = "m"}\n// n = {value = "n"}')
    text = text.replace("// [args]", "// m = {min = 2, max = 512, timed = 256}\n// [args]", 1)
    text = text.replace("n = {min = 1,", "n = {min = 2,").replace("VALUE", value).replace("BODY", "x[i] + size")
    assert computed(tmp_path, text) == [f"y[i] = x[i] + {found}"]
