"""The tasks that workers run: compile, qualify the baseline, evaluate. Promotion has a module of its own.

The order of the stages is here and nowhere else, cheapest first: guard, compile, smoke, screening, tests.
Screening stands before the full tests because most candidates are slow, and a slow one needs no proof; nor does one
that is no faster than the best, until the search builds on it or it may win (``EvaluateRequest.owed``).
"""

from __future__ import annotations

import time
from dataclasses import replace

from fsr.backends.protocol import DeviceFault
from fsr.errors import BaselineError
from fsr.evaluation.capacity import require_room
from fsr.evaluation.ceilings import ceilings_of
from fsr.evaluation.clock import read_clock
from fsr.evaluation.compiling import build
from fsr.evaluation.elsewhere import slower_at
from fsr.evaluation.on_device import first_failure
from fsr.evaluation.qualify import check_baseline, must_move
from fsr.evaluation.session import Session, session_of
from fsr.evaluation.shrinking import shrunk
from fsr.evaluation.spec import BaselineReport, Binaries, CompileRequest, EvaluateRequest, SessionSpec
from fsr.evaluation.testing import CaseFailure
from fsr.features.lifted import text_features
from fsr.features.roofline import roofline
from fsr.features.schema import Features, Roofline
from fsr.records import (
    SLOWER_ELSEWHERE,
    Basis,
    Candidate,
    Case,
    CompileFailure,
    Fault,
    FaultKind,
    Json,
    Outcome,
    Status,
)
from fsr.sandbox.confine import support
from fsr.source.parse import parse_kernels

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
    cases = [session.spec.smoke_case(), *session.search_cases()]
    notes = check_baseline(session, cases)
    try:
        reading = read_clock(session, session.baseline, spec.baseline.plan, None)
    except DeviceFault as fault:
        raise _untimed(session, fault.fault) from None
    features = reading.features.merged(lifted(spec.baseline)).quoting(spec.baseline.source)
    outcome = Outcome(
        Status.CORRECT, "tests", len(cases), len(cases), reading.timing, session.baseline.resources, features,
        seconds=time.monotonic() - started,
    )  # fmt: skip
    return BaselineReport(outcome, session.device.info, must_move(session), ceilings_of(session), tuple(notes))


def prepare_task(spec: SessionSpec) -> None:
    """Open the session and judge the original as if it were a candidate, for what the session keeps of that: on the
    devices that have nothing to do while another qualifies it."""
    session = session_of(spec)
    _stages(session, EvaluateRequest(spec, spec.baseline, session.baseline, None))


def _untimed(session: Session, fault: Fault) -> BaselineError:
    """Why an original that passed its tests cannot be timed."""
    where = f"sizes {session.contract.timed_sizes()[0]}"
    if fault.kind in (FaultKind.MEMORY, FaultKind.LAUNCH):
        told = f"the timed sizes do not fit this device: {fault.detail}"
        return BaselineError(told, where=where, fix="lower the timed sizes in the contract")
    if fault.kind is FaultKind.HANG:
        return BaselineError(
            f"the timed sizes take too long here, while smaller ones pass: {fault.detail}",
            expected="sizes that one launch is done with in seconds", where=where,
            fix="lower the timed sizes in the contract" + (", or time it on a GPU" if session.spec.predicted else ""),
        )  # fmt: skip
    return session.original.error(session.timed()[0][0], fault)


def lifted(candidate: Candidate) -> Features:
    """What the candidate's text says, without compiling it."""
    return Features(source=text_features(parse_kernels(candidate.source)))


def evaluate_task(request: EvaluateRequest) -> Outcome:
    """Judge one candidate. Crashes and hangs escape as a fatal DeviceFault: the process must be replaced."""
    started = time.monotonic()
    session = session_of(request.spec)
    outcome = _stages(session, request)
    return replace(outcome, resources=request.binaries.resources, seconds=time.monotonic() - started)


