"""Conditions that come again along a dimension: the first of every eight in a tile, neighbours by a row's parity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.expression import Affine, Case, Const, Load, Number, Op, Remainder
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.lifting.turns import by_turn, cells_about_turns, periods
from fsr.runs.kernel import load_kernel

watched = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "step"
// [sizes]
// h = {min = 1, max = 2000, timed = 2000}
// w = {min = 1, max = 2000, timed = 2000}
// [args]
// x = {role = "in", shape = ["h", "w"], low = -9, high = 9}
// y = {role = "out", shape = ["h", "w"]}
// [launch]
// grid = ["ceil_div(w, 64)", "h"]
// block = 64
// ///
__global__ void step(const int *x, int *y, int h, int w) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (j >= w) return;
"""
FOUND = {
    "first of a tile": ("y[i * w + j] = x[i * w + j] - (j % 8 ? x[i * w + j - 1] : 0);",
                        "(0 if j <= 0 else (-x[i, j - 1] if (j % 8 > 0) else 0))"),
    "of its rows": ("y[i * w + j] = x[i * w + j] - ((i & 15) == 0 ? 0 : x[(i - 1) * w + j]);",
                    "(0 if i <= 0 else (-x[i - 1, j] if (i % 16 > 0) else 0))"),
    "by parity": (
        "int a = (j + 1) % w, b = (j + w - 1) % w, o = i % 2 ? a : b;\n"
        "y[i * w + j] = x[i * w + j] + x[(i + 1) % h * w + j] + x[(i + h - 1) % h * w + j] + x[i * w + o];",
        "((x[i, j + 1] if j <= w - 2 else x[i, 0]) if (i % 2 > 0) else (x[i, w - 1] if j <= 0 else x[i, j - 1]))",
    ),
}  # fmt: skip
# Which of the elements differ is no matter of a period of one length.
REFUSED = {
    "of another number each": "y[i * w + j] = x[i * w + j] - ((j * j) % 23 < 9 && j ? x[i * w + j - 1] : 0);",
    "where a size tells": "y[i * w + j] = x[i * w + j] - (j % (h / 2 + 3) && j ? x[i * w + j - 1] : 0);",
}


def told(work: str, path: Path) -> str:
    """The line of the result, '' where none is known."""
    kernel = path / "step.cu"
    kernel.write_text(f"{HEAD}  {work}\n}}\n")
    loaded = load_kernel(kernel)
    found = lift(loaded.contract, loaded.baseline, limit_s=20)
    return lines(found.computation)[-1] if found.computation is not None else ""


@watched
@pytest.mark.parametrize("name", FOUND)
def test_conditions_that_come_again_are_found(name: str, tmp_path: Path) -> None:
    work, line = FOUND[name]
    assert line in told(work, tmp_path)


@watched
@pytest.mark.parametrize("name", REFUSED)
def test_what_comes_again_at_no_fixed_length_is_not_known(name: str, tmp_path: Path) -> None:
    assert told(REFUSED[name], tmp_path) == ""


def test_periods_are_told_by_where_elements_differ() -> None:
    i, j = np.indices((37, 70))
    assert periods((j % 8 == 0) & (j > 0)) == (8,)
    assert periods(((i % 16 == 0) & (i > 0)) | ((j % 8 == 0) & (j > 0))) == (8, 16)


def test_differences_by_chance_or_everywhere_tell_no_period() -> None:
    assert periods(np.ones((37, 70), bool)) == ()
    assert periods(np.zeros((37, 70), bool)) == ()
    for seed in range(40):
        assert periods(np.random.default_rng(seed).random((37, 70)) < 0.2) == ()


def test_nothing_is_read_before_a_row_begins() -> None:
    at = Number(Affine((("j", 1),), -1), "int64")
    left, right = Remainder(Affine((("j", 1),)), 8), Affine()
    found = by_turn(left, right, Const(0, "int32"), Load("x", (at,), "int32"))
    assert isinstance(found, Case)
    assert (found.left, found.right, found.yes) == (Affine((("j", 1),)), Affine(), Const(0, "int32"))


def test_a_condition_that_decides_nothing_goes() -> None:
    same = Const(1, "int32")
    assert by_turn(Remainder(Affine((("j", 1),)), 8), Affine(), same, same) == same
    other = by_turn(Remainder(Affine((("j", 1),)), 8), Affine(), same, Const(2, "int32"))
    assert isinstance(other, Op)


def test_elements_on_either_side_of_a_period_are_looked_at() -> None:
    seen = {place[0] for place in cells_about_turns((40,), (8,))}
    assert {0, 1, 7, 8, 9, 15, 16, 17, 39} <= seen
    assert max(seen) < 40
