"""Limits and values that differ along the last extent of a buffer or of a `__constant__` array."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.app.checking import judge_own
from fsr.contract.model import Contract
from fsr.contract.show import with_block
from fsr.errors import ContractError
from fsr.hardware.dtypes import is_float
from fsr.records import Case
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.testgen import families
from fsr.testgen.cases import held_out_cases, search_cases
from fsr.testgen.corner_cases import corner_cases
from fsr.testgen.large import brim_cases, far_cases
from fsr.testgen.shaking import perturbed
from fsr.testgen.values import build

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 0, max = 4096, timed = 4096}
// b = {min = 1, max = 16, timed = 4}
// [args]
// rois = {shape = ["n", 5], low = [0, 0, 0, 50, 50], high = ["b - 1", 50, 50, 100, 100]}
// at = {shape = ["n", 2], low = 0, high = ["n - 1", "b - 1"]}
// c_size = {value = ["n", "b", 7]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__constant__ int3 c_size;
__global__ void k(const float *rois, const int *at, float *y, int n)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= c_size.x) return;
    const float *r = rois + 5 * i;
    float area = (r[3] - r[1]) * (r[4] - r[2]);
    y[i] = area < 0 || at[2 * i + 1] >= c_size.y || c_size.z != 7 ? -1e30f : r[0] + area + at[2 * at[2 * i]];
}
"""


def contract_of(folder: Path, text: str = TEXT) -> Contract:
    (folder / "kernel.cu").write_text(text)
    return load_kernel(folder / "kernel.cu").contract


def inside(contract: Contract, case: Case, arrays: dict[str, np.ndarray]) -> bool:
    sizes = case.size_map()
    n, b = sizes["n"], sizes["b"]
    rois, at = arrays["rois"].astype(float), arrays["at"]
    return (
        bool((rois >= [0, 0, 0, 50, 50]).all() and (rois <= [b - 1, 50, 50, 100, 100]).all())
        and bool((at >= 0).all() and (at <= [max(n - 1, 0), b - 1]).all())
        and arrays["c_size"].tolist() == [n, b, 7]
    )


def test_each_element_stays_within_its_own_limits(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    rng = np.random.default_rng(0)
    cases = [*search_cases(contract, contract.plan, 3), *held_out_cases(contract, 3), *brim_cases(contract, 3, 1 << 16)]
    cases += corner_cases(contract, 3, 1 << 14)
    assert len({case.family for case in cases}) > 20
    for case in (c for c in cases if c.size_map()["n"] < 1 << 12 or rng.random() < 0.2):
        data = build(contract, case)
        assert inside(contract, case, dict(data.arrays)), case
        again = build(contract, case)
        assert all((data.arrays[name] == again.arrays[name]).all() for name in ("rois", "at"))


def test_both_ends_of_each_are_reached(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    case = Case("c", (("n", 200), ("b", 9)), families.ends([]), 1)
    assert (build(contract, case).arrays["rois"] == [8, 50, 50, 100, 100]).all()
    assert (build(contract, case).arrays["at"] == [199, 8]).all()
    low = replace(case, family=families.ends(["rois", "at"]))
    assert (build(contract, low).arrays["rois"] == [0, 0, 0, 50, 50]).all()
    assert not build(contract, low).arrays["at"].any()
    usual = build(contract, replace(case, family="normal")).arrays["rois"]
    assert len(np.unique(usual, axis=0)) > 150
    assert abs(np.corrcoef(usual[:, 1], usual[:, 2])[0, 1]) < 0.3  # drawn apart, though limited alike


def test_what_is_moved_stays_inside(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    for family in ("normal", families.ends([]), families.ends(["rois"])):
        case = Case("c", (("n", 200), ("b", 9)), family, 1)
        data = build(contract, case)
        moved = list(perturbed(contract, case, data))
        assert all(inside(contract, case, dict(one.arrays)) for one in moved)
        assert any((one.arrays["rois"] != data.arrays["rois"]).any() for one in moved)
        assert is_float(moved[0].arrays["rois"].dtype)


def test_they_are_shown_as_they_were_stated(tmp_path: Path) -> None:
    before = contract_of(tmp_path)
    text = with_block(TEXT, before)
    assert 'low = [0, 0, 0, 50, 50], high = ["b - 1", 50, 50, 100, 100]' in text
    assert replace(contract_of(tmp_path, text), origin=before.origin) == before


def test_what_reasons_by_limits_sees_the_furthest(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    assert contract.argument("at").constraints.high == "max(n - 1, b - 1)"
    assert contract.argument("rois").constraints.low == "min(0, 50)"


def test_far_cases_need_what_can_be_drawn_in_parts(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    large = replace(contract, sizes=tuple(replace(s, maximum=1 << 31) for s in contract.sizes[:1]) + contract.sizes[1:])
    assert far_cases(large, 0) == []
    constant_only = replace(large, args=tuple(a for a in large.args if a.name not in ("rois", "at")))
    assert far_cases(constant_only, 0)


@pytest.mark.parametrize(
    ("old", "new", "says", "line"),
    [
        ("low = [0, 0, 0, 50, 50]", "low = [0, 0, 0, 50]",
         "rois has 4 numbers for low along its last extent, which is 5", 7),
        ('["n", "b", 7]', '["n", "b"]', "c_size has 2 numbers for value along its last extent, which is 3", 9),
        ("low = [0, 0, 0, 50, 50]", "low = []", "low is an empty list", 7),
        ("low = [0, 0, 0, 50, 50]", 'low = [0, 0, 0, 50, "120 if n > 100 else 70"]',
         "the values of rois[..., 4] go from 120 to 100 at timed sizes 1", 7),
        ("low = [0, 0, 0, 50, 50]", 'low = [0, 0, 0, 50, "m"]', "m", 7),
        ('"b - 1"]}', '"b - 1"], sorted = true}', "args.at is sorted, and its elements have limits of their own", 8),
        ("// y = ", '// n = {value = ["n", 1]}\n// y = ', "and n is one number", 10),
    ],
)  # fmt: skip
def test_lists_that_do_not_fit_are_told(tmp_path: Path, old: str, new: str, says: str, line: int) -> None:
    assert old in TEXT
    with pytest.raises(ContractError) as refused:
        contract_of(tmp_path, TEXT.replace(old, new))
    assert says in refused.value.what
    assert refused.value.where.endswith(f"kernel.cu:{line}")


def test_a_kernel_that_needs_them_passes(tmp_path: Path) -> None:
    contract_of(tmp_path)
    assert judge_own(RefineOptions(tmp_path / "kernel.cu", "host")).status == "passed"
