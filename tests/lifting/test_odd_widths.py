"""Pixels of three bytes, which the compiler moves as a number of 24 bits, are lifted element by element."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.backends.host.odd_widths import moved_apart
from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from tests.lifting.lifted import computed

watched = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

KERNEL = """// /// fsr
// [sizes]
// n = {min = 1, max = 100000, timed = 50000}
// [args]
// x = {dtype = "ELEMENT", role = "in", shape = ["n", 3]}
// y = {dtype = "ELEMENT", role = "out", shape = ["n", 3]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const TYPE3 *x, TYPE3 *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  BODY
}
"""


@watched
@pytest.mark.parametrize("element", ["uint8", "int16"])
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("y[i] = x[i];", "x[i, j]"),
        ("TYPE3 v = x[i]; y[i] = make_TYPE3(v.z, v.y, v.x);", "x[i, -j + 2]"),
        ("y[i] = make_TYPE3(0, 0, x[i].y);", "(0 if j <= 1 else x[i, 1])"),
        ("y[i] = make_TYPE3(1, x[i].x, 5);", "((2*j + 1) if j <= 0 else (x[i, 0] if j <= 1 else 2*j + 1))"),
    ],
)
def test_elements_of_three_are_told_apart(tmp_path: Path, element: str, body: str, found: str) -> None:
    type_ = "uchar" if element == "uint8" else "short"
    text = KERNEL.replace("BODY", body).replace("TYPE", type_).replace("ELEMENT", element)
    assert computed(tmp_path, text) == [f"y[i, j] = {found}"]


TAKEN = """  %1 = load i24, ptr %p, align 1
  %2 = trunc i24 %1 to i8
  %3 = lshr i24 %1, 16
  %4 = trunc nuw i24 %3 to i8
  %5 = zext i8 %4 to i24
  %6 = zext i8 %2 to i24
  %7 = shl nuw i24 %6, 16
  %8 = or disjoint i24 %7, %5
  %9 = or disjoint i24 %8, 1792
  store i24 %9, ptr %q, align 1"""


def test_loads_and_stores_of_an_odd_width_are_ones_of_its_elements() -> None:
    made = [line.strip() for line in moved_apart(TAKEN.split("\n"))]
    assert [line for line in made if "load" in line] == [
        "%fsr_apart_1 = load i8, ptr %p, align 1",
        "%fsr_apart_3 = load i8, ptr %fsr_apart_2, align 1",
        "%fsr_apart_5 = load i8, ptr %fsr_apart_4, align 1",
    ]
    assert [line for line in made if "store" in line] == [
        "store i8 %fsr_apart_5, ptr %q, align 1",
        "store i8 7, ptr %fsr_apart_6, align 1",
        "store i8 %fsr_apart_1, ptr %fsr_apart_7, align 1",
    ]


@pytest.mark.parametrize(
    "line", ["  store i32 %9, ptr %q, align 4", "  store i24 %unknown, ptr %q, align 1", "  %2 = add i24 %1, 1"]
)
def test_what_is_usual_or_cannot_be_told_stays(line: str) -> None:
    assert moved_apart([line]) == [line]
