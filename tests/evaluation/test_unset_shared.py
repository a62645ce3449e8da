"""Shared memory that is read where nothing was written: right where no result depends on it, wrong where one does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.errors import BaselineError
from fsr.evaluation.clock import read_clock
from fsr.evaluation.compiling import build as compile_candidate
from fsr.evaluation.qualify import check_baseline
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.watching import watch
from fsr.records import FaultKind
from fsr.runs.kernel import load_kernel

# The two ends of the strip are never set; a flat loop passes over them, and nobody reads what it makes of them.
STRIP = """// /// fsr
// entry = "smooth"
// [sizes]
// tiles = {min = 1, max = 256, timed = 256}
// [args]
// x = {role = "in", shape = ["64 * tiles"], low = -1000, high = 1000}
// y = {role = "out", shape = ["64 * tiles"]}
// [launch]
// grid = "tiles"
// block = 64
// ///
__global__ void smooth(const int *x, int *y) {
  __shared__ int strip[68], made[68];
  int t = threadIdx.x;
  strip[t + 2] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int k = t; k < 67; k += 64) made[k] = strip[k] + 3 * strip[k + 1];
  __syncthreads();
  y[blockIdx.x * 64 + t] = t < 63 ? made[t + 2] : 0;
}
"""
NEEDED = ("t < 63 ? made[t + 2] : 0", "made[t + 2]")
CLEAN = ("for (int k = t; k < 67; k += 64)", "for (int k = t + 2; k < 65; k += 64)")


def opened(tmp_path, *changes: tuple[str, str]) -> Session:
    text = STRIP
    for change in changes:
        text = text.replace(*change)
    (tmp_path / "k.cu").write_text(text)
    kernel = load_kernel(tmp_path / "k.cu")
    return Session(SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 1, str(tmp_path)))


def test_what_reaches_no_result_is_told_and_passes(tmp_path):
    session = opened(tmp_path)
    try:
        notes = check_baseline(session, session.held_out_cases())
        assert any("'strip'" in note and "no result depends on" in note for note in notes)
        baseline = session.spec.baseline
        assert read_clock(session, session.baseline, baseline.plan, None).faults == ()
        same = replace(baseline, source=baseline.source.replace("3 * strip", "2 * strip[k + 1] + strip"))
        built = compile_candidate(session.spec, same)
        assert isinstance(built, Binaries)
        assert read_clock(session, built, same.plan, None).faults == ()
    finally:
        session.close()


def test_what_reaches_a_result_is_refused(tmp_path):
    session = opened(tmp_path, NEEDED)
    try:
        with pytest.raises(BaselineError, match=r"differs by|depends on the order"):
            check_baseline(session, session.held_out_cases())
    finally:
        session.close()


def test_a_candidate_may_not_read_it_where_the_original_does_not(tmp_path):
    session = opened(tmp_path, CLEAN)
    try:
        assert check_baseline(session, session.held_out_cases()) == []
        reading = replace(session.spec.baseline, source=session.spec.baseline.source.replace(*reversed(CLEAN)))
        assert reading != session.spec.baseline
        failure, _ = watch(session, reading, session.held_out_cases())
        assert failure is not None
        assert failure.fault is not None
        assert failure.fault.kind is FaultKind.UNSET
        built = compile_candidate(session.spec, reading)
        assert isinstance(built, Binaries)
        assert read_clock(session, built, reading.plan, None).faults
    finally:
        session.close()


def test_what_cannot_be_watched_says_why(tmp_path):
    session = opened(tmp_path)
    try:
        baseline = session.spec.baseline
        other = replace(baseline, source=baseline.source.replace("3 * strip", "nobodys * strip"))
        failure, said = watch(session, other, session.held_out_cases())
        assert failure is None
        assert said.startswith("not available: the host device cannot execute it: ")
        assert "nobodys" in said
    finally:
        session.close()
