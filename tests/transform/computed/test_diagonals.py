"""Permutes of what is contiguous along a diagonal, and of what is read under conditions."""

from __future__ import annotations

import pytest

from fsr.computation.expression import Affine, Case, Const, Expr, Load, Number, affine
from tests.transform.computed.test_families import FAMILY, at, check, computed
from tests.transform.conftest import subject_of

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 700, timed = 600}
// r = {min = 0, max = 600, timed = 100}
// [args]
// x = {role = "in", shape = ["ROWS", "n"], dtype = "DTYPE"}
// y = {role = "out", shape = ["n", "n"], dtype = "DTYPE"}
// n = {value = "n"}
// r = {value = "r"}
// [launch]
// grid = ["ceil_div(n, 32)", "n"]
// block = 32
// ///
__global__ void k(const TYPE* x, TYPE* y, int n, int r) {
  int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y;
  if (j < n) y[i * n + j] = VALUE;
}
"""
SIZES = [(1, 0), (70, 5), (33, 100), (130, 64)]
ZERO = Const(0.0, "float32")


def kernel(rows: str, value: str, dtype: str = "float32", type_: str = "float") -> str:
    text = HEAD.replace("DTYPE", dtype).replace("TYPE", type_)
    return text.replace("ROWS", rows).replace("VALUE", value)


def read(row: Affine) -> Load:
    return Load("x", (Number(row, "int64"), *at("i")), "float32")


def where(left: Affine, right: Affine, value: Expr) -> Case:
    return Case(left, right, value, ZERO)


BAND = where(
    affine("j"), Affine((("i", 1), ("r", 1))), where(
        affine("i"), Affine((("j", 1), ("r", 1))), read(Affine((("i", -1), ("j", 1), ("r", 1)))))
)  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "text", "value"),
    [
        ("2 * r + 1", "abs(j - i) <= r ? x[(j - i + r) * n + i] : 0.f", BAND),
        ("2 * n - 1", "x[(i + j) * n + i]", read(Affine((("i", 1), ("j", 1))))),
        ("n", "j < 1 ? 0.f : x[(j - 1) * n + i]", Case(affine("j"), affine(0), ZERO, read(Affine((("j", 1),), -1)))),
    ],
)
def test_the_tile_is_read_where_it_is_contiguous_and_there(runner, rows, text, value):
    subject = computed(subject_of(kernel(rows, text)), {"y": value}, ("n", "r"))
    moves = check(runner, subject, "tile-permute", SIZES, most=2)
    assert all(m.param("pack") == 1 for m in moves)
    assert "% 32" in FAMILY["tile-permute"].apply(subject, moves[-1]).source or rows == "n"


def test_lines_that_fill_half_a_tile_go_to_smaller_tiles(runner):
    text = kernel("2 * n - 1", "x[(i + j) * n + i]").replace("timed = 600", "timed = 30")
    subject = computed(subject_of(text), {"y": read(Affine((("i", 1), ("j", 1))))}, ("n", "r"))
    assert next(iter(FAMILY["tile-permute"].moves(subject))).param("x") == 32


def test_a_plain_transpose_still_goes_by_packs(runner):
    subject = computed(subject_of(kernel("n", "x[j * n + i]")), {"y": read(affine("j"))}, ("n", "r"))
    moves = check(runner, subject, "tile-permute", [(64, 1), (130, 1)], most=2)
    assert any("along" in dict(m.params) for m in moves)
