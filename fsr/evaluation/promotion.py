"""Promotion: what a candidate must pass to be told as a win, in a process of its own.

Held-out cases, timed outputs checked on every input set, sanitizers (a GPU) or the access recorder (the host
device), the paired final against the user's kernel, and no held-out size clearly slower.
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from fsr.backends.protocol import TimedPrepared, can_judge
from fsr.evaluation.clock import Reading, placed, read_clock
from fsr.evaluation.elsewhere import HELD_OUT_SLOWDOWN, held_out_sizes, slower_when_timed, told_at
from fsr.evaluation.far import far_failure
from fsr.evaluation.inspecting import inspecting
from fsr.evaluation.looking import looking
from fsr.evaluation.on_device import failure_on_device, first_failure, large_failure
from fsr.evaluation.session import TIMED_POISON, Session, session_of
from fsr.evaluation.spec import Binaries, PromoteRequest, PromotionPart
from fsr.evaluation.testing import CaseFailure
from fsr.evaluation.timing import back_to_back, paired
from fsr.evaluation.verdict import paired_verdict, predicted_verdict
from fsr.identity import to_json
from fsr.prediction.predict import ERROR_FACTOR
from fsr.records import (
    SLOWER_ELSEWHERE,
    Basis,
    Candidate,
    Case,
    Json,
    Outcome,
    Sizes,
    Status,
    Timing,
    Verdict,
    VerdictKind,
)
from fsr.testgen.compare import compare, flushes
from fsr.testgen.values import CaseData

LARGE_S, LARGE_SHARE = 5.0, 0.2  # spent on large cases on a device that judges: seconds, and of the promotion's budget


def promote_task(request: PromoteRequest) -> Outcome:
    """The promotion of one candidate, or a part of it: status PROMOTED with its verdict in the evidence, WRONG when a
    test failed, CORRECT when it is right but not clearly faster, or was not timed. Fatal DeviceFaults escape."""
    session = session_of(request.spec)
    tested = _tested(session, request) if request.part is not PromotionPart.TIMES else _UNTESTED
    if tested.status is not Status.CORRECT or request.part is PromotionPart.TESTS:
        return tested
    return joined(tested, _timed(session, request))


_UNTESTED = Outcome(Status.CORRECT, "promotion")


def joined(tested: Outcome, timed: Outcome) -> Outcome:
    """What the tests and the times say together, of a candidate that passed the tests."""
    return replace(
        timed, cases=tested.cases + timed.cases, passed=tested.passed + timed.passed,
        evidence={**tested.evidence, **timed.evidence}, seconds=tested.seconds + timed.seconds,
    )  # fmt: skip


def _tested(session: Session, request: PromoteRequest) -> Outcome:
    """Held-out cases, the largest sizes, sanitizers and other orders."""
    started = time.monotonic()
    candidate, binaries = request.candidate, request.binaries
    session.reached.clear()
    session.in_blocks.clear()
    session.not_in_blocks.clear()
    held_out = session.held_out_cases()
    inspections: dict[str, Json] = {}
    unrun = ""
    own = session.candidate_cases(candidate)
    with (
        inspecting(session, candidate, binaries, [*own, *held_out]) as inspected,
        looking(session, candidate, own) as looked,
    ):
        left = [c for c in own if not request.own_tested or session.waits(c)]
        passed, failure = first_failure(session, binaries.run, candidate, [*left, *held_out, *session.corner_cases()])
        if failure is None:
            more, failure = _large(session, request)
            passed += more
        if failure is None:
            failure, inspections = inspected()
        if failure is None:
            rare, unrun = looked()
            more, failure = first_failure(session, binaries.run, candidate, rare)
            passed += more
    seconds = time.monotonic() - started
    if failure is not None:
        return Outcome(Status.WRONG, "promotion", passed + 1, passed, evidence=failure.evidence(), seconds=seconds)
    evidence: dict[str, Json] = {"sanitizers": inspections, **_reached(session), **({"unrun": unrun} if unrun else {})}
    return Outcome(
        Status.CORRECT, "promotion", passed, passed, resources=binaries.resources, evidence=evidence, seconds=seconds
    )


def _reached(session: Session) -> dict[str, Json]:
    """Of each size the least and the largest that was tested in whole, by the tests before too, and whether all timed
    sizes were, or some of their blocks."""
    before = (case for case in session.search_cases() if not case.parts and not session.waits(case))
    found = [dict(sizes) for sizes in session.reached] + [case.size_map() for case in before]
    ends: dict[str, Json] = {
        s.name: [min(one[s.name] for one in found), max(one[s.name] for one in found)]
        for s in session.contract.sizes
        if found
    }
    some = found + [dict(sizes) for sizes in session.in_blocks]
    timed = session.contract.timed_sizes()
    left = [one for one in timed if one not in some]
    return {
        "reached": ends,
        "timed_sizes": all(one in found for one in timed),
        "timed_blocks": not left,
        "timed_left": {
            "sizes": [dict(one) for one in left],
            "all": left == timed,
            "why": [session.not_in_blocks.get(tuple(one.items()), "") for one in left],
        },
    }


def _timed(session: Session, request: PromoteRequest) -> Outcome:
    """The paired final, with the timed outputs checked, and whether anything near is slower."""
    started = time.monotonic()
    candidate, binaries = request.candidate, request.binaries
    reading = read_clock(session, binaries, candidate.plan, None)
    at = list[dict[str, Json]]()
    if session.spec.predicted:
        verdict, failure, timing = _predicted_final(session, reading)
    else:
        verdict, failure, timing, at = _final(session, candidate, binaries, request.budget_s)
    if failure is not None:
        seconds = time.monotonic() - started
        return Outcome(Status.WRONG, "promotion", 1, 0, evidence=failure.evidence(), seconds=seconds)
    held_out = held_out_sizes(session, candidate, binaries)
    slower = [str(h["sizes"]) for h in held_out if float(str(h["high"])) < HELD_OUT_SLOWDOWN]
    looped = _looped(session, candidate, binaries)
    if looped is not None and looped < HELD_OUT_SLOWDOWN:
        slower.append("the timed sizes when launched back to back")
    won = verdict.kind is VerdictKind.FASTER and not slower
    evidence: dict[str, Json] = {
        "verdict": to_json(verdict), "held_out": list(held_out), "kind": verdict.kind.value, "back_to_back": looped,
        **({"timed": list(at)} if len(at) > 1 else {}),
    }  # fmt: skip
    if verdict.kind is VerdictKind.SLOWER and any(float(str(one["low"])) > 1.0 for one in at):
        slower = [*(str(one["sizes"]) for one in at if slower_when_timed(one)), *slower]
    if slower:
        evidence |= {"kind": SLOWER_ELSEWHERE, "detail": "slower at " + "; ".join(slower)}
    return Outcome(
        Status.PROMOTED if won else Status.CORRECT, "promotion", timing=timing, resources=binaries.resources,
        features=reading.features.quoting(candidate.source), evidence=evidence, seconds=time.monotonic() - started,
    )  # fmt: skip


def _large(session: Session, request: PromoteRequest) -> tuple[int, CaseFailure | None]:
    device, candidate, binaries, budget_s = session.device, request.candidate, request.binaries, request.budget_s
    if can_judge(device):
        seconds = min(LARGE_S, LARGE_SHARE * budget_s)
        return large_failure(session, device, candidate, binaries, seconds, request.below)
    passed, failure = session.first_failure(binaries.run, candidate, session.large_cases())
    if failure is not None:
        return passed, failure
    more, failure = far_failure(session, candidate, binaries.run, budget_s)
    return passed + more, failure


# ---------------------------------------------------------------- the final


def _final(
    session: Session, candidate: Candidate, binaries: Binaries, budget_s: float
) -> tuple[Verdict, CaseFailure | None, Timing, list[dict[str, Json]]]:
    """The verdict against the user's kernel at the timed sizes, any wrong output seen while timing, and the speed-up at
    each configuration."""
    verdicts, samples, at = [], [], list[dict[str, Json]]()
    share = budget_s / len(session.contract.timed_sizes())
    for sets in _by_configuration(session.timed(sets=3)):
        with ExitStack() as stack:
            old = [placed(session, stack, session.baseline, session.spec.baseline.plan, c, d) for c, d in sets]
            new = [placed(session, stack, binaries, candidate.plan, c, d) for c, d in sets]
            old_ns, new_ns = paired(old, new, session.spec.policy, session.device.sm_clock_mhz, share)
            failure = _wrong_timed_output(session, candidate, sets, old, new)
        verdict = paired_verdict(old_ns, new_ns, session.spec.seed)
        verdicts.append(verdict)
        samples.append(new_ns)
        at.append(told_at(sets[0][0].sizes, verdict))
        if failure is not None:
            return verdict, failure, _timing(samples), at
    return _weakest(verdicts), None, _timing(samples), at


def _looped(session: Session, candidate: Candidate, binaries: Binaries) -> float | None:
    """The speed-up when launched back to back, the geometric mean over timed configurations; None on the host."""
    if session.spec.predicted:
        return None
    ratios = []
    for case, data in session.timed():
        with ExitStack() as stack:
            old = placed(session, stack, session.baseline, session.spec.baseline.plan, case, data)
            new = placed(session, stack, binaries, candidate.plan, case, data)
            ratios.append(back_to_back(old, new))
    return math.exp(float(np.mean(np.log(ratios))))


def _predicted_final(session: Session, new: Reading) -> tuple[Verdict, CaseFailure | None, Timing]:
    old = read_clock(session, session.baseline, session.spec.baseline.plan, None)
    verdict = predicted_verdict(old.timing.median_ns, new.timing.median_ns, ERROR_FACTOR)
    failure = CaseFailure(session.timed()[0][0], fault=new.faults[0]) if new.faults else None
    return verdict, failure, new.timing


def _by_configuration(pairs: list[tuple[Case, CaseData]]) -> list[list[tuple[Case, CaseData]]]:
    groups: dict[Sizes, list[tuple[Case, CaseData]]] = {}
    for case, data in pairs:
        groups.setdefault(case.sizes, []).append((case, data))
    return list(groups.values())


def _wrong_timed_output(
    session: Session,
    candidate: Candidate,
    sets: list[tuple[Case, CaseData]],
    incumbent: list[TimedPrepared],
    challenger: list[TimedPrepared],
) -> CaseFailure | None:
    """Check what the timed launches left behind, on every input set: a result replayed or skipped shows here. The
    incumbent's memory has been the challenger's too."""
    for (case, data), before, plan in zip(sets, incumbent, challenger, strict=True):
        broken = before.violations()
        if broken:
            return CaseFailure(case, fault=broken[0])
        if can_judge(session.device):
            failure = failure_on_device(session, session.device, candidate, case, plan, TIMED_POISON)
        else:
            failure = _wrong_here(session, candidate, case, data, plan)
        if failure is not None:
            return failure
    return None


def _wrong_here(
    session: Session, candidate: Candidate, case: Case, data: CaseData, prepared: TimedPrepared
) -> CaseFailure | None:
    broken = prepared.violations()
    if broken:
        return CaseFailure(case, fault=broken[0])
    got = prepared.read()
    if session.original.answers_alike(case, data, got):
        return None
    flushed = flushes(candidate, session.spec.baseline)
    found = compare(session.contract, case, got, session.original.expected(case), data.arrays, flushes=flushed)
    return CaseFailure(case, mismatch=found[0]) if found else None


def _weakest(verdicts: list[Verdict]) -> Verdict:
    """Several configurations as one verdict: the geometric mean, and FASTER only when no configuration is slower
    and the mean interval says so."""
    if len(verdicts) == 1:
        return verdicts[0]
    mean = math.exp(float(np.mean([math.log(v.speedup) for v in verdicts])))
    low, high = (math.exp(float(np.mean([math.log(v.ci95[i]) for v in verdicts]))) for i in (0, 1))
    worst = min(verdicts, key=lambda v: v.ci95[1])
    kind = VerdictKind.SLOWER if worst.kind is VerdictKind.SLOWER else verdicts[0].kind
    if kind is not VerdictKind.SLOWER:
        kind = VerdictKind.FASTER if low > 1.005 else VerdictKind.AMBIGUOUS
    return replace(verdicts[0], kind=kind, speedup=mean, ci95=(low, high))


def _timing(samples: list[list[float]]) -> Timing:
    mean = math.exp(float(np.mean([math.log(float(np.median(s))) for s in samples])))
    return Timing(Basis.MEASURED, mean, tuple(samples[0][:200]), "paired final, cold caches, rotated inputs")