def _stages(session: Session, request: EvaluateRequest) -> Outcome:
    if request.owed:
        return _tested(session, request, Outcome(Status.SCREENED, "tests"), [])
    image, plan = request.binaries.run, request.candidate.plan
    illegal = session.illegal(request.candidate)
    if illegal is not None:
        return failed(session, request, CaseFailure(session.spec.smoke_case(), fault=illegal), "smoke", 1, 0)
    passed, failure = first_failure(session, image, request.candidate, [session.spec.smoke_case()])
    if failure is not None:
        return failed(session, request, failure, "smoke", 1, passed)
    try:
        reading = read_clock(session, request.binaries, plan, request.incumbent_ns)
        best = request.incumbent_ns is None or reading.timing.median_ns < request.incumbent_ns
        rivals = request.incumbent_ns is not None and best and not reading.decided and not reading.faults
        elsewhere = slower_at(session, request.binaries, plan) if rivals else ""
    except DeviceFault as fault:
        if fault.fatal:
            raise
        return failed(session, request, CaseFailure(session.timed()[0][0], fault=fault.fault), "screening", 1, 1)
    if reading.faults:
        failure = CaseFailure(session.timed()[0][0], fault=reading.faults[0])
        return failed(session, request, failure, "screening", 1, 1)
    features = reading.features.quoting(request.candidate.source)
    told = Outcome(Status.SLOW, "screening", 1, 1, reading.timing, features=features)
    if reading.decided:
        return told
    if elsewhere:
        return replace(told, evidence={"kind": SLOWER_ELSEWHERE, "detail": elsewhere})
    features = features.merged(lifted(request.candidate)) if request.spec.predicted else features
    told = replace(told, status=Status.SCREENED, features=features)
    if not best:
        return told
    # Those that aim at this one candidate have an answer of the original that no other will ask for: for the best.
    own = [c for c in session.candidate_cases(request.candidate) if not session.waits(c)]
    return _tested(session, request, replace(told, evidence={"own_cases": len(own)}), own)


def _tested(session: Session, request: EvaluateRequest, screened: Outcome, own: list[Case]) -> Outcome:
    """What the full tests add to what screening found."""
    cases = [*session.search_cases(), *own]
    passed, failure = first_failure(session, request.binaries.run, request.candidate, cases)
    before = screened.passed
    if failure is not None:
        return failed(session, request, failure, "tests", before + len(cases), before + passed)
    return replace(screened, status=Status.CORRECT, stage="tests", cases=before + passed, passed=before + passed)


def failed(
    session: Session, request: EvaluateRequest, failure: CaseFailure, stage: str, cases: int, passed: int
) -> Outcome:
    """The outcome of a failure, with its case made as small as it still fails."""
    if failure.fault is not None and failure.fault.kind == FaultKind.LAUNCH:
        return Outcome(Status.INVALID, stage, cases, passed, evidence=failure.evidence())
    if not failure.fatal and stage != "screening":
        failure = shrunk(session, request.binaries.run, request.candidate, failure)
    status = Status.WRONG
    if failure.fault is not None and failure.fault.kind in (FaultKind.CRASH, FaultKind.MEMORY):
        status = Status.CRASHED
    elif failure.fault is not None and failure.fault.kind == FaultKind.HANG:
        status = Status.TIMED_OUT
    return Outcome(status, stage, cases, passed, evidence=failure.evidence())


def roofline_of(outcome: Outcome, report: BaselineReport) -> Roofline | None:
    """Where a measured run stands against the device's ceilings; None where that is not known."""
    timed, moved, ceilings = outcome.timing, report.must_move, report.ceilings
    if timed is None or timed.basis is not Basis.MEASURED or moved is None or ceilings is None:
        return None
    return roofline(moved, ceilings, timed.median_ns, outcome.features)


def too_fast(outcome: Outcome, report: BaselineReport) -> bool:
    """Whether a time is less than the bytes that surely pass DRAM take, on a kernel whose original obeys that bound."""
    found, original = roofline_of(outcome, report), roofline_of(report.outcome, report)
    if found is None or original is None:
        return False
    return (found.drained_fraction or 0.0) > ROOFLINE_LIMIT and (original.drained_fraction or 0.0) <= 1.0
