"""The tasks that workers run: compile, qualify the baseline, evaluate. Promotion has a module of its own.

The order of the stages is here and nowhere else, cheapest first: guard, compile, smoke, screening, tests.
Screening stands before the full tests because most candidates are slow, and a slow one needs no proof.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

from fsr.backends.protocol import DeviceFault, can_time
from fsr.errors import BaselineError
from fsr.evaluation.capacity import require_room
from fsr.evaluation.clock import read_clock
from fsr.evaluation.compiling import build
from fsr.evaluation.qualify import check_baseline, must_move_bytes
from fsr.evaluation.session import Session, session_of
from fsr.evaluation.shrinking import shrunk
from fsr.evaluation.spec import BaselineReport, Binaries, CompileRequest, EvaluateRequest, SessionSpec
from fsr.evaluation.testing import CaseFailure
from fsr.records import Basis, CompileFailure, Fault, FaultKind, Json, Outcome, Status
from fsr.sandbox.confine import support

ROOFLINE_LIMIT = 1.05  # a rate above the measured copy rate by more than this is a fault to explain


def compile_task(request: CompileRequest) -> Binaries | Outcome:
    """Guard and compile; a refusal or failure comes back as its outcome."""
    started = time.monotonic()
    missing = support().missing if request.untrusted and request.spec.backend.confined else ""
    if missing:
        why = f"a model wrote it, and nothing can contain it on this CPU: the kernel offers no {missing}"
        return Outcome(Status.INVALID, "guard", evidence={"kind": "uncontained", "detail": why})
    built = build(request.spec, request.candidate)
    seconds = time.monotonic() - started
    if isinstance(built, Fault):
        evidence: dict[str, Json] = {"kind": built.kind, "detail": built.detail, "line": built.line}
        return Outcome(Status.INVALID, "guard", evidence=evidence, seconds=seconds)
    if isinstance(built, CompileFailure):
        status = Status.TIMED_OUT if built.timed_out else Status.COMPILE_FAILED
        return Outcome(status, "compile", evidence={"log": built.log[-3000:], "line": built.line}, seconds=seconds)
    return built


def baseline_task(spec: SessionSpec) -> BaselineReport:
    """Qualify the original: it compiles, passes its own cases, repeats itself, and can be timed.

    Raises BaselineError, saying which case, and MissingToolError."""
    started = time.monotonic()
    session = session_of(spec)
    require_room(session.contract, session.device.info)
    cases = [session.smoke_case(), *session.search_cases()]
    notes = check_baseline(session, cases)
    try:
        reading = read_clock(session, session.baseline, spec.baseline.plan, None)
    except DeviceFault as fault:
        if fault.fault.kind in (FaultKind.MEMORY, FaultKind.LAUNCH):
            raise BaselineError(
                f"the timed sizes do not fit this device: {fault.fault.detail}",
                where=f"sizes {session.contract.timed_sizes()[0]}",
                fix="lower the timed sizes in the contract",
            ) from None
        raise session.baseline_error(session.timed()[0][0], fault.fault) from None
    outcome = Outcome(
        Status.CORRECT, "tests", len(cases), len(cases), reading.timing, session.baseline.resources,
        reading.features, seconds=time.monotonic() - started,
    )  # fmt: skip
    rate = session.device.copy_bandwidth() if can_time(session.device) else None
    return BaselineReport(outcome, session.device.info, must_move_bytes(session), rate, tuple(notes))


def evaluate_task(request: EvaluateRequest) -> Outcome:
    """Judge one candidate. Crashes and hangs escape as a fatal DeviceFault: the process must be replaced."""
    started = time.monotonic()
    session = session_of(request.spec)
    outcome = _stages(session, request)
    return replace(outcome, resources=request.binaries.resources, seconds=time.monotonic() - started)


def _stages(session: Session, request: EvaluateRequest) -> Outcome:
    image, plan = request.binaries.run, request.candidate.plan
    passed, failure = session.first_failure(image, plan, [session.smoke_case()])
    if failure is not None:
        return failed(session, request, failure, "smoke", 1, passed)
    try:
        reading = read_clock(session, request.binaries, plan, request.incumbent_ns)
    except DeviceFault as fault:
        if fault.fatal:
            raise
        return failed(session, request, CaseFailure(session.timed()[0][0], fault=fault.fault), "screening", 1, 1)
    if reading.faults:
        failure = CaseFailure(session.timed()[0][0], fault=reading.faults[0])
        return failed(session, request, failure, "screening", 1, 1)
    told = Outcome(Status.SLOW, "screening", 1, 1, reading.timing, features=reading.features)
    if reading.decided:
        return told
    cases = [*session.search_cases(), *session.candidate_cases(request.candidate)]
    passed, failure = session.first_failure(image, plan, cases)
    if failure is not None:
        return failed(session, request, failure, "tests", 1 + len(cases), 1 + passed)
    return replace(told, status=Status.CORRECT, stage="tests", cases=1 + passed, passed=1 + passed)


def failed(
    session: Session, request: EvaluateRequest, failure: CaseFailure, stage: str, cases: int, passed: int
) -> Outcome:
    """The outcome of a failure, with its case made as small as it still fails."""
    if failure.fault is not None and failure.fault.kind == FaultKind.LAUNCH:
        return Outcome(Status.INVALID, stage, cases, passed, evidence=failure.evidence())
    if not failure.fatal and stage != "screening":
        failure = shrunk(session, request.binaries.run, request.candidate.plan, failure)
    status = Status.WRONG
    if failure.fault is not None and failure.fault.kind in (FaultKind.CRASH, FaultKind.MEMORY):
        status = Status.CRASHED
    elif failure.fault is not None and failure.fault.kind == FaultKind.HANG:
        status = Status.TIMED_OUT
    return Outcome(status, stage, cases, passed, evidence=failure.evidence())


def roofline_fraction(outcome: Outcome, report: BaselineReport) -> float | None:
    """Share of the device's copy rate that a measured run reached, counting only bytes that must move."""
    if outcome.timing is None or outcome.timing.basis is not Basis.MEASURED:
        return None
    if not report.must_move_bytes or not report.copy_bytes_per_s:
        return None
    return report.must_move_bytes / (outcome.timing.median_ns * 1e-9) / report.copy_bytes_per_s


def too_fast(outcome: Outcome, report: BaselineReport) -> bool:
    """Whether a time is below what moving the bytes allows, on a kernel whose original obeys that bound."""
    fraction, original = roofline_fraction(outcome, report), roofline_fraction(report.outcome, report)
    return fraction is not None and fraction > ROOFLINE_LIMIT and (original or math.inf) <= 1.0
