"""Making a failing case small before it is told: sizes, then values."""

from __future__ import annotations

from fsr.backends.protocol import DeviceFault
from fsr.errors import BaselineError
from fsr.evaluation.session import Session
from fsr.evaluation.testing import CaseFailure, Runnable, fails
from fsr.records import Candidate, Case, Image
from fsr.testgen.compare import flushes
from fsr.testgen.shrink import shrink

TRIES = 24


def shrunk(session: Session, image: Image, candidate: Candidate, failure: CaseFailure) -> CaseFailure:
    """The same failure on the smallest case found that still fails; the given one when nothing smaller does."""
    smallest, plan, flushed = failure, candidate.plan, flushes(candidate)

    def still_fails(case: Case) -> bool:
        nonlocal smallest
        try:
            expected = session.expected(case)
            limit = session.stopwatch.limit_s(case)
            found = fails(Runnable(session.device, image, plan, session.contract, flushed), case, expected, limit)
        except (DeviceFault, BaselineError):  # another failure than the one to explain
            return False
        if found is not None:
            smallest = found
        return found is not None

    shrink(failure.case, still_fails, TRIES, session.contract)
    return smallest
