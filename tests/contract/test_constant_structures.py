"""``__constant__`` structures that host code fills: each member with what is said of it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fsr.app.checking import judge
from fsr.contract.model import Contract
from fsr.contract.show import with_block
from fsr.errors import ContractError
from fsr.records import Case
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.testgen.values import build

KERNEL = """// /// fsr
// entry = "sim::step"
// [sizes]
// n = {min = 1, max = 5000, timed = 4000}
// [args]
// x = {role = "inout", shape = ["n"], low = -4, high = 4}
// n = {value = "n"}
// [args.params]
// gravity = {value = [0, -9.8, 0.5]}
// damp = {low = 0.25, high = 0.75}
// kinds = {low = 1, high = 3}
// walls = {low = [-2, 1], high = [-1, 2]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
namespace sim {
struct Params { float3 gravity; double damp; int kinds; float walls[2]; unsigned unused; };
__constant__ Params params;
__global__ void step(float *x, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float v = x[i] + params.gravity.y * 0.01f;
  for (int k = 0; k < params.kinds; k++) v *= (float)params.damp;
  x[i] = fminf(fmaxf(v, params.walls[0]), params.walls[1]) + params.gravity.z;
}
}
"""
CASE = Case("c", (("n", 20),), "normal", 7)


def contract_of(folder: Path, text: str = KERNEL) -> Contract:
    (folder / "kernel.cu").write_text(text)
    return load_kernel(folder / "kernel.cu").contract


def test_members_have_what_is_said_of_them(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    argument = contract.argument("params")
    assert (argument.symbol, argument.shape[0]) == ("sim::params", "1")
    for seed in range(5):
        drawn = build(contract, Case("c", (("n", 20),), "normal", seed)).apart().arrays
        assert drawn["params.gravity.y"] == np.float32(-9.8)
        assert drawn["params.gravity.z"] == np.float32(0.5)
        assert 0.25 <= float(drawn["params.damp"][0]) <= 0.75
        assert drawn["params.damp"].dtype == np.float64
        assert 1 <= int(drawn["params.kinds"][0]) <= 3
        assert -2 <= float(drawn["params.walls[0]"][0]) <= -1
        assert 1 <= float(drawn["params.walls[1]"][0]) <= 2
    whole = build(contract, CASE).arrays["params"]
    assert whole.nbytes == 40  # 12 and 4 that nothing fills, 8, 4, 8 and 4


def test_names_with_points_say_the_same(tmp_path: Path) -> None:
    told = re.sub(r"// (gravity|damp|kinds|walls) =", r'// "params.\1" =', KERNEL).replace("// [args.params]\n", "")
    assert contract_of(tmp_path, told).argument("params") == contract_of(tmp_path).argument("params")


def test_a_contract_that_is_shown_says_the_same(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    again = contract_of(tmp_path, with_block(KERNEL[KERNEL.index("namespace") :], contract))
    assert again.argument("params") == contract.argument("params")


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("v *= (float)params.damp", "v = v * (float)params.damp", "passed"),
        ("params.gravity.y * 0.01f", "-9.8f * 0.01f", "passed"),  # it always is
        ("k < params.kinds", "k < 2", "failed"),
        ("params.walls[1]", "2.0f", "failed"),
        ("(float)params.damp", "0.5f", "failed"),
    ],
)
def test_candidates_are_held_to_all_values(tmp_path: Path, old: str, new: str, status: str) -> None:
    assert old in KERNEL
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "candidate.cu").write_text(KERNEL.replace(old, new))
    assert judge(tmp_path / "candidate.cu", RefineOptions(tmp_path / "kernel.cu", "host"), timed=False).status == status


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("// kinds = {low = 1, high = 3}\n", "", "the integers kinds of the __constant__ variable params"),
        ("// damp =", "// drag =", "the member params.drag, which Params does not have"),
        ("// [args.params]\n", "// [args.params]\n// shape = [2]\n", "how many its declaration says"),
        ("walls = {low", "walls = {offset = 1, low", "the member params.walls.offset, which"),
    ],
)
def test_what_cannot_be_is_told(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in KERNEL
    with pytest.raises(ContractError, match=re.escape(words)):
        contract_of(tmp_path, KERNEL.replace(old, new))


def test_one_that_nothing_is_said_of_names_a_member(tmp_path: Path) -> None:
    start, end = KERNEL.index("// [args.params]"), KERNEL.index("// [launch]")
    with pytest.raises(ContractError) as fault:
        contract_of(tmp_path, KERNEL[:start] + KERNEL[end:])
    assert "says nothing of the __constant__ variable 'sim::params'" in fault.value.what
    assert "a table [args.params] with a line for each member: gravity.x =" in (fault.value.expected or "")


def test_words_may_still_be_said(tmp_path: Path) -> None:
    start, end = KERNEL.index("// [args.params]"), KERNEL.index("// [launch]")
    words = '// params = {dtype = "float32", shape = [12], value = 1.0}\n'
    assert contract_of(tmp_path, KERNEL[:start] + words + KERNEL[end:]).argument("params").layout is None
