"""Macros that a contract gives a whole number, in its expressions."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.app.checking import judge_own
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions

KERNEL = """// /// fsr
// entry = "weights"
// defines = ["POINTS=6", "FAST", "WIDE=(32)"]
// [sizes]
// n = {min = 1, max = 3000, timed = 2000}
// total = "n * POINTS"
// [args]
// w = {role = "in", shape = ["POINTS"], low = 0, high = 1}
// y = {role = "out", shape = ["n", "POINTS"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(total, WIDE)"
// block = "WIDE"
// ///
__global__ void weights(const float *w, float *y, int n)
{
    int i = blockIdx.x * WIDE + threadIdx.x;
    if (i < n * POINTS) y[i] = w[i % POINTS] * (i / POINTS);
}
"""


def contract_of(folder: Path, text: str = KERNEL) -> Contract:
    (folder / "kernel.cu").write_text(text)
    return load_kernel(folder / "kernel.cu").contract


def test_they_stand_for_their_numbers(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    assert contract.shape(contract.argument("y"), {"n": 5}) == (5, 6)
    assert contract.with_derived({"n": 5}) == {"n": 5, "total": 30, "POINTS": 6, "WIDE": 32}
    assert judge_own(RefineOptions(tmp_path / "kernel.cu", "host")).status == "passed"


def test_another_number_is_another_contract(tmp_path: Path) -> None:
    contract = contract_of(tmp_path, KERNEL.replace("POINTS=6", "POINTS=9"))
    assert contract.shape(contract.argument("w"), {"n": 5}) == (9,)


def test_a_size_of_that_name_is_the_size(tmp_path: Path) -> None:
    contract = contract_of(tmp_path, KERNEL.replace("// total", "// WIDE = 64\n// total"))
    assert {s.name for s in contract.sizes} == {"n", "WIDE"}


@pytest.mark.parametrize("macro", ["POINTS=2 * 3", "POINTS", "POINTS=3.5"])
def test_others_are_no_numbers(tmp_path: Path, macro: str) -> None:
    with pytest.raises(ContractError, match="POINTS"):
        contract_of(tmp_path, KERNEL.replace("POINTS=6", macro))
