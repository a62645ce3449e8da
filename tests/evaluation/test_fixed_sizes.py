"""Fixed, large sizes beside a device that draws and compares by itself: cases are judged there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fsr.contract.load import load_contract
from fsr.evaluation.compiling import build
from fsr.evaluation.on_device import first_failure
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.testing import CaseFailure
from fsr.records import Candidate
from tests.evaluation.judging_device import JudgingHost

SUMS = """// /// fsr
// entry = "k"
// [args]
// x = {role = "in", shape = [1024, 2048]}
// y = {role = "out", shape = [1024]}
// [launch]
// grid = 16
// block = 64
// [tolerance]
// sum_length = 2048
// ///
__global__ void k(const float *x, float *y) {
  int r = blockIdx.x * 64 + threadIdx.x;
  float s = 0.0f;
  BODY
}
"""
FORWARDS = "for (int j = 0; j < 2048; j++) s += x[r * 2048 + j]; y[r] = s;"
BACKWARDS = "for (int j = 2048; j--;) s += x[r * 2048 + j]; y[r] = s;"


def opened(folder: Path, text: str) -> Session:
    path = folder / "sums.cu"
    path.write_text(text)
    contract = load_contract(path)
    found = Session(SessionSpec(contract, Candidate(text, contract.plan), "host", "", 11, str(folder)))
    found.device = JudgingHost(found.device)  # type: ignore[assignment]
    return found


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    found = opened(tmp_path_factory.mktemp("fixed"), SUMS.replace("BODY", FORWARDS))
    yield found
    found.close()


def judged(session: Session, body: str) -> tuple[int, CaseFailure | None]:
    candidate = Candidate(SUMS.replace("BODY", body), session.contract.plan)
    built = build(session.spec, candidate)
    assert isinstance(built, Binaries)
    return first_failure(session, built.run, candidate, [session.spec.smoke_case(), *session.search_cases()])


def test_a_right_sum_in_another_order_passes_without_leaving_the_device(session: Session) -> None:
    cases = [session.spec.smoke_case(), *session.search_cases()]
    before = session.device.read  # type: ignore[attr-defined]
    assert judged(session, BACKWARDS) == (len(cases), None)
    assert session.device.read == before, "an output was fetched"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "body",
    [
        BACKWARDS.replace("y[r] = s", "if (r != 777) y[r] = s"),
        BACKWARDS.replace("2048;", "2047;"),
        BACKWARDS.replace("y[r] = s", "y[r] = fabsf(s) < 1e-3f ? 0.0f : s").replace("s +=", "s += 1e-3f *"),
        BACKWARDS.replace("y[r] = s", "y[r + (r == 1023)] = s"),
    ],
    ids=["one left out", "a column left out", "scaled", "out of bounds"],
)
def test_a_wrong_one_is_refused(session: Session, body: str) -> None:
    _, failure = judged(session, body)
    assert failure is not None
    assert failure.mismatch is not None or failure.fault is not None


@pytest.mark.parametrize(("text", "here"), [("", False), (", sorted = true", True)], ids=["drawn", "in order"])
def test_values_that_are_made_as_a_whole_are_judged_here(text: str, here: bool, tmp_path: Path) -> None:
    """They cannot be moved there by their last bits, which tells how far a sum may be off."""
    found = opened(tmp_path, SUMS.replace("[1024, 2048]}", f"[1024, 2048]{text}}}").replace("BODY", FORWARDS))
    built = build(found.spec, found.spec.baseline)
    assert isinstance(built, Binaries)
    assert first_failure(found, built.run, found.spec.baseline, [found.spec.smoke_case()]) == (1, None)
    assert (found.device.read > 0) is here  # type: ignore[attr-defined]
    found.close()
