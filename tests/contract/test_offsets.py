"""Offsets of rows: arrays that ascend from 0 to how many elements there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.app.checking import judge_own
from fsr.contract.model import Contract
from fsr.contract.show import with_block
from fsr.errors import ContractError
from fsr.records import Case, CaseKind
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.testgen import families
from fsr.testgen.cases import held_out_cases, search_cases, timed_cases
from fsr.testgen.corner_cases import corner_cases
from fsr.testgen.offsets import offsets
from fsr.testgen.values import build

TEXT = """// /// fsr
// entry = "spmv"
// [sizes]
// rows = {min = 0, max = 4096, timed = 1024}
// nnz = {min = 0, max = 65536, timed = 16384}
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// starts = {shape = ["rows + 1"], offsets = "nnz"}
// cols = {shape = ["nnz"], low = 0, high = "n - 1"}
// values = {shape = ["nnz"]}
// x = {shape = ["n"]}
// y = {role = "out", shape = ["rows"]}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// sum_length = "nnz"
// ///
__global__ void spmv(const int *starts, const int *cols, const float *values, const float *x, float *y, int rows)
{
    int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int at = starts[row]; at < starts[row + 1]; at++) sum += values[at] * x[cols[at]];
    y[row] = sum;
}
"""


def contract_of(folder: Path, text: str = TEXT) -> Contract:
    (folder / "kernel.cu").write_text(text)
    return load_kernel(folder / "kernel.cu").contract


def starts(contract: Contract, case: Case) -> np.ndarray:
    return build(contract, case).arrays["starts"]


def test_every_case_ascends_from_nought_to_the_end(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    cases = [
        *search_cases(contract, contract.plan, 3),
        *held_out_cases(contract, 3),
        *corner_cases(contract, 3, 1 << 14),
    ]
    seen = set()
    for case in cases:
        found, rows, nnz = starts(contract, case), case.size_map()["rows"], case.size_map()["nnz"]
        assert found.shape == (rows + 1,)
        assert found[0] == 0
        assert (np.diff(found.astype(np.int64)) >= 0).all()
        assert found[-1] == (nnz if rows else 0)
        lengths = np.diff(found)
        if rows > 8 and nnz > 8 * rows:
            mean = nnz / rows
            seen |= {"one long"} if lengths.max() > 0.9 * nnz else set()
            seen |= {"some empty"} if 0.1 < (lengths == 0).mean() < 0.97 else set()
            seen |= {"equal"} if lengths.max() - lengths.min() <= 1 else set()
            seen |= {"skewed"} if 4 * mean < lengths.max() < 0.9 * nnz and lengths.min() > 0 else set()
            seen |= {"about equal"} if lengths.min() > 0 and 1.2 * mean < lengths.max() < 2.5 * mean else set()
    assert seen == {"one long", "some empty", "equal", "skewed", "about equal"}


def test_timed_rows_are_of_about_one_length(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    (case, *_) = timed_cases(contract, 0)
    lengths = np.diff(starts(contract, case))
    assert lengths.mean() == 16
    assert 2 < lengths.std() < 6
    assert lengths.min() > 0


def test_nothing_is_left_to_no_rows_and_rows_of_nothing(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    assert starts(contract, Case("c", (("rows", 0), ("nnz", 50), ("n", 9)), "normal", 1)).tolist() == [0]
    assert starts(contract, Case("c", (("rows", 3), ("nnz", 0), ("n", 9)), "normal", 1)).tolist() == [0, 0, 0, 0]


def test_the_ends_are_all_in_the_first_row_or_in_the_last(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    found = [
        starts(contract, Case("c", (("rows", 3), ("nnz", 9), ("n", 9)), families.ends([]), seed)).tolist()
        for seed in range(9)
    ]
    assert {tuple(one) for one in found} == {(0, 9, 9, 9), (0, 0, 0, 9)}


def test_long_arrays_and_several_of_them() -> None:
    for kind in (CaseKind.SEARCH, CaseKind.TIMED):
        case = Case("c", (), "wide", 1, kind=kind)
        found = offsets((2, 3_000_001), np.dtype(np.int64), 2**33, case, np.random.default_rng(1))
        assert found.shape == (2, 3_000_001)
        assert (found[:, 0] == 0).all()
        assert (found[:, -1] == 2**33).all()
        assert (np.diff(found, axis=-1) >= 0).all()
        assert (found[0] != found[1]).any()


def test_they_are_shown_as_they_were_stated(tmp_path: Path) -> None:
    before = contract_of(tmp_path)
    text = with_block(TEXT, before)
    assert 'shape = ["rows + 1"], offsets = "nnz"}' in text
    assert replace(contract_of(tmp_path, text), origin=before.origin) == before


@pytest.mark.parametrize(
    ("old", "new", "says", "line"),
    [
        ('offsets = "nnz"', 'offsets = "nnz", low = 0', "args.starts has offsets, and low beside them", 8),
        ('offsets = "nnz"', 'offsets = "nnz", sorted = true', "args.starts has offsets, and sorted beside them", 8),
        ('values = {shape = ["nnz"]', 'values = {shape = ["nnz"], offsets = 3', "the offsets values are float32", 10),
        ('offsets = "nnz"', 'offsets = "nnz - 1"', "the offsets starts end at -1 at the smallest sizes", 8),
        ("max = 65536", "max = 5000000000", "the offsets starts end at 5,000,000,000 at the largest sizes", 8),
        ('offsets = "nnz"', 'offsets = "m"', "m", 8),
        ("// x = ", "// rows = {offsets = 3}\n// x = ", "the scalar rows has offsets", 11),
    ],
)
def test_what_cannot_be_is_told(tmp_path: Path, old: str, new: str, says: str, line: int) -> None:
    with pytest.raises(ContractError) as refused:
        contract_of(tmp_path, TEXT.replace(old, new))
    assert says in refused.value.what
    assert refused.value.where.endswith(f"kernel.cu:{line}")


def test_a_kernel_that_needs_them_passes(tmp_path: Path) -> None:
    contract_of(tmp_path)
    assert judge_own(RefineOptions(tmp_path / "kernel.cu", "host")).status == "passed"
