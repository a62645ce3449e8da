"""Large cases of structures beside a device that draws and compares by itself: made here, and compared here where they
are outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fsr.contract.load import load_contract
from fsr.evaluation.compiling import build
from fsr.evaluation.on_device import first_failure, large_failure
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.records import Candidate
from tests.evaluation.judging_device import JudgingHost

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 65536, timed = 65536}
// [args]
// p = {shape = ["n"], a = {low = 1, high = 1.001}, b = {low = 1, high = 1.001}, sign = {values = [-1, 1]}}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "(n + 63) // 64"
// block = 64
// ///
struct Pair { char sign; double a, b; };
struct Sum { float rough; double y; };
__global__ void k(const Pair *p, OUT *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) { double a = p[i].a, b = p[i].b; double v = p[i].sign * (BODY); WRITE }
}
"""
SQUARES, FACTORS = "a * a - b * b", "(a + b) * (a - b)"  # terms of 1, a difference of a thousandth
NUMBERS, STRUCTURES = ("double", "y[i] = v;"), ("Sum", "y[i].rough = v; y[i].y = v;")


def failure(folder: Path, out: tuple[str, str], body: str, *, large: bool) -> Any:
    text = TEXT.replace("OUT", out[0]).replace("WRITE", out[1])
    path = folder / "k.cu"
    path.write_text(text.replace("BODY", SQUARES))
    contract = load_contract(path)
    session = Session(SessionSpec(contract, Candidate(path.read_text(), contract.plan), "host", "", 11, str(folder)))
    session.device = JudgingHost(session.device)  # type: ignore[assignment]
    candidate = Candidate(text.replace("BODY", body), contract.plan)
    binaries = build(session.spec, candidate)
    assert isinstance(binaries, Binaries)
    judging: Any = session.device
    try:
        if large:
            return large_failure(session, judging, candidate, binaries, 20.0)
        return first_failure(session, binaries.run, candidate, session.large_cases()[:3])
    finally:
        session.close()


def test_numbers_made_of_structures_are_judged_there(tmp_path: Path) -> None:
    looked, found = failure(tmp_path, NUMBERS, FACTORS, large=True)
    assert looked
    assert found is None
    assert failure(tmp_path, NUMBERS, f"{FACTORS} * (1.0 + 1e-9)", large=True)[1].mismatch.kind == "value"


@pytest.mark.parametrize(("body", "right"), [(FACTORS, True), (f"{FACTORS} * (1.0 + 1e-9)", False)])
def test_structures_that_are_written_are_judged_here(tmp_path: Path, body: str, right: bool) -> None:
    assert failure(tmp_path, STRUCTURES, body, large=True) == (0, None)
    assert (failure(tmp_path, STRUCTURES, body, large=False)[1] is None) == right
