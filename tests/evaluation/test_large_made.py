"""Large cases beside a device that draws and compares by itself, where arrays are made here: their places have bounds
of their own, or they are in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fsr.contract.load import load_contract
from fsr.evaluation.compiling import build
from fsr.evaluation.on_device import large_failure
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.records import Candidate
from tests.evaluation.judging_device import JudgingHost

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 65536, timed = 65536}
// [args]
// x = {role = "in", shape = ["n", 2], LIMITS}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "(n + 63) // 64"
// block = 64
// ///
__global__ void k(const double *x, double *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) { double a = x[2 * i], b = x[2 * i + 1]; y[i] = BODY; }
}
"""
LIMITS = "low = [1, 1], high = [1.001, 1.001]"
SQUARES, FACTORS = "a * a - b * b", "(a + b) * (a - b)"  # terms of 1, a difference of a thousandth


def failure(folder: Path, limits: str, body: str) -> Any:
    path = folder / "k.cu"
    text = TEXT.replace("LIMITS", limits)
    path.write_text(text.replace("BODY", SQUARES))
    contract = load_contract(path)
    session = Session(SessionSpec(contract, Candidate(path.read_text(), contract.plan), "host", "", 11, str(folder)))
    session.device = JudgingHost(session.device)  # type: ignore[assignment]
    candidate = Candidate(text.replace("BODY", body), contract.plan)
    binaries = build(session.spec, candidate)
    assert isinstance(binaries, Binaries)
    judging: Any = session.device
    try:
        looked, found = large_failure(session, judging, candidate, binaries, 20.0)
        assert looked or found is not None
        return found
    finally:
        session.close()


@pytest.mark.parametrize("limits", [LIMITS, "low = 1, high = 1.001", "low = 1, high = 1.001, sorted = true"],
                         ids=["a place's own", "drawn", "in order"])  # fmt: skip
def test_a_right_one_that_rounds_elsewhere_passes(tmp_path: Path, limits: str) -> None:
    assert failure(tmp_path, limits, FACTORS) is None


def test_a_wrong_one_is_refused(tmp_path: Path) -> None:
    found = failure(tmp_path, LIMITS, "(a + b) * (a - b) * (1.0 + 1e-9)")
    assert found is not None
    assert found.mismatch.kind == "value"
