"""A fold over a row that an array begins is a loop over its entries, where the contract tells that it may be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsr.computation.canonical import canonical
from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import Affine, Case, Const, Expr, Fold, Load, Number, Op, affine
from fsr.runs.kernel import load_kernel
from fsr.source.parse import parse_kernels
from fsr.transform.computed.scene import cuttings
from fsr.transform.plain.action import Restate
from fsr.transform.protocol import Subject
from fsr.transform.registry import STRUCTURAL

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 100000, timed = 100000}
// nnz = {min = 1, max = 1000000, timed = 1000000}
// [args]
// p = {role = "in", shape = ["rows + 1"], SAID}
// v = {role = "in", shape = ["nnz"]}
// y = {role = "out", shape = ["rows"]}
// n = {value = "rows"}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// ///
__global__ void k(const int *p, const float *v, float *y, int n) { y[threadIdx.x] = v[p[threadIdx.x]]; }
"""
OFFSETS = 'offsets = "nnz"'
NOTHING = Const(0.0, "float32")


def place(constant: int = 0) -> Op:
    return Op("sum", (start(0), Number(Affine((("k0", 1),), constant), "int64")))


def start(more: int) -> Expr:
    return Op("int64", (Load("p", (Number(Affine((("i", 1),), more), "int64"),), "int32"),))


def row(op: str = "sum", term: Expr | None = None, nothing: Const = NOTHING, constant: int = 0, end: int = 1) -> Fold:
    at = place(constant)
    body = Op("select", (Op("gt", (start(end), at)), term or Load("v", (at,), "float32"), nothing))
    return Fold(op, (("k0", Affine((("nnz", 1),), -constant)),), body)


def subject(folder: Path, fold: Expr, said: str = OFFSETS) -> Subject:
    (folder / "k.cu").write_text(TEXT.replace("SAID", said))
    kernel = load_kernel(folder / "k.cu")
    buffers = (
        Buffer("p", "int32", ("rows + 1",)), Buffer("v", "float32", ("nnz",)), Buffer("y", "float32", ("rows",)),
    )  # fmt: skip
    statement = Statement("fold", "y", (("i", "rows"),), fold, (Number(affine("i"), "int64"),))
    found = canonical(Computation(("rows", "nnz"), buffers, (statement,)))
    return Subject(kernel.baseline, parse_kernels(kernel.baseline.source), kernel.contract, False, "sm_90", found)


def plain(folder: Path, fold: Expr, said: str = OFFSETS) -> str:
    """The plain form's text; '' where there is none."""
    of, action = subject(folder, fold, said), Restate(STRUCTURAL)
    moves = [m for m in action.moves(of) if m.param("as") == "itself"]
    return action.apply(of, moves[0]).source if moves else ""


def test_entries_are_counted_from_where_the_row_begins(tmp_path: Path) -> None:
    text = plain(tmp_path, row())
    assert "for (int k0 = p[i]; k0 < p[i + 1]; k0++) {" in text
    assert "+= v[k0];" in text
    assert "for (int k0 = p[i] + 2; k0 < p[i + 1]; k0++) {" in plain(tmp_path, row(constant=2))


def test_a_warp_or_some_lanes_of_it_may_have_a_row(tmp_path: Path) -> None:
    named = [str(m.param("as")) for m in Restate(STRUCTURAL).moves(subject(tmp_path, row()))]
    assert any(name.startswith("row-per-warp") and "lanes=8" in name for name in named)


def test_a_term_that_asks_for_its_place_in_the_row_has_it(tmp_path: Path) -> None:
    weighed = Op("prod", (Load("v", (place(),), "float32"), Number(affine("k0"), "float32")))
    assert "for (int k0 = 0; k0 < p[i + 1] - p[i]; k0++) {" in plain(tmp_path, row(term=weighed))
    number = Op("prod", (Load("v", (place(),), "float32"), Op("float32", (Op("prod", (place(), place())),))))
    assert "for (int k0 = 0; k0 < p[i + 1] - p[i]; k0++) {" in plain(tmp_path, row(term=number))  # of 64 bits


@pytest.mark.parametrize(
    "said",
    [
        'low = 0, high = "nnz"',  # a row may end before it begins, and then begin far behind
        'low = -5, high = "nnz", sorted = true',
        'low = 0, high = "rows", sorted = true',
    ],
)
def test_where_rows_may_be_longer_than_is_told_there_is_no_loop(tmp_path: Path, said: str) -> None:
    assert plain(tmp_path, row(), said) == ""


def test_fewer_terms_than_there_are_entries_are_no_row(tmp_path: Path) -> None:
    short = replace(row(), dims=(("k0", Affine((("nnz", 1),), -1)),))
    assert plain(tmp_path, short) == ""


@pytest.mark.parametrize(
    "fold",
    [
        row("max"),  # nothing is 0, which is more than a negative value
        row(nothing=Const(1.0, "float32")),
        row(end=2),  # two rows
    ],
)
def test_what_only_looks_like_a_row_goes_over_all_entries(tmp_path: Path, fold: Fold) -> None:
    text = plain(tmp_path, fold)
    assert "k0 < p" not in text


@pytest.mark.parametrize("first", [True, False])
def test_rows_that_stay_are_not_written(tmp_path: Path, first: bool) -> None:
    """They may be what a launch behind this one writes, of memory that holds nothing yet."""
    stays = Load("y", (Number(affine("i"), "int64"),), "float32")
    sides = (row(), stays) if first else (stays, row())
    text = plain(tmp_path, Case(affine("i"), Affine((), 4), *sides))
    assert f"if ({'i <= 4' if first else 'i > 4'}) {{\n        y[i] = sum;\n    }}" in text
    assert "y[i];" not in text


def test_no_schedule_reads_all_entries_for_each_row(tmp_path: Path) -> None:
    assert cuttings(subject(tmp_path, row())) == []
    plain_sum = Fold("sum", (("k0", affine("nnz")),), Load("v", (Number(affine("k0"), "int64"),), "float32"))
    assert cuttings(subject(tmp_path, plain_sum)) != []
