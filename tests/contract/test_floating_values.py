"""Floating numbers that are each one of a list: flags, levels, codes that some format keeps as floats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.app.checking import judge
from fsr.contract.model import Contract
from fsr.contract.show import with_block
from fsr.errors import ContractError
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.source.promises import conditions
from fsr.testgen.cases import held_out_cases, search_cases, timed_cases
from fsr.testgen.large import large_cases
from fsr.testgen.shaking import moved_arrays, nudged, perturbed
from fsr.testgen.values import build

KERNEL = """// /// fsr
// entry = "freeze"
// [sizes]
// n = {min = 1, max = 200000, timed = 150000}
// [args]
// phase = {shape = ["n"], values = [0.0, 1.0, 0.5]}
// x = {shape = ["n"], low = -2, high = 2}
// y = {role = "out", shape = ["n"]}
// level = {values = [0.1, 2.5]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
__global__ void freeze(const float *phase, const float *x, float *y, float level, int n)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    float v = x[i] * level;
    if (phase[i] != 1.0f) v = phase[i] == 0.5f ? v * v : -v;
    y[i] = v;
}
"""


def contract_of(folder: Path, text: str = KERNEL) -> Contract:
    (folder / "kernel.cu").write_text(text)
    return load_kernel(folder / "kernel.cu").contract


def test_no_other_number_comes(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    plan, levels = contract.plan, set[float]()
    cases = [*search_cases(contract, plan, 0), *held_out_cases(contract, 0), *timed_cases(contract, 0)]
    for case in [*cases, *large_cases(contract, 0, 100_000)]:
        data = build(contract, case)
        assert data.arrays["phase"].dtype == np.float32
        assert set(np.unique(data.arrays["phase"]).tolist()) <= {0.0, 0.5, 1.0}
        levels.add(float(data.scalars["level"].value))
    assert levels == {0.1, 2.5}
    timed = build(contract, timed_cases(contract, 0)[0], drawn=True).arrays["phase"]
    counts = [int((timed == v).sum()) for v in (0.0, 0.5, 1.0)]
    assert max(counts) < 1.1 * min(counts)


def test_they_are_moved_by_nothing(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    case = search_cases(contract, contract.plan, 0)[3]
    data = build(contract, case)
    moved = [*perturbed(contract, case, data), moved_arrays(contract, case, data, 1), nudged(contract, case, data, 2)]
    assert all((one.arrays["phase"] == data.arrays["phase"]).all() for one in moved)
    assert any((one.arrays["x"] != data.arrays["x"]).any() for one in moved)


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("phase[i] != 1.0f", "phase[i] < 0.75f", "passed"),
        ("phase[i] == 0.5f", "phase[i] > 0.0f", "passed"),
        ("phase[i] != 1.0f", "phase[i] == 0.0f", "failed"),
        ("x[i] * level", "x[i] * (level > 1.0f ? 2.5f : 0.1f)", "passed"),
        ("x[i] * level", "x[i] * 2.5f", "failed"),
    ],
)
def test_candidates_are_held_to_each_of_them(tmp_path: Path, old: str, new: str, status: str) -> None:
    assert old in KERNEL
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "candidate.cu").write_text(KERNEL.replace(old, new))
    assert judge(tmp_path / "candidate.cu", RefineOptions(tmp_path / "kernel.cu", "host"), timed=False).status == status


def test_launchers_and_shown_contracts_tell_them(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    assert "(level == (float)0.1 || level == (float)2.5)" in conditions(contract, {"n": "n"})
    again = contract_of(tmp_path, with_block(KERNEL[KERNEL.index("__global__") :], contract))
    assert again.argument("phase") == contract.argument("phase")
    assert replace(again.argument("level")) == contract.argument("level")


@pytest.mark.parametrize("values", ['[0.0, "1"]', "[nan]", "[0.5, 0.5]", "[]", "[inf, 0]"])
def test_what_cannot_be_is_told(tmp_path: Path, values: str) -> None:
    with pytest.raises(ContractError, match=r"args\.phase"):
        contract_of(tmp_path, KERNEL.replace("[0.0, 1.0, 0.5]", values))
