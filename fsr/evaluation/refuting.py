"""Whether a candidate is wrong where others of its run were found wrong.

What was made alike mostly is. The search's own worker asks, whose session is open and has the original's answer from
the second candidate on: a promotion, in a fresh process, takes seconds until its first case. Nothing is believed of a
candidate that passes here.
"""

from __future__ import annotations

import time

from fsr.backends.protocol import can_judge
from fsr.evaluation.on_device import first_failure, large_failure_at
from fsr.evaluation.session import Session, session_of
from fsr.evaluation.spec import RefuteRequest
from fsr.evaluation.testing import CaseFailure
from fsr.records import Outcome, Status


def refute_task(request: RefuteRequest) -> Outcome:
    """WRONG, as promotion would tell it, or CORRECT. Fatal DeviceFaults escape."""
    started = time.monotonic()
    failure = _failure(session_of(request.spec), request)
    status = Status.CORRECT if failure is None else Status.WRONG
    evidence = {} if failure is None else failure.evidence()
    return Outcome(status, "promotion", 1, int(failure is None), evidence=evidence, seconds=time.monotonic() - started)


def _failure(session: Session, request: RefuteRequest) -> CaseFailure | None:
    device, candidate, binaries = session.device, request.candidate, request.binaries
    large = [] if can_judge(device) else session.large_cases()
    every = (
        *session.candidate_cases(candidate),
        *session.held_out_cases(),
        *session.corner_cases(),
        *session.coverage_cases(),
        *large,
    )
    again = [case for case in every if case.seed in request.seeds]
    failure = first_failure(session, binaries.run, candidate, again)[1]
    if failure is None and can_judge(device):
        return large_failure_at(session, device, candidate, binaries, request.seeds)
    return failure
