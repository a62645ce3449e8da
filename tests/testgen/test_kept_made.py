"""What a function of inputs made for large cases is found by other processes, and changed by none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from fsr.contract.model import Contract
from fsr.evaluation.ahead import MakeRequest, cases_ahead, make_task
from fsr.evaluation.spec import SessionSpec
from fsr.records import Case
from fsr.runs.fleet import Fleet, open_fleet
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.testgen.kept_made import LEAST_BYTES, kept
from fsr.testgen.values import build

KERNEL = """// /// fsr
// entry = "scale"
// inputs = "make.py:ramps"
// [sizes]
// n = {min = 0, max = 4194304, timed = [1048576, 2097152]}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// ///
__global__ void scale(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i] * 2.0f;
}
"""
MAKE = """import numpy as np


def ramps(n, rng):
    with open(__file__ + ".calls", "a") as told:
        told.write(f"{n}\\n")
    return {"x": np.sort(rng.random(n, dtype=np.float32))}
"""
CASE = Case("c", (("n", 1 << 20),), "normal", 7)


def calls(folder: Path) -> list[int]:
    file = folder / "make.py.calls"
    return list(map(int, file.read_text().split())) if file.exists() else []


@pytest.fixture
def contract(tmp_path: Path) -> Contract:
    (tmp_path / "make.py").write_text(MAKE)
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "kept").mkdir()
    found = load_kernel(tmp_path / "kernel.cu").contract
    assert found.inputs is not None
    return replace(found, inputs=replace(found.inputs, kept=str(tmp_path / "kept")))


def test_a_large_case_is_made_once(contract: Contract, tmp_path: Path) -> None:
    one = build(contract, CASE).arrays["x"]
    before = calls(tmp_path)
    two = build(contract, CASE).arrays["x"]
    assert calls(tmp_path) == before
    assert one.tobytes() == two.tobytes()
    assert (one.dtype, one.shape, type(two)) == (two.dtype, two.shape, np.ndarray)
    other = build(contract, replace(CASE, seed=8)).arrays["x"]
    assert len(calls(tmp_path)) > len(before)
    assert other.tobytes() != one.tobytes()
    assert build(contract, replace(CASE, family="zeros")).arrays["x"].tobytes() != one.tobytes()


def test_a_change_stays_with_whoever_makes_it(contract: Contract) -> None:
    build(contract, CASE)
    mine, theirs = build(contract, CASE).arrays["x"], build(contract, CASE).arrays["x"]
    first = float(theirs[0])
    mine[0] = -1.0
    assert theirs[0] == first
    assert build(contract, CASE).arrays["x"][0] == first


def test_small_cases_and_none_are_made_each_time(contract: Contract, tmp_path: Path) -> None:
    for n in (0, 100):
        small = replace(CASE, sizes=(("n", n),))
        build(contract, small)
        before = len(calls(tmp_path))
        build(contract, small)
        assert len(calls(tmp_path)) > before
    assert list((tmp_path / "kept").iterdir()) == []


def test_every_type_comes_back_as_it_was(tmp_path: Path) -> None:
    count = LEAST_BYTES
    arrays = {
        "half": np.arange(count, dtype=np.float16).reshape(2, -1),
        "brain": np.arange(count).astype(ml_dtypes.bfloat16),
        "flags": np.arange(count) % 3 == 0,
        "pairs.d[0]": np.arange(count, dtype=np.uint64),
    }
    kept(tmp_path, CASE, lambda: arrays)
    found = kept(tmp_path, CASE, lambda: pytest.fail("it is kept"))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


def test_where_nothing_can_be_kept_it_is_made(contract: Contract, tmp_path: Path) -> None:
    assert contract.inputs is not None
    nowhere = replace(contract, inputs=replace(contract.inputs, kept=str(tmp_path / "not" / "there")))
    assert build(nowhere, CASE).arrays["x"].tobytes() == build(contract, CASE).arrays["x"].tobytes()


def test_a_fault_is_told_each_time(tmp_path: Path) -> None:
    def broken() -> dict[str, np.ndarray]:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            kept(tmp_path, CASE, broken)
    assert list(tmp_path.iterdir()) == []


def test_what_is_made_ahead_is_what_sessions_need(contract: Contract, tmp_path: Path) -> None:
    kernel = load_kernel(tmp_path / "kernel.cu")
    spec = SessionSpec(contract, kernel.baseline, "cuda:0", "sm_90", 1)
    cases = cases_ahead(spec)
    assert len(cases) == len(set(cases))
    assert {n for case in cases[:2] for _, n in case.sizes} == {1 << 20, 1 << 21}  # those that are timed come first
    assert any(n not in (1 << 20, 1 << 21) for case in cases for _, n in case.sizes)
    make_task(MakeRequest(spec, cases[0]))
    before = calls(tmp_path)
    build(contract, cases[0], drawn=True)
    assert calls(tmp_path) == before
    assert cases_ahead(replace(spec, contract=replace(contract, inputs=None))) == []


def test_a_run_has_a_folder_of_its_own_and_removes_it(contract: Contract, tmp_path: Path) -> None:
    kernel = load_kernel(tmp_path / "kernel.cu")
    options = RefineOptions(tmp_path / "kernel.cu", device="host")
    with open_fleet(options, 1, single=True) as fleet:
        spec = fleet.spec(kernel, options)
        assert spec.contract.inputs is not None
        assert Path(spec.contract.inputs.kept).is_dir()
        assert spec.contract.inputs == kernel.contract.inputs  # of no account in what is promised
    assert not Path(fleet.kept).exists()
    assert Fleet(fleet.workers, "host", "sm_90").kept == ""
