"""Making a failing case small before it is told: sizes, then values."""

from __future__ import annotations

from fsr.backends.protocol import DeviceFault
from fsr.errors import BaselineError
from fsr.evaluation.session import Session
from fsr.evaluation.testing import CaseFailure
from fsr.records import Candidate, Case, Image
from fsr.testgen.shrink import shrink

TRIES = 24


def shrunk(session: Session, image: Image, candidate: Candidate, failure: CaseFailure) -> CaseFailure:
    """The same failure on the smallest case found that still fails; the given one when nothing smaller does."""
    smallest = failure

    def still_fails(case: Case) -> bool:
        nonlocal smallest
        try:
            found = session.failure(image, candidate, case)
        except (DeviceFault, BaselineError):  # another failure than the one to explain
            return False
        if found is not None:
            smallest = found
        return found is not None

    shrink(failure.case, still_fails, TRIES, session.contract)
    return smallest
